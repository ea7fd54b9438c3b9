"""`doorstep.evaluate()`: every episode is counted once, and the figures follow from the seed, policies and levels."""

import contextlib
import dataclasses
import json
import math
import random

import numpy as np
import pytest
from tests.pkg.damaged import damaged
from tests.refuses import assert_refused, raising, refuses

import doorstep
from doorstep import Evaluation, RolloutConfig, SimulatorConfig, evaluate
from doorstep.errors import ArgumentError
from doorstep.evaluation import episode_seeds
from doorstep.evaluation.arenas import find_arenas
from doorstep.evaluation.by_engine import Match, play_by_engine
from doorstep.evaluation.by_stepping import play_by_stepping
from doorstep.evaluation.contestants import Contestant, find_contestants
from doorstep.evaluation.episodes import Episodes
from doorstep.evaluation.scores import score as score_of
from doorstep.evaluation.statistics import estimate_mean, estimate_share
from doorstep.levels import GeneratedLevel, Goal, curated, reference, save_levels
from doorstep.planner import ScriptedPolicy
from doorstep.policy import SamplingParams, load_policy

CURATED = curated()
GOAL_AHEAD = GeneratedLevel(goal=Goal(-10, 10, 9, 13, agents="any"), episode_length=(20, 60), name="goal ahead")


def walk(tensors):
    """Depends on what an agent observes: episodes are of many kinds."""
    farthest = tensors["lidar"][..., 0].argmax(axis=-1)
    actions = np.zeros((*farthest.shape, 4), np.int32)
    actions[..., 0], actions[..., 2] = farthest % 4, farthest % 5
    return actions


walk.observes = "tensors"


def walk_in(sim):
    return walk({name: tensor.copy_to_host() for name, tensor in sim.tensors.items()})


fail = raising(ZeroDivisionError, "mine")


def ignore(_):
    """Nobody wants to know how many episodes have ended."""


def played_alone(level, seed, policy, length, num_agents):
    """The episode of a seed in a simulator of one world, step by step."""
    rules = {"episode_length": length, "max_levels": int(level is not None), "num_agents": num_agents}
    with doorstep.Simulator(1, seed=seed, auto_reset=False, **rules) as sim:
        if level is not None:
            sim.set_levels([level])
            sim._begin(np.array([0]), np.array([seed]))
        returns, steps = np.zeros(num_agents, np.float32), 0
        while not sim.dones.to_numpy().any():
            sim.actions = policy(sim)
            sim.step()
            returns += sim.rewards.to_numpy()[0, :, 0]
            steps += 1
        max_y, reached = sim.state.agent_max_y.copy_to_host()[0], bool(sim.terminations.to_numpy().all())
        return {"returns": returns, "max_y": max_y, "lengths": steps, "reached_goal": reached}


def step_them(policy, level, seeds, worlds=4, length=40, num_agents=2):
    (arena,) = find_arenas([level], num_agents) if level is not None else find_arenas("reference", num_agents)
    config = SimulatorConfig(worlds, episode_length=length, num_agents=num_agents)
    return play_by_stepping(config, Contestant("mine", load_policy(policy)), arena, seeds, ignore)


# ---- Episodes


def test_each_episode_is_that_of_its_seed_and_is_counted_once():
    seeds, cases = episode_seeds(5, 11), ((None, 3), (reference(), 1), (CURATED["slalom"], 2), (GOAL_AHEAD, 2))
    rows = [(walk, walk_in, level, num_agents, seeds) for level, num_agents in cases]
    rows.append(("scripted", ScriptedPolicy(), CURATED["one cube"], 2, seeds[:5]))
    for policy, alone, level, num_agents, some in rows:
        played = step_them(policy, level, some, num_agents=num_agents)
        for index, seed in enumerate(some.tolist()):
            for name, value in played_alone(level, seed, alone, 40, num_agents).items():
                assert np.array_equal(getattr(played, name)[index], value), (level, index, name)
        if level is GOAL_AHEAD:
            assert len(set(played.lengths.tolist())) > 3
            assert 0 < played.reached_goal.sum() < len(seeds)


