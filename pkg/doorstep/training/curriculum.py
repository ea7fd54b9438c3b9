"""Curricula: how likely worlds draw each level, as it follows from how often agents solve it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, final

import torch
from torch import nn

from doorstep.training.config import CurriculumConfig, LearnabilityCurriculum, UniformCurriculum
from doorstep.training.errors import TrainingError
from doorstep.training.levels import LevelOutcomes, SuccessRates


class Curriculum(nn.Module):  # type: ignore[misc]
    """How likely worlds draw each level. The class is called with its config and the number of levels.

    Checkpoints contain the buffers that it registers.
    """

    def weights(self, outcomes: LevelOutcomes, rates: SuccessRates) -> torch.Tensor:
        """Called before the first rollout and after each one.

        Args:
            outcomes: of the rollout; zeros before the first one.
            rates: how often each level was solved lately, the rollout included.

        Returns:
            How likely each level is, relative to the sum: numbers [L], not negative, not all zero.
        """
        raise NotImplementedError


MakeCurriculum = TypeVar("MakeCurriculum", bound="Callable[[Any, int], Curriculum]")


def register_curriculum(config: type[CurriculumConfig]) -> Callable[[MakeCurriculum], MakeCurriculum]:
    """A class decorator: runs with this config use the class. The config has a type tag of its own, by which files and
    options name it.

    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> import torch
    >>> from doorstep.training import Curriculum, CurriculumConfig, Trainer, preset, register_curriculum
    >>> @dataclass(frozen=True, kw_only=True)
    ... class HardestConfig(CurriculumConfig):
    ...     type: ClassVar[str] = "hardest"
    >>> @register_curriculum(HardestConfig)
    ... class Hardest(Curriculum):
    ...     def __init__(self, config, num_levels):
    ...         super().__init__()
    ...     def weights(self, outcomes, rates):
    ...         return 1.1 - rates.means
    >>> config = preset("default").changed("levels=curated", "curriculum.type=hardest", "simulator.num_worlds=8")
    >>> record = Trainer(config.changed("ppo.num_minibatches=1")).update()

    Raises:
        ArgumentError: the config has no tag, or that of another one.
    """
    return CurriculumConfig.implement(config)


def probabilities(curriculum: Curriculum, outcomes: LevelOutcomes, rates: SuccessRates) -> torch.Tensor:
    """The weights of a curriculum as float32 [L] that add up to 1.

    Raises:
        TrainingError: they are not numbers [L], not negative and not all zero.
    """
    weights = curriculum.weights(outcomes, rates)
    expected = rates.episodes.shape
    if not isinstance(weights, torch.Tensor) or weights.shape != expected:
        returned = list(weights.shape) if isinstance(weights, torch.Tensor) else type(weights).__name__
        problem = f"returned {returned}; it must return a tensor {list(expected)}"
    elif not (torch.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        problem = f"returned {weights.tolist()}; weights must be finite, not negative, and not all zero"
    else:
        exact = weights.detach().to(rates.episodes)
        return (exact / exact.sum()).float()
    raise TrainingError(
        f"curriculum {type(curriculum).__name__} {problem}", hint="see doorstep.training.Curriculum.weights"
    )


@register_curriculum(UniformCurriculum)
@final
class Uniform(Curriculum):
    """All levels are equally likely."""

    def __init__(self, config: UniformCurriculum, num_levels: int) -> None:
        super().__init__()

    def weights(self, outcomes: LevelOutcomes, rates: SuccessRates) -> torch.Tensor:
        return torch.ones_like(rates.episodes)


@register_curriculum(LearnabilityCurriculum)
@final
class Learnability(Curriculum):
    """Levels that are neither solved nor hopeless are likely: by the expectation of p (1 - p), where p is the chance of
    success (Tzannetos et al., 2023; Rutherford et al., 2024).

    Before any episode, all values of p are equally likely, so that p has a beta distribution afterwards. The
    expectation of p (1 - p) is then 1/6 for a level that was never tried, which is near to its maximum, 1/4.
    """

    def __init__(self, config: LearnabilityCurriculum, num_levels: int) -> None:
        super().__init__()
        self._uniform_share = config.uniform_share

    def weights(self, outcomes: LevelOutcomes, rates: SuccessRates) -> torch.Tensor:
        won, lost = rates.successes + 1, rates.episodes - rates.successes + 1
        learnability = won * lost / ((won + lost) * (won + lost + 1))
        return (1 - self._uniform_share) * learnability / learnability.sum() + self._uniform_share / len(learnability)
