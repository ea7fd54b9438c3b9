"""Curricula: weights, what they follow from, that worlds draw by them, and that resumed runs go on with them."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from tests.refuses import refuses

import doorstep

pytest.importorskip("torch")

import torch
from tests.pkg.training.runs import assert_equal_tensors, equal_bits, small

from doorstep import training
from doorstep.levels import curated
from doorstep.training import LearnabilityCurriculum, Trainer, UniformCurriculum, resume, train
from doorstep.training.curriculum import probabilities
from doorstep.training.levels import LevelOutcomes, SuccessRates
from doorstep.training.run import CHECKPOINT

ON_LEVELS = ("levels=curated", "curriculum.type=learnability")


def outcomes(episodes, successes):
    count = torch.tensor(episodes, dtype=torch.float64)
    return LevelOutcomes(count, torch.tensor(successes, dtype=torch.float64), torch.zeros_like(count))


def rates_after(*rollouts, window=50):
    rates = SuccessRates(len(rollouts[0][0]), window)
    for episodes, successes in rollouts:
        rates.update(outcomes(episodes, successes))
    return rates


def weights_of(config, rates):
    count = len(rates.episodes)
    return probabilities(config.make(count), outcomes([0] * count, [0] * count), rates)


# ---- Success rates and weights


def test_a_success_rate_is_that_of_the_episodes_so_far_of_which_old_ones_are_forgotten():
    rates = rates_after(([4, 1, 0], [1, 1, 0]), window=1000)
    assert rates.means.tolist() == pytest.approx([0.25, 1, 0])
    assert rates.episodes.tolist() == pytest.approx([4, 1, 0], rel=0.01)
    rates = rates_after(([1000], [1000]), *[([1], [0])] * 50, window=50)  # a window later
    assert rates.means.item() == pytest.approx(0.98**50)
    assert rates.episodes.item() == pytest.approx(50, rel=1e-6)
    once, later = rates_after(([5, 5], [2, 3])), rates_after(([5, 5], [2, 3]), ([0, 7], [0, 7]))
    assert later.episodes[0] == once.episodes[0]  # without episodes of a level its rate stays
    assert later.successes[0] == once.successes[0]


def test_weights_are_positive_and_add_up_to_one_and_are_equal_before_any_episode():
    generator = torch.Generator().manual_seed(3)
    for config in (UniformCurriculum(), LearnabilityCurriculum()):
        assert weights_of(config, SuccessRates(4, 50)).tolist() == pytest.approx([0.25] * 4)
        for _ in range(20):
            episodes = torch.randint(0, 200, (30,), generator=generator).double()
            rates = SuccessRates(30, 50)
            rates.update(LevelOutcomes(episodes, (episodes * torch.rand(30, generator=generator)).round(), episodes))
            weights = weights_of(config, rates)
            assert weights.dtype == torch.float32
            assert bool((weights > 0).all())
            assert weights.double().sum().item() == pytest.approx(1, abs=1e-6)
            assert config != UniformCurriculum() or len(set(weights.tolist())) == 1


def test_levels_that_are_neither_solved_nor_hopeless_are_likelier():
    rates = rates_after(([80, 80, 80, 0], [80, 0, 40, 0]))
    solved, hopeless, half, untried = weights_of(LearnabilityCurriculum(), rates)
    assert solved == hopeless
    assert half > untried > 2 * solved
    assert half > 3 * solved
    surer = weights_of(LearnabilityCurriculum(), rates_after(([1, 5, 40], [0, 0, 0]))).tolist()
    assert surer == sorted(surer, reverse=True)  # more certainty makes a hopeless level less likely
    for share in (0.1, 0.5, 1.0):
        rates = rates_after(([10**6] * 4, [10**6, 10**6, 0, 10**6 // 2]), window=10**6)
        weights = weights_of(LearnabilityCurriculum(uniform_share=share), rates)
        assert bool((weights >= share / 4 - 1e-6).all())
        assert weights[0].item() == pytest.approx(share / 4, abs=1e-4)


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


def test_worlds_draw_levels_by_the_weights():
    """Draws of 4,000 worlds, by a chi-square test with 19 degrees of freedom at a level of 0.1%: 43.8."""
    trainer = Trainer(small(*ON_LEVELS, "simulator.num_worlds=4000", "ppo.num_minibatches=4", "experience.num_steps=4"))
    sampler = trainer._sampler
    sampler.rates.update(outcomes([50] * 20, [0] * 5 + [50] * 5 + [25] * 5 + [5] * 5))
    trainer.update()
    weights = trainer.worlds.sim.level_weights.to_torch()
    assert equal_bits(weights, sampler.weights.expand(4000, -1).clone())
    assert weights[0].max() > 2 * weights[0].min()
    trainer.worlds.sim.reset()
    drawn = torch.bincount(trainer.worlds.sim.level_indices.to_torch()[:, 0].long(), minlength=20)
    expected = 4000 * sampler.weights
    assert ((drawn - expected).square() / expected).sum().item() < 43.8


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


# ---- Going on


def test_numbers_of_levels_that_no_run_has_are_refused():
    trainer = Trainer(small(*ON_LEVELS))
    before = trainer.checkpoint()
    for name, value in (("weights", 0), ("weights", -1), ("rates.episodes", -1)):
        tensors = {**before.tensors, f"levels.{name}": torch.full_like(before.tensors[f"levels.{name}"], value)}
        with pytest.raises(doorstep.StateError, match="levels have weights or rates there that are negative"):
            trainer.restore(replace(before, tensors=tensors))
        assert_equal_tensors(trainer.checkpoint(), before)


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
