"""What a run plays: its levels, and which episodes in them succeed; curricula, by whose weights worlds draw levels; and
retries, episodes that begin in the middle of one that failed."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from tests.refuses import refuses

import doorstep

pytest.importorskip("torch")

import torch
from tests.pkg.training.runs import RETRYING, assert_equal_tensors, equal_bits, small

from doorstep import training
from doorstep.evaluation.arenas import Arena
from doorstep.levels import GeneratedLevel, Level, Spawn, Wall, curated, save_levels
from doorstep.training import LearnabilityCurriculum, Ranks, Trainer, resume, train
from doorstep.training.curriculum import probabilities
from doorstep.training.levels import LevelOutcomes, SuccessRates, TrainingLevels
from doorstep.training.retries import KEPT, Retries
from doorstep.training.run import CHECKPOINT
from doorstep.training.worlds import Worlds

ONE_DOOR = curated()["one door"]


def outcomes(episodes, successes):
    count = torch.tensor(episodes, dtype=torch.float64)
    return LevelOutcomes(count, torch.tensor(successes, dtype=torch.float64), torch.zeros_like(count))


# ---- Levels


def test_levels_are_a_table_of_the_worlds_but_for_the_references():
    for levels, count in (("reference", 0), ("room_types", 4), ("curated", 20)):
        trainer = Trainer(small(f"levels={levels}"))
        assert trainer.worlds.sim.config.max_levels == count
        assert any(name.startswith("levels.") for name in trainer.checkpoint().tensors) == bool(count)
    record = Trainer(small()).update()
    assert (record.success, record.levels) == (None, {})


def test_levels_that_cannot_be_trained_on_are_refused(tmp_path):
    spawns = [Spawn(x=-3, y=2), Spawn(x=3, y=2)]
    save_levels(tmp_path / "a.json", [Level(walls=[Wall(x=0, y=9, size_x=9, size_y=1)], spawns=spawns, name="open")])
    for changes, message in (
        (("levels=none.json",), r"levels is .none\.json.; it must be .* a file that can be read"),
        (("levels=curated", "simulator.num_agents=3"), "has 2 spawns; it must have at least 3"),
        ((f"levels={tmp_path}/a.json",), "level 'open' has neither a goal nor a room with a door"),
    ):
        refuses(message, lambda changes=changes: Trainer(small(*changes)))


def test_success_is_the_goal_or_all_agents_beyond_the_last_door():
    without_goal = ONE_DOOR.replace(goal=None)
    (end,) = (room.end for room in without_goal.rooms if room.door is not None)
    arenas = [Arena("goal", ONE_DOOR), Arena("doors", without_goal), Arena("generated", GeneratedLevel())]
    levels = TrainingLevels(arenas, torch.device("cpu"))
    rows = [  # level, ended, terminated, largest y of both agents
        (0, True, True, (1.0, 1.0)),  # a success
        (0, True, False, (99.0, 99.0)),
        (0, False, False, (99.0, 99.0)),
        (1, True, False, (end + 0.1, end + 0.1)),  # a success
        (1, True, False, (end + 0.1, end - 0.1)),
        (1, False, False, (end + 9, end + 9)),
        (2, True, False, (40.1, 40.1)),  # a success
        (2, True, False, (39.9, 40.1)),
        (2, True, False, (70.0, 40.2)),  # a success
    ]
    given = [torch.tensor(column) for column in zip(*rows, strict=True)]
    found = levels.outcomes(*given, torch.arange(18.0).reshape(9, 2))
    assert found.episodes.tolist() == [2, 2, 3]
    assert found.successes.tolist() == [1, 1, 2]
    assert found.returns.tolist() == [0.5 + 2.5, 6.5 + 8.5, 12.5 + 14.5 + 16.5]
    last_room = torch.tensor([2, 2, 0]), torch.tensor([[26.0, 27.0], [26.0, 26.0], [99.0, 0.0]])
    assert levels.in_last_room(*last_room).tolist() == [True, False, True]


def test_a_run_keeps_its_levels(tmp_path):
    one, two = list(curated().values())[:2]
    save_levels(tmp_path / "levels.json", [one, two])
    train(tmp_path / "run", config=small(f"levels={tmp_path / 'levels.json'}", "num_updates=1"))
    (tmp_path / "levels.json").unlink()
    assert resume(tmp_path / "run", num_updates=2).config.levels == (one, two)
    train(tmp_path / "none", config=small("num_updates=1"))
    changed, other = "the levels have changed since it was written", "does not fit: levels"
    for run, levels, message in (("run", [two, one], changed), ("run", one, other), ("none", "curated", other)):
        refuses(message, resume, tmp_path / run, error=doorstep.StateError, levels=levels, num_updates=3)


# ---- Success rates and weights


def test_a_success_rate_is_that_of_the_episodes_so_far_of_which_old_ones_are_forgotten():
    rates, decay = SuccessRates(3, window=50), 1 - 1 / 50
    assert rates.means.tolist() == [0, 0, 0]
    expected = [[0.0, 0.0] for _ in range(3)]
    for episodes, successes in (([4, 1, 0], [1, 1, 0]), ([0, 200, 7], [0, 150, 7]), ([1, 0, 9], [0, 0, 3])):
        rates.update(outcomes(episodes, successes))
        for sums, count, won in zip(expected, episodes, successes, strict=True):
            for _ in range(count):  # those of a rollout are equally old
                sums[:] = sums[0] * decay + 1, sums[1] * decay + won / count
    assert torch.stack((rates.episodes, rates.successes), 1).tolist() == [pytest.approx(sums) for sums in expected]
    assert rates.means.tolist() == pytest.approx([successes / episodes for episodes, successes in expected])


def test_levels_that_are_neither_solved_nor_hopeless_are_likelier():
    """By the expectation of p (1 - p), where p is the chance of success, of which all were equally likely before."""
    rates = SuccessRates(6, window=50)
    rates.update(outcomes([80, 80, 80, 0, 1, 5], [80, 0, 40, 0, 0, 5]))
    chances = torch.linspace(0, 1, 10001, dtype=torch.float64)[:, None]
    likely = chances**rates.successes * (1 - chances) ** (rates.episodes - rates.successes)
    expected = torch.trapezoid(likely * chances * (1 - chances), dim=0) / torch.trapezoid(likely, dim=0)
    for share in (0.1, 0.5, 1.0):
        curriculum = LearnabilityCurriculum(uniform_share=share).make(6)
        weights = probabilities(curriculum, outcomes([0] * 6, [0] * 6), rates)
        wanted = (1 - share) * expected / expected.sum() + share / 6
        torch.testing.assert_close(weights, wanted.float(), rtol=1e-4, atol=1e-5)


# ---- Curricula of users


@dataclass(frozen=True, kw_only=True)
class FirstConfig(training.CurriculumConfig):
    type: ClassVar[str] = "first"


@dataclass(frozen=True, kw_only=True)
class WithoutClassConfig(training.CurriculumConfig):
    type: ClassVar[str] = "without_class"


def register(weights):
    """A curriculum with a buffer, by a function of its calls and the number of levels."""

    @training.register_curriculum(FirstConfig)
    class First(training.Curriculum):
        def __init__(self, config, num_levels):
            super().__init__()
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

        def weights(self, outcomes, rates):
            self.calls += 1
            return weights(self.calls, len(rates.episodes))


OF_USERS = ("levels=curated", "curriculum.type=first", "num_updates=3")


@pytest.mark.usefixtures("undone_registrations")
def test_a_registered_curriculum_is_used_its_buffers_are_in_checkpoints_and_its_absence_is_named(tmp_path, monkeypatch):
    register(lambda calls, count: torch.nn.functional.one_hot(calls - 1, count))
    config = small(*OF_USERS)
    trainer = train(tmp_path, config=config)
    assert trainer.worlds.sim.level_weights.to_numpy().argmax(1).tolist() == [3] * config.simulator.num_worlds
    assert training.load_checkpoint(tmp_path / CHECKPOINT).tensors["levels.curriculum.calls"] == 4
    assert resume(tmp_path, num_updates=4).checkpoint().tensors["levels.curriculum.calls"] == 5
    monkeypatch.delitem(training.CurriculumConfig.registry._classes, "first")
    doorstep.load_policy(tmp_path)  # is played without it
    message = r"FirstConfig, which no module has .*import tests.pkg.training.test_c"
    refuses(message, resume, tmp_path, error=doorstep.StateError, num_updates=5)


@pytest.mark.usefixtures("undone_registrations")
def test_a_curriculum_that_returns_no_weights_or_has_no_class_is_named():
    wrong = [[1.0], [0.0] * 20, [-1.0] + [1.0] * 19, [float("nan")] * 20, None]
    register(lambda calls, count: wrong[0] and torch.tensor(wrong[0]))
    while wrong:
        refuses("curriculum First returned", Trainer, small(*OF_USERS), error=training.TrainingError)
        del wrong[0]
    training.CurriculumConfig.registry.add(WithoutClassConfig)
    with pytest.raises(doorstep.ArgumentError, match=r"curriculum is WithoutClassConfig.*no class is registered"):
        Trainer(small("levels=curated", "curriculum.type=without_class"))
    refuses("config is", training.register_curriculum, training.TrainingConfig)


# ---- Worlds


def test_worlds_get_the_weights():
    trainer = Trainer(small("levels=curated", "curriculum.type=learnability"))
    sampler = trainer._sampler
    sampler.rates.update(outcomes([50] * 20, [0] * 5 + [50] * 5 + [25] * 5 + [5] * 5))
    trainer.update()
    weights = trainer.worlds.sim.level_weights.to_torch()
    assert equal_bits(weights, sampler.weights.expand(6, -1).clone())
    assert weights[0].max() > 2 * weights[0].min()


def test_episodes_count_for_the_level_that_was_played():
    """A reset has drawn another level by the time an episode's end is seen."""
    changes = ("simulator.num_worlds=40", "experience.num_steps=64", "experience.staggered=false")
    trainer = Trainer(small("levels=curated", *changes))
    lengths = [level.episode_length for level in curated().values()]
    played = trainer.worlds.sim.level_indices.to_torch()[:, 0].tolist()
    steps = trainer.worlds.sim.steps_remaining.to_torch()[:, 0, 0].tolist()
    assert steps == [length if length is not None else 20 for length in (lengths[level] for level in played)]
    record = trainer.update()
    levels = trainer._rollout.levels
    assert levels[0].tolist() == played
    counts = dict.fromkeys(curated(), 0)
    names = list(curated())
    for step, world in trainer._rollout.ended[:, ::2].nonzero().tolist():
        counts[names[levels[step, world]]] += 1
    assert {name: level.episodes for name, level in record.levels.items()} == {k: v for k, v in counts.items() if v}
    assert record.episodes == sum(counts.values())


