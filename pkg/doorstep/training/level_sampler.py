"""What decides which levels the worlds of a run play: success so far, and the curriculum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import nn

from doorstep.training.checkpoint import Checkpoint, misfit
from doorstep.training.config import TrainingConfig
from doorstep.training.curriculum import Curriculum, probabilities
from doorstep.training.distributed import Ranks
from doorstep.training.levels import LevelOutcomes, SuccessRates, TrainingLevels
from doorstep.training.rollout import Rollout
from doorstep.training.worlds import Worlds


@final
@dataclass(frozen=True)
class LevelRecord:
    """A level in an update.

    Attributes:
        episodes: that ended in the rollout.
        successes: how many of them succeeded.
        weight: how likely worlds draw the level after the update.
    """

    episodes: int
    successes: int
    weight: float


@final
class LevelSampler(nn.Module):  # type: ignore[misc]
    """Sets how likely worlds draw each level. Its state is what checkpoints contain of it.

    Attributes:
        rates: how often each level was solved lately.
    """

    digest: torch.Tensor
    weights: torch.Tensor

    def __init__(self, config: TrainingConfig, levels: TrainingLevels, worlds: Worlds) -> None:
        super().__init__()
        count, device = len(levels.names), worlds.device
        self._worlds = worlds
        self._levels = levels
        self._given = torch.tensor(config.level_weights or (1.0,) * count, dtype=torch.float32, device=device)
        self.rates = SuccessRates(count, config.curriculum.window).to(device)
        self.curriculum: Curriculum = config.curriculum.make(count).to(device)
        self.register_buffer("digest", self._levels.digest)
        none = torch.zeros(count, dtype=torch.float64, device=device)
        self.register_buffer("weights", self._weights(LevelOutcomes(none, none, none)))
        worlds.draw_levels(self.weights)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def update(self, rollout: Rollout, ranks: Ranks) -> dict[str, LevelRecord]:
        """Together: takes in the episodes that ended in the rollouts of all ranks; returns a record of each level in
        which there were any.

        Raises:
            TrainingError: the curriculum returned something else than weights.
        """
        outcomes = self._outcomes(rollout)
        ranks.sum(*outcomes)
        self.rates.update(outcomes)
        self.weights.copy_(self._weights(outcomes))
        self._worlds.draw_levels(self.weights)
        rows = zip(self._levels.names, *(one.tolist() for one in (*outcomes[:2], self.weights)), strict=True)
        return {name: LevelRecord(int(count), int(won), weight) for name, count, won, weight in rows if count}

    def _weights(self, outcomes: LevelOutcomes) -> torch.Tensor:
        weights = probabilities(self.curriculum, outcomes, self.rates) * self._given
        return weights / weights.sum()

    def success(self) -> float:
        """The mean of the levels' success rates, whatever the curriculum; levels in which no episode ended have 0."""
        return float(self.rates.means.mean())

    def _outcomes(self, rollout: Rollout) -> LevelOutcomes:
        num_worlds = rollout.levels.shape[1]

        def by_world(rows: torch.Tensor) -> torch.Tensor:
            return rows.unflatten(1, (num_worlds, -1)).flatten(0, 1)

        return self._levels.outcomes(
            rollout.levels.flatten(),
            by_world(rollout.ended)[:, 0] & rollout.natural.flatten(),
            by_world(rollout.terminations)[:, 0],
            by_world(rollout.largest_y),
            by_world(rollout.returns),
        )

    # ---- Stopping and going on

    def check(self, checkpoint: Checkpoint) -> None:
        """Refuses a checkpoint of other levels, and numbers that no run has.

        Raises:
            StateError: the levels differ; a weight or a rate is negative, or all weights are zero.
        """
        if not torch.equal(checkpoint.tensors["levels.digest"], self.digest.cpu()):
            hint = "resume with the levels of the run, or begin a new one"
            raise misfit("the levels have changed since it was written", hint)
        weights = checkpoint.tensors["levels.weights"]
        numbers = (weights, *checkpoint.part("levels.rates").values())
        if any((one < 0).any() for one in numbers) or not weights.any():
            raise misfit("levels have weights or rates there that are negative, or no weight")

    def restore(self, checkpoint: Checkpoint) -> None:
        """Goes on as the checkpoint says, which was checked."""
        self.load_state_dict(checkpoint.part("levels"))
        self._worlds.draw_levels(self.weights)