def test_the_engine_and_the_stepping_loop_play_the_same_episodes():
    def stand_still(observations):
        return np.tile(np.array(doorstep.NEUTRAL_ACTION, np.int32), (*observations.shape[:2], 1))

    seeds = episode_seeds(3, 9)
    for level in (None, CURATED["two rooms"], GOAL_AHEAD):
        stepped = step_them(stand_still, level, seeds)
        (arena,) = find_arenas([level], 2) if level is not None else find_arenas("reference", 2)
        match = Match(Contestant("idle", load_policy("idle")), arena)
        (by_engine,) = play_by_engine(RolloutConfig(SimulatorConfig(4, episode_length=40)), [match], seeds, ignore)
        for field in dataclasses.fields(Episodes):
            assert np.array_equal(getattr(stepped, field.name), getattr(by_engine, field.name)), field.name


def test_a_policy_forgets_where_each_episode_begins():
    begun = []

    def remember(observations, state=None):
        state = np.zeros((*observations.shape[:2], 1)) if state is None else state
        assert (state == state[:, :1]).all()
        begun.append(int((state[:, 0] == 0).sum()))
        return np.tile(np.array((3, 0, 2, 0), np.int32), (*observations.shape[:2], 1)), state + 1

    step_them(remember, GOAL_AHEAD, episode_seeds(0, 10), worlds=4)
    assert begun[0] == 4
    assert sum(begun) == 10


# ---- Figures


def test_figures_do_not_depend_on_worlds_and_threads():
    assert episode_seeds(7, 100)[:30].tolist() == episode_seeds(7, 30).tolist()
    assert not set(episode_seeds(7, 1000)) & set(episode_seeds(8, 1000))
    for levels in ("reference", [CURATED["one door"], GOAL_AHEAD]):
        options = {"levels": levels, "episodes": 20, "episode_length": 50}
        policies = {"random": "random", "walk": walk}
        sizes = {"worlds": 256, "num_threads": 2}, {"worlds": 3, "num_threads": 1}
        some, others = (evaluate(policies, seed=4, **size, **options) for size in sizes)
        assert some == others
        assert some.to_json() == others.to_json()
        other_seed = evaluate(policies, seed=5, **options)
        assert other_seed.score("random", other_seed.levels[0].name) != some.score("random", some.levels[0].name)


def test_scores_are_means_and_shares_of_the_episodes():
    score = evaluate({"mine": walk}, levels=GOAL_AHEAD, episodes=30, seed=6).score("mine")
    played = step_them(walk, GOAL_AHEAD, episode_seeds(6, 30), length=200)
    assert score.mean_return.value == pytest.approx(played.returns.mean(), rel=1e-6)
    assert score.mean_length.value == pytest.approx(played.lengths.mean())
    assert score.success.value == pytest.approx(played.reached_goal.mean())
    largest = np.array([[14, 13], [27, 14], [41, 41], [0, 0]], np.float32)  # of y; rooms end at 13.3, 26.7 and 40
    passed = dataclasses.replace(step_them(walk, None, episode_seeds(6, 4)), max_y=largest)
    rooms = score_of("mine", find_arenas("reference", 2)[0], passed, 0).rooms
    assert [(room.one.value, room.all.value) for room in rooms] == [(0.75, 0.5), (0.5, 0.25), (0.25, 0.25)]


def test_native_policies_choose_as_their_sampling_says():
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    net = torch.nn.Linear(94, 19)
    greedy = load_policy(net, sampling=SamplingParams(greedy=True))
    drawing = load_policy(net, sampling=SamplingParams(seed=3))  # its seed does not matter here
    policies = {"greedy": greedy, "drawing": drawing, "again": load_policy(net)}
    evaluation = evaluate(policies, episodes=12, episode_length=40)
    drawn, again = evaluation.score("drawing"), evaluation.score("again")
    assert drawn == dataclasses.replace(again, policy="drawing")
    assert evaluation.score("greedy").mean_return != drawn.mean_return
    stepped = step_them(lambda observations: greedy(observations), None, episode_seeds(0, 12))
    assert evaluation.score("greedy").mean_return.value == pytest.approx(float(stepped.returns.mean()), rel=1e-6)
    refuses("policy 'Policy' reads 94 numbers; agents observe", evaluate, greedy, num_agents=4, episodes=1)