def test_weights_of_levels_multiply_those_of_the_curriculum_which_may_change(tmp_path):
    trainer = Trainer(small().changed(levels=list(curated().values())[:3], level_weights=(0, 1, 3)))
    for _ in range(3):
        record = trainer.update()
    assert trainer.worlds.sim.level_weights[0].tolist() == [0, 0.25, 0.75]
    assert all(level.weight in (0.25, 0.75) for level in record.levels.values())
    train(tmp_path, config=small("levels=curated", "num_updates=2"))
    trainer = resume(tmp_path, num_updates=3, **{"curriculum.type": "learnability"})
    assert isinstance(trainer.config.curriculum, LearnabilityCurriculum)
    assert trainer.updates == 3


# ---- Retries


def play(num_steps, succeeded=False):
    """Worlds whose agents are in the last room from the beginning: what they are before each step."""
    config = small(*RETRYING)
    worlds = Worlds(config.simulator, Ranks())
    retries = Retries(config, worlds, Ranks())
    sim, everywhere, generator = worlds.sim, torch.ones(6, dtype=torch.bool), torch.Generator()
    seen = []
    for _ in range(num_steps):
        seen.append((sim.steps_remaining[:, 0, 0].copy(), retries.is_retry.clone(), sim.save([0])))
        sim.step()
        ended = torch.from_numpy(sim.dones[:, 0, 0].astype(bool))
        retries.step(ended, everywhere & succeeded, everywhere, generator)
        assert not retries.num_candidates[ended].any()  # those of an episode end with it
    return worlds, retries, seen


