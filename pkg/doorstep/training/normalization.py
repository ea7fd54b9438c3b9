"""Running means and deviations, by which observations and values are normalised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

import torch
from torch import nn

from doorstep.training.config import TrainingConfig
from doorstep.training.distributed import Ranks

OBSERVATION_DECAY, LEAST_OBSERVATION_DEVIATION = 0.99, 0.05


class Scale(NamedTuple):
    """Mean and deviation, float32."""

    mean: torch.Tensor
    deviation: torch.Tensor

    def normalize(self, numbers: torch.Tensor, out: torch.Tensor) -> None:
        """Writes (numbers - mean) / deviation, in one pass; `out` may be `numbers`."""
        torch.addcmul(-self.mean / self.deviation, numbers, 1 / self.deviation, out=out)

    def restore(self, normalized: torch.Tensor) -> torch.Tensor:
        """The numbers that were normalised."""
        return normalized * self.deviation + self.mean


@final
class RunningMoments(nn.Module):  # type: ignore[misc]
    """Exponentially weighted mean and mean square, corrected for their beginning at zero. Sums are float64.

    shape: of an element of a batch. decay: weight of what was when a batch comes in; 0.99 remembers about a hundred.
    least: deviations are at least this.
    """

    mean: torch.Tensor
    square: torch.Tensor
    weight: torch.Tensor

    def __init__(self, shape: Sequence[int], decay: float, least: float) -> None:
        super().__init__()
        self.decay = decay
        self.least = least
        self.register_buffer("mean", torch.zeros(tuple(shape), dtype=torch.float64, device="cpu"))
        self.register_buffer("square", torch.zeros(tuple(shape), dtype=torch.float64, device="cpu"))
        self.register_buffer("weight", torch.zeros((), dtype=torch.float64, device="cpu"))

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def update(self, batch: torch.Tensor, ranks: Ranks) -> None:
        """Together: takes in a batch [..., *shape] of each rank, all of one size."""
        rows = batch.reshape(-1, *self.mean.shape)
        first = rows.mean(0, dtype=torch.float64) / ranks.count
        second = rows.double().square().mean(0) / ranks.count
        ranks.sum(first, second)
        self.mean.lerp_(first, 1 - self.decay)
        self.square.lerp_(second, 1 - self.decay)
        self.weight.lerp_(torch.ones_like(self.weight), 1 - self.decay)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def scale(self) -> Scale:
        """The present mean and deviation; 0 and 1 before the first batch."""
        weight = torch.where(self.weight > 0, self.weight, 1)
        mean = self.mean / weight
        deviation = (self.square / weight - mean.square()).clamp(min=self.least**2).sqrt()
        deviation = torch.where(self.weight > 0, deviation, 1)
        return Scale(mean.float(), deviation.float())


def make_observation_moments(config: TrainingConfig, shape: tuple[int, ...]) -> RunningMoments | None:
    """None: observations are used as they are."""
    if config.sees_pixels or not config.experience.normalize_observations:
        return None
    return RunningMoments(shape, OBSERVATION_DECAY, LEAST_OBSERVATION_DEVIATION)