# ---- Intervals


def test_the_interval_of_a_share_solves_wilsons_equation():
    """Its ends are the p from which the observed share is 1.96 standard deviations of p away."""
    for count, total in ((0, 10), (1, 7), (30, 40), (500, 1000), (12, 12)):
        estimate, share, z = estimate_share(count, total), count / total, 1.959963984540054
        assert estimate.value == share
        assert estimate.low <= share <= estimate.high
        for end in (estimate.low, estimate.high):
            if 0 < end < 1:
                assert abs(share - end) == pytest.approx(z * math.sqrt(end * (1 - end) / total), rel=1e-9)
        assert (estimate.low == 0) == (count == 0)
        assert (estimate.high == 1) == (count == total)


def test_the_interval_of_a_mean_is_that_of_the_central_limit_and_covers_it_as_often_as_it_says():
    values = np.random.default_rng(0).exponential(2, 4000)
    estimate = estimate_mean(values, seed=1)
    half = 1.959963984540054 * values.std(ddof=1) / math.sqrt(len(values))
    assert estimate.value == pytest.approx(values.mean())
    assert estimate.value - estimate.low == pytest.approx(half, rel=0.08)
    assert estimate.high - estimate.value == pytest.approx(half, rel=0.08)
    generator, covered = np.random.default_rng(3), 0
    for trial in range(200):
        estimate = estimate_mean(generator.normal(1, 3, 60), seed=trial)
        covered += estimate.low <= 1 <= estimate.high
    assert 178 <= covered <= 199  # 95% of 200 are 190; its standard deviation is 3
    estimate = estimate_mean(np.full(7, 0.1), seed=0)
    assert estimate.low == estimate.value == estimate.high == 0.1


# ---- Results as text and files


@pytest.fixture(scope="module")
def example():
    return evaluate(["idle", "random"], levels=[CURATED["one door"], GOAL_AHEAD, reference()], episodes=5)


CHANGES = {  # of the argument that is named
    "version": lambda document: document.update(version=99),
    "rules.luck": lambda document: document["rules"].update(luck=1),
    "rules.seed": lambda document: document["rules"].pop("seed"),
    "scores[1].mean_return.low": lambda document: document["scores"][1]["mean_return"].pop("low"),
    "scores[0].mean_return.low": lambda document: document["scores"][0]["mean_return"].update(low="0"),
    "scores[2].rooms": lambda document: document["scores"][2]["rooms"].pop(),
    "scores": lambda document: document["scores"].reverse(),
    "scores ": lambda document: document["scores"][4].update(rooms=[]),
    "scores  ": lambda document: document["scores"][0].update(success=None),
    "scores   ": lambda document: document["scores"].pop(),
    "policies": lambda document: document.update(policies=["idle", "idle"]),
    "levels": lambda document: document["levels"].append(document["levels"][0]),
    "aggregates": lambda document: document["aggregates"].pop(),
    "improvements": lambda document: document["improvements"].clear(),
}


def test_results_survive_json_and_other_documents_are_refused(example):
    for evaluation in (example, evaluate("idle", episodes=2, episode_length=3)):
        assert Evaluation.from_json(evaluation.to_json()) == evaluation
        document = json.loads(evaluation.to_json())
        assert document == evaluation.to_dict()
        assert document["rules"]["episodes"] == evaluation.rules.episodes
        assert document["intervals"]["shares"] == "Wilson score interval"
    for argument, change in CHANGES.items():
        document = json.loads(example.to_json())
        change(document)
        refuses(None, Evaluation.from_json, json.dumps(document), argument=argument.strip())
    generator, read = random.Random(1), 0
    for _ in range(200):
        with contextlib.suppress(ArgumentError):
            assert str(Evaluation.from_json(json.dumps(damaged(example.to_dict(), generator))))
            read += 1
    assert read < 70