def test_a_failed_episode_is_retried_from_a_moment_of_it():
    _, retries, seen = play(21)
    remaining, is_retry, save = seen[20]
    assert is_retry.all()
    assert set(remaining.tolist()) <= {14, 11, 8}
    assert save in [before for _, _, before in seen[:20]]
    assert retries.num_failed.tolist() == [1] * 6


def test_the_next_level_is_the_one_that_was_postponed():
    worlds, _, seen = play(60)
    natural = [save for remaining, is_retry, save in seen if not is_retry[0] and remaining[0] == 20]
    with doorstep.Simulator.from_config(worlds.sim.config) as plain:
        begins = [plain.save([0])]
        for _ in range(20):
            plain.step()
        begins.append(plain.save([0]))
    assert natural[:2] == begins


def test_neither_what_succeeds_nor_a_retry_that_fails_is_retried():
    _, retries, seen = play(60, succeeded=True)
    assert not retries.num_failed.any()
    assert not any(is_retry.any() for _, is_retry, _ in seen)
    _, retries, _ = play(20 * 3 * KEPT)
    assert (retries.num_failed > KEPT).all()
    assert retries.failed.any(dim=2).all()


def test_retries_are_no_natural_episodes_and_go_on_from_a_checkpoint():
    trainer = Trainer(small(*RETRYING))
    retries = trainer._retries
    retries.num_failed[:] = 1
    retries.failed[:, 0] = torch.stack([retries._save(world) for world in range(6)])
    trainer.update()
    trainer.update()
    assert retries.is_retry.any()
    assert torch.equal(trainer._rollout.natural[-1], ~retries.is_retry)
    before, resumed = trainer.checkpoint(), Trainer(trainer.config)
    resumed.restore(before)
    assert_equal_tensors(resumed.checkpoint(), before)
