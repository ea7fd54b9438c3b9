"""`doorstep.evaluate()`: every episode is counted once, and the figures follow from the seed, policies and levels."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.pkg.damaged import damaged

import doorstep
from doorstep import Evaluation, RolloutConfig, SimulatorConfig, evaluate
from doorstep.errors import ArgumentError, LibraryError
from doorstep.evaluation import episode_seeds
from doorstep.evaluation.arenas import find_arenas
from doorstep.evaluation.by_engine import Match, play_by_engine
from doorstep.evaluation.by_stepping import play_by_stepping
from doorstep.evaluation.contestants import Contestant, find_contestants
from doorstep.evaluation.episodes import Episodes
from doorstep.evaluation.statistics import estimate_mean, estimate_share
from doorstep.levels import GeneratedLevel, Goal, curated, reference, save_levels
from doorstep.planner import ScriptedPolicy
from doorstep.plots import plot_evaluation
from doorstep.policy import load_policy

CURATED = curated()
GOAL_AHEAD = GeneratedLevel(goal=Goal(-10, 10, 9, 13, agents="any"), episode_length=(20, 60), name="goal ahead")
ROOM = 40 / 3  # metres, length of a room

Tensors = Mapping[str, NDArray[Any]]


def walk(tensors: Tensors) -> NDArray[np.int32]:
    """Depends on what an agent observes: episodes are of many kinds."""
    farthest = tensors["lidar"][..., 0].argmax(axis=-1)
    actions = np.zeros((*farthest.shape, 4), np.int32)
    actions[..., 0], actions[..., 2] = farthest % 4, farthest % 5
    return actions


walk.observes = "tensors"  # type: ignore[attr-defined]


def ignore(_: int) -> None:
    """Nobody wants to know how many episodes have ended."""


def played_alone(level: Any, seed: int, policy: Callable[[Tensors], Any], length: int) -> dict[str, Any]:
    """The episode of a seed in a simulator of one world, step by step."""
    with doorstep.Simulator(
        1, seed=seed, auto_reset=False, episode_length=length, max_levels=int(level is not None)
    ) as sim:
        if level is not None:
            sim.set_levels([level])
            sim._begin(np.array([0]), np.array([seed]))
        returns, steps = np.zeros(2, np.float32), 0
        while not sim.dones.to_numpy().any():
            sim.actions = policy({name: tensor.copy_to_host() for name, tensor in sim.tensors.items()})
            sim.step()
            returns += sim.rewards.to_numpy()[0, :, 0]
            steps += 1
        return {
            "returns": returns,
            "max_y": sim.state.agent_max_y.copy_to_host()[0],
            "lengths": steps,
            "reached_goal": bool(sim.terminations.to_numpy().all()),
        }


def step_them(policy: Any, level: Any, seeds: NDArray[np.int64], worlds: int = 4, length: int = 40) -> Episodes:
    (arena,) = find_arenas([level], 2) if level is not None else find_arenas("reference", 2)
    config = SimulatorConfig(worlds, episode_length=length)
    return play_by_stepping(config, Contestant("mine", load_policy(policy)), arena, seeds, ignore)


# ---- Episodes


@pytest.mark.parametrize("level", [None, reference(), CURATED["slalom"], GOAL_AHEAD], ids=lambda level: str(level)[:30])
def test_each_episode_is_that_of_its_seed_and_is_counted_once(level: Any) -> None:
    seeds = episode_seeds(5, 11)
    played = step_them(walk, level, seeds)
    for index, seed in enumerate(seeds.tolist()):
        for name, value in played_alone(level, seed, walk, 40).items():
            assert np.array_equal(getattr(played, name)[index], value), (index, name)
    if level is GOAL_AHEAD:
        assert len(set(played.lengths.tolist())) > 3
        assert 0 < played.reached_goal.sum() < len(seeds)


@pytest.mark.parametrize("level", [None, CURATED["two rooms"], GOAL_AHEAD], ids=lambda level: str(level)[:30])
def test_the_engine_and_the_stepping_loop_play_the_same_episodes(level: Any) -> None:
    def stand_still(observations: NDArray[np.float32]) -> NDArray[np.int32]:
        return np.tile(np.array(doorstep.NEUTRAL_ACTION, np.int32), (*observations.shape[:2], 1))

    seeds = episode_seeds(3, 9)
    stepped = step_them(stand_still, level, seeds)
    (arena,) = find_arenas([level], 2) if level is not None else find_arenas("reference", 2)
    match = Match(Contestant("idle", load_policy("idle")), arena)
    (by_engine,) = play_by_engine(RolloutConfig(SimulatorConfig(4, episode_length=40)), [match], seeds, ignore)
    for field in dataclasses.fields(Episodes):
        assert np.array_equal(getattr(stepped, field.name), getattr(by_engine, field.name)), field.name


def test_a_policy_forgets_where_each_episode_begins() -> None:
    begun: list[int] = []

    def remember(observations: NDArray[np.float32], state: Any = None) -> Any:
        state = np.zeros((*observations.shape[:2], 1)) if state is None else state
        assert (state == state[:, :1]).all()
        begun.append(int((state[:, 0] == 0).sum()))
        return np.tile(np.array((3, 0, 2, 0), np.int32), (*observations.shape[:2], 1)), state + 1

    step_them(remember, GOAL_AHEAD, episode_seeds(0, 10), worlds=4)
    assert begun[0] == 4
    assert sum(begun) == 10


@pytest.mark.slow
def test_the_scripted_policy_plays_as_in_a_simulator_of_its_own() -> None:
    level, seeds = CURATED["one cube"], episode_seeds(9, 24)
    played = step_them("scripted", level, seeds, worlds=3)
    for index in (0, 3, 10, 23):
        with doorstep.Simulator(1, auto_reset=False, max_levels=1) as sim:
            sim.set_levels([level])
            sim._begin(np.array([0]), seeds[index : index + 1])
            policy, steps = ScriptedPolicy(), 0
            while not sim.dones.to_numpy().any():
                sim.actions = policy(sim)
                sim.step()
                steps += 1
        assert steps == played.lengths[index]


def test_an_argument_that_it_does_not_have_is_refused_with_the_one_that_was_meant() -> None:
    wrong: dict[str, Any] = {"level": "curated"}
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'level'; did you mean 'levels'\?"):
        doorstep.evaluate("idle", **wrong)


def test_seeds_of_fewer_episodes_are_the_first_ones() -> None:
    assert episode_seeds(7, 100)[:30].tolist() == episode_seeds(7, 30).tolist()
    assert not set(episode_seeds(7, 1000)) & set(episode_seeds(8, 1000))


# ---- Figures


@pytest.mark.parametrize("levels", ["reference", [CURATED["one door"], GOAL_AHEAD]], ids=["reference", "levels"])
def test_figures_do_not_depend_on_worlds_and_threads(levels: Any) -> None:
    policies: dict[str, Any] = {"random": "random", "walk": walk}
    some, others = (
        evaluate(policies, levels=levels, episodes=20, worlds=worlds, num_threads=threads, seed=4, episode_length=50)
        for worlds, threads in ((256, 2), (3, 1))
    )
    assert some == others
    assert some.to_json() == others.to_json()
    other_seed = evaluate(policies, levels=levels, episodes=20, seed=5, episode_length=50)
    assert other_seed.score("random", other_seed.levels[0].name) != some.score("random", some.levels[0].name)


@pytest.mark.slow
def test_scripted_beats_random_beats_idle() -> None:
    evaluation = evaluate(["idle", "random", "scripted"], episodes=40, seed=2)
    idle, random, scripted = (evaluation.score(policy) for policy in evaluation.policies)
    assert idle.mean_return.high < random.mean_return.low
    assert random.mean_return.high < scripted.mean_return.low
    assert scripted.rooms[0].all.low > random.rooms[0].all.high
    assert scripted.success is None  # the reference has no goal
    level = evaluate(["random", "scripted"], levels=CURATED["two rooms"], episodes=20)
    scores = [level.score(policy).success for policy in level.policies]
    assert scores[0] is not None
    assert scores[1] is not None
    assert scores[1].value == 1 > scores[0].value


def test_scores_are_means_and_shares_of_the_episodes() -> None:
    evaluation = evaluate({"mine": walk}, levels=GOAL_AHEAD, episodes=30, seed=6)
    score = evaluation.score("mine")
    played = step_them(walk, GOAL_AHEAD, episode_seeds(6, 30), length=200)
    assert score.mean_return.value == pytest.approx(played.returns.mean(), rel=1e-6)
    assert score.mean_length.value == pytest.approx(played.lengths.mean())
    assert score.success is not None
    assert score.success.value == pytest.approx(played.reached_goal.mean())
    assert [room.one.value for room in score.rooms] == pytest.approx(
        [(played.max_y.max(axis=1) > number * ROOM).mean() for number in (1, 2, 3)]
    )
    for room in score.rooms:
        assert room.all.value <= room.one.value


def test_levels_of_each_type_of_room() -> None:
    evaluation = evaluate("random", levels="room_types", episodes=2, episode_length=10)
    names = ["single_button", "double_button", "cube_blocking", "cube_buttons"]
    assert [arena.name for arena in evaluation.levels] == names
    for arena in evaluation.levels:
        assert isinstance(arena.level, GeneratedLevel)
        assert set(arena.level.room_types) == {arena.name}
    assert all(len(score.rooms) == 3 for score in evaluation.scores)


def test_native_policies_choose_as_their_sampling_says() -> None:
    torch = pytest.importorskip("torch")
    from doorstep.policy import SamplingParams

    torch.manual_seed(1)
    net = torch.nn.Linear(94, 19)
    greedy = doorstep.load_policy(net, sampling=SamplingParams(greedy=True))
    drawing = doorstep.load_policy(net, sampling=SamplingParams(seed=3))  # its seed does not matter here
    policies = {"greedy": greedy, "drawing": drawing, "again": doorstep.load_policy(net)}
    evaluation = evaluate(policies, episodes=12, episode_length=40)
    drawn, again = evaluation.score("drawing"), evaluation.score("again")
    assert drawn == dataclasses.replace(again, policy="drawing")
    assert evaluation.score("greedy").mean_return != drawn.mean_return

    def choose(observations: NDArray[np.float32]) -> NDArray[np.int32]:
        actions: NDArray[np.int32] = greedy(observations)
        return actions

    seeds = episode_seeds(0, 12)
    assert evaluation.score("greedy").mean_return.value == pytest.approx(
        float(step_them(choose, None, seeds, length=40).returns.mean()), rel=1e-6
    )


# ---- Intervals


@pytest.mark.parametrize(("count", "total"), [(0, 10), (1, 7), (30, 40), (500, 1000), (12, 12)])
def test_the_interval_of_a_share_solves_wilsons_equation(count: int, total: int) -> None:
    """Its ends are the p from which the observed share is 1.96 standard deviations of p away."""
    estimate, share, z = estimate_share(count, total), count / total, 1.959963984540054
    assert estimate.value == share
    assert estimate.low <= share <= estimate.high
    for end in (estimate.low, estimate.high):
        if 0 < end < 1:
            assert abs(share - end) == pytest.approx(z * math.sqrt(end * (1 - end) / total), rel=1e-9)
    assert (estimate.low == 0) == (count == 0)
    assert (estimate.high == 1) == (count == total)


def test_the_interval_of_a_mean_is_that_of_the_central_limit_for_many_values() -> None:
    values = np.random.default_rng(0).exponential(2, 4000)
    estimate = estimate_mean(values, seed=1)
    half = 1.959963984540054 * values.std(ddof=1) / math.sqrt(len(values))
    assert estimate.value == pytest.approx(values.mean())
    assert estimate.value - estimate.low == pytest.approx(half, rel=0.08)
    assert estimate.high - estimate.value == pytest.approx(half, rel=0.08)


def test_the_interval_of_a_mean_covers_it_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    covered = 0
    for trial in range(200):
        estimate = estimate_mean(generator.normal(1, 3, 60), seed=trial)
        covered += estimate.low <= 1 <= estimate.high
    assert 178 <= covered <= 199  # 95% of 200 are 190; its standard deviation is 3


def test_equal_values_have_no_spread() -> None:
    estimate = estimate_mean(np.full(7, 0.1), seed=0)
    assert estimate.low == estimate.value == estimate.high == 0.1


# ---- Results as text and files


def example() -> Evaluation:
    return evaluate(["idle", "random"], levels=[CURATED["one door"], GOAL_AHEAD, reference()], episodes=5)


def test_json_round_trip() -> None:
    for evaluation in (example(), evaluate("idle", episodes=2, episode_length=3)):
        assert Evaluation.from_json(evaluation.to_json()) == evaluation
        document = json.loads(evaluation.to_json())
        assert document == evaluation.to_dict()
        assert document["rules"]["episodes"] == evaluation.rules.episodes
        assert document["intervals"]["shares"] == "Wilson score interval"


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        (lambda document: document.update(doorstep="level"), "doorstep"),
        (lambda document: document.update(version=99), "version"),
        (lambda document: document.pop("rules"), "rules"),
        (lambda document: document["rules"].update(luck=1), "rules.luck"),
        (lambda document: document["rules"].pop("seed"), "rules.seed"),
        (lambda document: document["scores"][0].pop("policy"), "scores[0].policy"),
        (lambda document: document["scores"][1]["mean_return"].pop("low"), "scores[1].mean_return.low"),
        (lambda document: document["levels"][0]["level"].update(doorstep="house"), "levels[0].level.doorstep"),
        (lambda document: document.update(scores={}), "scores"),
        (lambda document: document.update(policies=3), "policies"),
        (lambda document: document["policies"].__setitem__(0, [3]), "policies[0]"),
        (lambda document: document["levels"][0]["level"].update(doorstep=[]), "levels[0].level.doorstep"),
        (lambda document: document["scores"][0]["mean_return"].update(low="0"), "scores[0].mean_return.low"),
        (lambda document: document["scores"][0].update(episodes=1.5), "scores[0].episodes"),
        (lambda document: document["scores"][2]["rooms"].pop(), "scores[2].rooms"),
        (lambda document: document["scores"][4].update(rooms=[]), "scores"),
        (lambda document: document["scores"][0].update(success=None), "scores"),
        (lambda document: document["scores"].pop(), "scores"),
        (lambda document: document["scores"].reverse(), "scores"),
        (lambda document: document.update(policies=[], scores=[]), "policies"),
        (lambda document: document.update(policies=["idle", "idle"]), "policies"),
        (lambda document: document["levels"].append(document["levels"][0]), "levels"),
        (lambda document: document["aggregates"].pop(), "aggregates"),
        (lambda document: document["improvements"].clear(), "improvements"),
    ],
)
def test_other_documents_are_refused(change: Callable[[Any], Any], argument: str) -> None:
    document = example().to_dict()
    change(document)
    with pytest.raises(ArgumentError) as caught:
        Evaluation.from_json(json.dumps(document))
    assert caught.value.argument == argument


def test_damaged_documents_are_evaluations_with_a_table_or_refused() -> None:
    document, generator, read = example().to_dict(), random.Random(1), 0
    for _ in range(300):
        text = json.dumps(damaged(document, generator))
        with contextlib.suppress(ArgumentError):
            assert str(Evaluation.from_json(text))
            read += 1
    assert read < 100


def test_the_table_has_a_row_for_each_policy_in_each_level() -> None:
    evaluation = example()
    goals, returns, rooms, over_all, improvements, note = str(evaluation).split("\n\n")
    assert len(goals.splitlines()) == 1 + 4
    assert "success" in goals
    assert len(returns.splitlines()) == 1 + 2
    assert len(rooms.splitlines()) == 2 + 4
    assert len(over_all.splitlines()) == 1 + 2
    assert len(improvements.splitlines()) == 2 + 1
    assert "Wilson" in note
    assert "bootstrap" in note
    for score in evaluation.scores:
        assert f"{score.mean_return.value:.3f} [{score.mean_return.low:.3f}, {score.mean_return.high:.3f}]" in (
            goals + returns
        )


def test_plots_are_pictures_of_the_kind_that_their_name_says(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    evaluation = example()
    for ending, begins in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        path = tmp_path / f"plot{ending}"
        plot_evaluation(evaluation, path)
        assert path.read_bytes().startswith(begins)
    with pytest.raises(ArgumentError, match=r"\.png or \.svg or \.pdf"):
        plot_evaluation(evaluation, tmp_path / "plot.txt")


def test_plots_without_matplotlib_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(LibraryError, match=r'pip install "doorstep\[plot\]"'):
        plot_evaluation(example(), tmp_path / "plot.png")
    assert not list(tmp_path.iterdir())


# ---- Arguments


def test_levels_by_name_file_and_mapping(tmp_path: Path) -> None:
    save_levels(tmp_path / "levels.json", [GOAL_AHEAD, CURATED["one door"], CURATED["one door"].replace(name="")])
    from_file = evaluate("idle", levels=tmp_path / "levels.json", episodes=1, episode_length=2)
    assert [arena.name for arena in from_file.levels] == ["goal ahead", "one door", "level 3"]
    twice = evaluate("idle", levels=[GOAL_AHEAD, GOAL_AHEAD], episodes=1)
    assert [arena.name for arena in twice.levels] == ["goal ahead", "goal ahead (2)"]
    named = evaluate("idle", levels={"mine": GOAL_AHEAD}, episodes=1)
    assert named.score("idle", "mine") == named.score("idle")
    assert [arena.name for arena in find_arenas("curated", 2)] == list(CURATED)


def test_progress_is_told_until_all_episodes_have_ended() -> None:
    told: list[tuple[int, int, str]] = []

    def tell(done: int, total: int, what: str) -> None:
        told.append((done, total, what))

    evaluate(["idle", "random", walk], episodes=6, worlds=4, episode_length=5, on_progress=tell)
    counts = [done for done, _, _ in told]
    assert counts == sorted(counts)
    assert counts[-1] == 18
    assert {total for _, total, _ in told} == {18}
    assert told[-1][2] == "walk in reference"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"policies": []}, "policies is []; it must be what load_policy() takes"),
        ({"policies": [3]}, "policy is 3; it must be"),
        ({"policies": "wise"}, "policy is 'wise'; it must be 'random'"),
        ({"policies": ["idle", "idle"]}, "policies has two of the name 'idle'; names must differ"),
        ({"policies": {"": "idle"}}, "policies is ''; it must be a mapping with texts as names"),
        ({"episodes": 0}, "episodes is 0; it must be an integer, 1 to 1000000"),
        ({"episodes": 2.5}, "episodes is 2.5; it must be an integer"),
        ({"worlds": 0}, "worlds is 0; it must be an integer, 1 to"),
        ({"seed": -1}, "seed is -1; it must be an integer, 0 to 4294967295"),
        ({"num_agents": 9}, "num_agents is 9"),
        ({"num_threads": 0}, "num_threads is 0"),
        ({"episode_length": 0}, "episode_length is 0"),
        ({"levels": []}, "levels is []; it must be 'reference', 'room_types', 'curated', the name"),
        ({"levels": [3]}, "levels is 3; it must be 'reference'"),
        ({"levels": 3}, "levels is 3; it must be 'reference'"),
        ({"levels": "curated", "num_agents": 3}, "level 'one door' has 2 spawns; it must have at least 3"),
    ],
)
def test_arguments_out_of_range_are_named(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        evaluate(**{"policies": "idle", "episodes": 1, **arguments})
    assert str(caught.value).startswith(says)
    assert caught.value.argument


def test_a_file_that_is_not_there_is_an_os_error() -> None:
    with pytest.raises(FileNotFoundError):
        evaluate("idle", levels="missing.json")


def test_a_policy_that_raises_or_returns_nonsense_comes_out() -> None:
    def fail(_: object) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        evaluate(fail, episodes=1)
    with pytest.raises(ArgumentError, match="policy 'wrong' returned"):
        evaluate({"wrong": lambda _: [1, 2]}, episodes=1)


def test_names_that_cannot_be_printed_are_refused_before_any_episode(tmp_path: Path) -> None:
    def fail(_: object) -> Any:
        raise ZeroDivisionError("an episode was played")

    with pytest.raises(ArgumentError, match=r"policies is '\\ud800'; it must be a text that UTF-8 can hold"):
        evaluate({"\ud800": fail})
    with pytest.raises(ArgumentError, match=r"levels is '\\ud800'; it must be a text that UTF-8 can hold"):
        evaluate(fail, levels={"\ud800": GOAL_AHEAD})
    file = tmp_path / "\udc80.py"  # bytes of a file's name that are not UTF-8
    file.write_text("def f(observations): return observations")
    (contestant,) = find_contestants(f"{file}:f", None)
    assert contestant.name == f"{tmp_path}/\\udc80.py:f"


def test_networks_for_other_numbers_of_agents_are_refused() -> None:
    torch = pytest.importorskip("torch")
    policy = doorstep.load_policy(torch.nn.Linear(94, 19))
    with pytest.raises(ArgumentError, match="policy 'Policy' reads 94 numbers; agents observe"):
        evaluate(policy, num_agents=4, episodes=1)


def test_scores_that_are_not_there_are_named() -> None:
    evaluation = example()
    with pytest.raises(ArgumentError, match="level is None; it must be one of 'one door', 'goal ahead', 'reference'"):
        evaluation.score("idle")
    with pytest.raises(ArgumentError, match="policy is 'wise'; it must be one of 'idle', 'random'"):
        evaluation.score("wise", "one door")