def test_the_table_has_a_row_for_each_policy_in_each_level_and_scores_are_found_by_name(example):
    goals, returns, *others = str(example).split("\n\n")
    assert [len(part.splitlines()) for part in (goals, returns, *others[:-1])] == [5, 3, 6, 3, 3]
    assert "Wilson" in others[-1]
    for score in example.scores:
        assert example.score(score.policy, score.level) is score
        mean = score.mean_return
        lines = (goals + returns).splitlines()
        (row,) = (line for line in lines if f"{score.level}  " in line and score.policy in line)
        assert f"{mean.value:.3f} [{mean.low:.3f}, {mean.high:.3f}]" in row
    refuses("level is None; it must be one of 'one door', 'goal ahead', 'reference'", example.score, "idle")
    refuses("policy is 'wise'; it must be one of 'idle', 'random'", example.score, "wise", "one door")


# ---- Arguments


def test_levels_have_names_that_differ(tmp_path):
    save_levels(tmp_path / "levels.json", [GOAL_AHEAD, CURATED["one door"], CURATED["one door"].replace(name="")])
    from_file = evaluate("idle", levels=tmp_path / "levels.json", episodes=1, episode_length=2)
    assert [arena.name for arena in from_file.levels] == ["goal ahead", "one door", "level 3"]
    twice = evaluate("idle", levels=[GOAL_AHEAD, GOAL_AHEAD], episodes=1)
    assert [arena.name for arena in twice.levels] == ["goal ahead", "goal ahead (2)"]
    named = evaluate("idle", levels={"mine": GOAL_AHEAD}, episodes=1)
    assert named.score("idle", "mine") == named.score("idle")
    evaluation = evaluate("random", levels="room_types", episodes=2, episode_length=10)
    names = ["single_button", "double_button", "cube_blocking", "cube_buttons"]
    assert [arena.name for arena in evaluation.levels] == names
    assert all(set(arena.level.room_types) == {arena.name} for arena in evaluation.levels)
    assert all(len(score.rooms) == 3 for score in evaluation.scores)


def test_progress_is_told_until_all_episodes_have_ended():
    told, policies = [], ["idle", "random", walk]
    evaluate(policies, episodes=6, worlds=4, episode_length=5, on_progress=lambda *progress: told.append(progress))
    assert told == sorted(told, key=lambda one: one[0])
    assert (told[-1], {total for _, total, _ in told}) == ((18, 18, "walk in reference"), {18})


REFUSED = [
    ({"policies": []}, "policies is []; it must be what load_policy() takes"),
    ({"policies": [3]}, "policy is 3; it must be"),
    ({"policies": ["idle", "idle"]}, "policies has two of the name 'idle'; names must differ"),
    ({"policies": {"": "idle"}}, "policies is ''; it must be a mapping with texts as names"),
    ({"policies": {"\ud800": fail}}, r"policies is '\ud800'; it must be a text that UTF-8 can hold"),
    ({"policies": {"wrong": lambda _: [1, 2]}}, "policy 'wrong' returned"),
    ({"episodes": 0}, "episodes is 0; it must be an integer, 1 to 1000000"),
    ({"worlds": 0}, "worlds is 0; it must be an integer, 1 to"),
    ({"levels": []}, "levels is []; it must be 'reference', 'room_types', 'curated', the name"),
]


def test_wrong_arguments_are_named_and_what_a_policy_raises_comes_out(tmp_path):
    assert_refused(lambda **given: evaluate(**{"policies": "idle", "episodes": 1, **given}), REFUSED)
    refuses("'one door' has 2 spawns", evaluate, "idle", argument="levels", levels="curated", num_agents=3)
    refuses("mine", evaluate, fail, error=ZeroDivisionError, episodes=1)
    file = tmp_path / "\udc80.py"  # bytes of a file's name that are not UTF-8
    file.write_text("def f(observations): return observations")
    (contestant,) = find_contestants(f"{file}:f", None)
    assert contestant.name == f"{tmp_path}/\\udc80.py:f"
