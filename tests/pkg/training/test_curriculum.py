"""Curricula: weights, what they follow from, that worlds draw by them, and that resumed runs go on with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.training.runs import equal_bits, small  # noqa: E402

from doorstep._run_log import LOG  # noqa: E402
from doorstep.levels import curated, reference, save_levels  # noqa: E402
from doorstep.levels.files import AnyLevel  # noqa: E402
from doorstep.training import (  # noqa: E402
    Curriculum,
    CurriculumConfig,
    LearnabilityCurriculum,
    Trainer,
    TrainingConfig,
    TrainingError,
    UniformCurriculum,
    load_checkpoint,
    read_log,
    register_curriculum,
    resume,
    train,
)
from doorstep.training.curriculum import probabilities  # noqa: E402
from doorstep.training.levels import LevelOutcomes, SuccessRates  # noqa: E402
from doorstep.training.run import CHECKPOINT  # noqa: E402

ON_LEVELS = ("levels=curated", "curriculum.type=learnability")


def outcomes(episodes: Sequence[float], successes: Sequence[float]) -> LevelOutcomes:
    count = torch.tensor(episodes, dtype=torch.float64)
    return LevelOutcomes(count, torch.tensor(successes, dtype=torch.float64), torch.zeros_like(count))


def rates_after(*rollouts: tuple[Sequence[float], Sequence[float]], window: int = 50) -> SuccessRates:
    rates = SuccessRates(len(rollouts[0][0]), window)
    for episodes, successes in rollouts:
        rates.update(outcomes(episodes, successes))
    return rates


def weights_of(config: CurriculumConfig, rates: SuccessRates) -> Any:
    count = len(rates.episodes)
    nothing = outcomes([0] * count, [0] * count)
    return probabilities(config.make(count), nothing, rates)


# ---- Success rates


def test_a_success_rate_is_that_of_the_episodes_so_far() -> None:
    rates = rates_after(([4, 1, 0], [1, 1, 0]), window=1000)
    assert rates.means.tolist() == pytest.approx([0.25, 1, 0])
    assert rates.episodes.tolist() == pytest.approx([4, 1, 0], rel=0.01)


def test_old_episodes_are_forgotten() -> None:
    """After `window` further episodes, the older ones weigh 1/e of what they did."""
    rates = rates_after(([1000], [1000]), *[([1], [0])] * 50, window=50)
    assert rates.means.item() == pytest.approx(0.98**50)
    assert rates.means.item() == pytest.approx(0.368, abs=0.01)
    assert rates.episodes.item() == pytest.approx(50, rel=1e-6)


def test_rollouts_without_episodes_of_a_level_leave_its_rate() -> None:
    once = rates_after(([5, 5], [2, 3]))
    later = rates_after(([5, 5], [2, 3]), ([0, 7], [0, 7]))
    assert later.episodes[0] == once.episodes[0]
    assert later.successes[0] == once.successes[0]


# ---- Weights


@pytest.mark.parametrize("config", [UniformCurriculum(), LearnabilityCurriculum()])
def test_weights_are_positive_and_add_up_to_one(config: CurriculumConfig) -> None:
    generator = torch.Generator().manual_seed(3)
    for _ in range(20):
        episodes = torch.randint(0, 200, (30,), generator=generator).double()
        rates = SuccessRates(30, 50)
        rates.update(LevelOutcomes(episodes, (episodes * torch.rand(30, generator=generator)).round(), episodes))
        weights = weights_of(config, rates)
        assert weights.dtype == torch.float32
        assert bool((weights > 0).all())
        assert weights.double().sum().item() == pytest.approx(1, abs=1e-6)


def test_before_any_episode_all_levels_are_equally_likely() -> None:
    for config in (UniformCurriculum(), LearnabilityCurriculum()):
        assert weights_of(config, SuccessRates(4, 50)).tolist() == pytest.approx([0.25] * 4)


def test_levels_that_are_neither_solved_nor_hopeless_are_likelier() -> None:
    rates = rates_after(([80, 80, 80, 0], [80, 0, 40, 0]))
    solved, hopeless, half, untried = weights_of(LearnabilityCurriculum(), rates)
    assert solved == hopeless
    assert half > untried > 2 * solved
    assert half > 3 * solved


def test_more_certainty_makes_a_hopeless_level_less_likely() -> None:
    weights = weights_of(LearnabilityCurriculum(), rates_after(([1, 5, 40], [0, 0, 0])))
    assert weights.tolist() == sorted(weights.tolist(), reverse=True)


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_no_level_is_less_likely_than_its_uniform_share(share: float) -> None:
    rates = rates_after(([10**6] * 4, [10**6, 10**6, 0, 10**6 // 2]), window=10**6)
    weights = weights_of(LearnabilityCurriculum(uniform_share=share), rates)
    assert bool((weights >= share / 4 - 1e-6).all())
    assert weights[0].item() == pytest.approx(share / 4, abs=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("curriculum.type=hardest", "curriculum.type is 'hardest'; it must be a curriculum: 'uniform', 'learnability'"),
        ("curriculum.window=1", "curriculum.window is 1; it must be an integer, 2 to"),
        ("curriculum.uniform_share=1.5", "curriculum.uniform_share is 1.5; it must be a number, 0 to 1"),
    ],
)
def test_bad_values_are_refused_by_name(change: str, message: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=message):
        small(*ON_LEVELS, change)


def test_a_curriculum_needs_levels() -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"curriculum is .*'uniform' with levels='reference'"):
        TrainingConfig(curriculum=LearnabilityCurriculum())


# ---- Curricula of users


@dataclass(frozen=True, kw_only=True)
class FirstConfig(CurriculumConfig):
    type: ClassVar[str] = "first"


@dataclass(frozen=True, kw_only=True)
class WithoutClassConfig(CurriculumConfig):
    type: ClassVar[str] = "without_class"


@pytest.mark.usefixtures("undone_registrations")
def test_a_registered_curriculum_is_used_and_its_buffers_are_in_checkpoints(tmp_path: Path) -> None:
    @register_curriculum(FirstConfig)
    class First(Curriculum):
        """One level after the other, by the number of updates."""

        def __init__(self, config: FirstConfig, num_levels: int) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

        def weights(self, outcomes: LevelOutcomes, rates: SuccessRates) -> Any:
            self.calls += 1
            return torch.nn.functional.one_hot(self.calls - 1, len(rates.episodes))

    config = small("levels=curated", "curriculum.type=first", "num_updates=3")
    trainer = train(tmp_path, config=config)
    assert trainer.worlds.sim.level_weights.to_numpy().argmax(1).tolist() == [3] * config.simulator.num_worlds
    assert load_checkpoint(tmp_path / CHECKPOINT).tensors["levels.curriculum.calls"] == 4
    assert resume(tmp_path, num_updates=4).checkpoint().tensors["levels.curriculum.calls"] == 5


@pytest.mark.usefixtures("undone_registrations")
def test_a_run_with_an_absent_curriculum_is_played_and_says_what_to_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @register_curriculum(FirstConfig)
    class First(Curriculum):
        def __init__(self, config: FirstConfig, num_levels: int) -> None:
            super().__init__()

        def weights(self, outcomes: LevelOutcomes, rates: SuccessRates) -> Any:
            return rates.episodes + 1

    train(tmp_path, config=small("levels=curated", "curriculum.type=first", "num_updates=1"))
    monkeypatch.delitem(CurriculumConfig.registry._classes, "first")
    doorstep.load_policy(tmp_path)
    with pytest.raises(
        doorstep.StateError, match=r"FirstConfig, which no module has .*import tests.pkg.training.test_c"
    ):
        resume(tmp_path, num_updates=2)


@pytest.mark.usefixtures("undone_registrations")
@pytest.mark.parametrize("weights", [[1.0], [0.0] * 20, [-1.0] + [1.0] * 19, [float("nan")] * 20, None])
def test_a_curriculum_that_returns_no_weights_is_named(weights: Any) -> None:
    @register_curriculum(FirstConfig)
    class Wrong(Curriculum):
        def __init__(self, config: FirstConfig, num_levels: int) -> None:
            super().__init__()

        def weights(self, outcomes: LevelOutcomes, rates: SuccessRates) -> Any:
            return weights and torch.tensor(weights)

    with pytest.raises(TrainingError, match="curriculum Wrong returned"):
        Trainer(small("levels=curated", "curriculum.type=first"))


@pytest.mark.usefixtures("undone_registrations")
def test_a_config_without_a_class_is_refused() -> None:
    CurriculumConfig.registry.add(WithoutClassConfig)
    with pytest.raises(doorstep.ArgumentError, match=r"curriculum is WithoutClassConfig.*no class is registered"):
        Trainer(small("levels=curated", "curriculum.type=without_class"))


def test_only_configs_of_curricula_are_registered() -> None:
    with pytest.raises(doorstep.ArgumentError, match="config is"):
        register_curriculum(TrainingConfig)  # type: ignore[arg-type]


# ---- Worlds


def test_worlds_draw_levels_by_the_weights() -> None:
    """Draws of 4,000 worlds, by a chi-square test with 19 degrees of freedom at a level of 0.1%: 43.8."""
    trainer = Trainer(small(*ON_LEVELS, "simulator.num_worlds=4000", "ppo.num_minibatches=4", "experience.num_steps=4"))
    sampler = trainer._sampler
    assert sampler is not None
    sampler.rates.update(outcomes([50] * 20, [0] * 5 + [50] * 5 + [25] * 5 + [5] * 5))
    trainer.update()
    weights = trainer.worlds.sim.level_weights.to_torch()
    assert equal_bits(weights, sampler.weights.expand(4000, -1).clone())
    assert weights[0].max() > 2 * weights[0].min()
    trainer.worlds.sim.reset()
    drawn = torch.bincount(trainer.worlds.sim.level_indices.to_torch()[:, 0].long(), minlength=20)
    expected = 4000 * sampler.weights
    assert ((drawn - expected).square() / expected).sum().item() < 43.8


def test_episodes_count_for_the_level_that_was_played() -> None:
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


def test_without_levels_there_is_nothing_of_them() -> None:
    trainer = Trainer(small())
    record = trainer.update()
    assert (record.success, record.levels) == (None, {})
    assert not any(name.startswith("levels.") for name in trainer.checkpoint().tensors)
    assert trainer.worlds.sim.config.max_levels == 0


# ---- Going on


def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(tmp_path: Path) -> None:
    path = tmp_path / "levels.json"
    levels: list[AnyLevel] = [level.replace(episode_length=12) for level in curated().values()]
    save_levels(path, [*levels, reference()])
    config = small(f"levels={path}", "curriculum.type=learnability", "num_updates=7")
    whole = train(tmp_path / "whole", config=config)
    stops = iter([False, False, True])
    train(tmp_path / "parts", config=config, should_stop=lambda: next(stops))
    parts = resume(tmp_path / "parts")
    first, second = whole.checkpoint().tensors, parts.checkpoint().tensors
    assert first.keys() == second.keys()
    assert {"levels.weights", "levels.rates.episodes", "levels.rates.successes", "levels.digest"} <= first.keys()
    assert first["levels.rates.episodes"].sum() > 20
    assert all(equal_bits(tensor, second[name]) for name, tensor in first.items())
    expected, found = (read_log(tmp_path / name / LOG) for name in ("whole", "parts"))
    for one, other in zip(expected, found, strict=True):
        assert (one["levels"], one["success"]) == (other["levels"], other["success"])
    assert sum(level["episodes"] for record in found for level in record["levels"].values()) == sum(
        record["episodes"] for record in found
    )


def test_a_run_keeps_the_levels_of_its_file_and_refuses_others(tmp_path: Path) -> None:
    path = tmp_path / "levels.json"
    one, two = list(curated().values())[:2]
    save_levels(path, [one, two])
    train(tmp_path / "run", config=small(f"levels={path}", "num_updates=1"))
    path.unlink()
    resumed = resume(tmp_path / "run", num_updates=2)
    assert resumed.config.levels == (one, two)
    with pytest.raises(doorstep.StateError, match="the levels have changed since it was written"):
        resume(tmp_path / "run", levels=[two, one], num_updates=3)
    with pytest.raises(doorstep.StateError, match="does not fit: levels"):
        resume(tmp_path / "run", levels=one, num_updates=3)


@pytest.mark.parametrize(("name", "value"), [("weights", 0), ("weights", -1), ("rates.episodes", -1)])
def test_numbers_of_levels_that_no_run_has_are_refused(name: str, value: int) -> None:
    trainer = Trainer(small(*ON_LEVELS))
    before = trainer.checkpoint()
    tensors = {**before.tensors, f"levels.{name}": torch.full_like(before.tensors[f"levels.{name}"], value)}
    with pytest.raises(doorstep.StateError, match="levels have weights or rates there that are negative"):
        trainer.restore(replace(before, tensors=tensors))
    assert all(equal_bits(tensor, before.tensors[key]) for key, tensor in trainer.checkpoint().tensors.items())


def test_weights_of_levels_multiply_those_of_the_curriculum() -> None:
    config = small().changed(levels=list(curated().values())[:3], level_weights=(0, 1, 3))
    trainer = Trainer(config)
    for _ in range(3):
        record = trainer.update()
    assert trainer.worlds.sim.level_weights[0].tolist() == [0, 0.25, 0.75]
    assert all(level.weight in (0.25, 0.75) for level in record.levels.values())


def test_the_curriculum_of_a_resumed_run_may_change(tmp_path: Path) -> None:
    train(tmp_path, config=small("levels=curated", "num_updates=2"))
    changes: dict[str, Any] = {"curriculum.type": "learnability"}
    trainer = resume(tmp_path, num_updates=3, **changes)
    assert isinstance(trainer.config.curriculum, LearnabilityCurriculum)
    assert trainer.updates == 3


def test_a_run_begins_with_what_another_one_learned_in_other_levels() -> None:
    learned = Trainer(small())
    learned.update()
    trainer = Trainer(small().changed("levels=curated"))
    trainer.begin_with(learned.checkpoint())
    assert torch.equal(trainer.network.actor.weight, learned.network.actor.weight)
