"""Retries: episodes that begin in the middle of one that failed, so that agents meet what they cannot do more often."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import final

import torch
from torch import nn

from doorstep.errors import StateError
from doorstep.training.checkpoint import Checkpoint, misfit
from doorstep.training.config import TrainingConfig
from doorstep.training.distributed import Ranks
from doorstep.training.worlds import Worlds

MOMENTS = (0.7, 0.55, 0.4)  # of an episode's steps that remain, when it may be saved
KEPT = 4  # failed episodes of a world


@final
class Retries(nn.Module):  # type: ignore[misc]
    """Decides after each step which worlds go on in the middle of a failed episode of their own. The episode that would
    have followed is postponed, so that worlds play the levels that they would play without retries.

    Its buffers have a row for each of this rank's N worlds; checkpoints contain those of all ranks.

    Attributes:
        is_retry: bool [N]: the present episode is one.
    """

    is_retry: torch.Tensor
    failed: torch.Tensor
    num_failed: torch.Tensor
    candidate: torch.Tensor
    num_candidates: torch.Tensor
    postponed: torch.Tensor

    def __init__(self, config: TrainingConfig, worlds: Worlds, ranks: Ranks) -> None:
        super().__init__()
        self._sim = sim = worlds.sim
        self._total = config.simulator.num_worlds
        self._own = ranks.rows(self._total)
        share = config.experience.retries
        self._chance = share / (1 - share)  # a natural episode is followed by a retry
        self._moments = torch.tensor([round(part * sim.episode_length) for part in MOMENTS], device="cpu")
        self._steps_remaining = sim.steps_remaining.to_torch()[:, 0, 0]
        count, size = sim.num_worlds, len(sim.save([0]))
        zeros = functools.partial(torch.zeros, device="cpu")
        self.register_buffer("is_retry", zeros(count, dtype=torch.bool))
        self.register_buffer("failed", zeros(count, KEPT, size, dtype=torch.uint8))
        self.register_buffer("num_failed", zeros(count, dtype=torch.int64))
        self.register_buffer("candidate", zeros(count, size, dtype=torch.uint8))
        self.register_buffer("num_candidates", zeros(count, dtype=torch.int64))
        self.register_buffer("postponed", zeros(count, size, dtype=torch.uint8))

    def step(
        self, ended: torch.Tensor, succeeded: torch.Tensor, in_last_room: torch.Tensor, generator: torch.Generator
    ) -> None:
        """After a step, before what follows is observed.

        Args:
            ended, succeeded: bool [N]: the episode ended with the step, and how.
            in_last_room: bool [N]: an agent of the present episode has been in the last room.
            generator: in the same state on all ranks.
        """
        draws = torch.rand(self._total, 3, generator=generator, dtype=torch.float32, device=generator.device)
        draws = draws[self._own].cpu()
        ended, succeeded, in_last_room = ended.cpu(), succeeded.cpu(), in_last_room.cpu()
        is_moment = torch.isin(self._steps_remaining.cpu(), self._moments)
        for world in (is_moment & in_last_room & ~self.is_retry & ~ended).nonzero()[:, 0].tolist():
            self._consider(world, draws[world])
        for world in ended.nonzero()[:, 0].tolist():
            self._end(world, bool(succeeded[world]), draws[world])

    # ---- Going on

    def check(self, checkpoint: Checkpoint) -> None:
        """Refuses a checkpoint with saves that this rank's worlds cannot restore.

        Raises:
            StateError: there is one. Nothing has changed.
        """
        present = self._sim.save()
        rows = self._own_rows(checkpoint)
        try:
            if (rows["num_failed"] < 0).any():
                raise StateError("num_failed is negative")
            for world, saved in _used_saves(rows):
                self._restore(world, saved)
        except StateError as error:
            raise misfit(f"retries cannot go on from it: {error}") from error
        finally:
            self._sim.restore(present)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Goes on as the checkpoint says, which was checked."""
        self.load_state_dict(self._own_rows(checkpoint))

    def _own_rows(self, checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
        return {name: rows[self._own] for name, rows in checkpoint.part("retries").items()}

    # ---- Deciding

    def _consider(self, world: int, draws: torch.Tensor) -> None:
        """Each moment of an episode is equally likely to be the one that is kept."""
        self.num_candidates[world] += 1
        if draws[0] * self.num_candidates[world] < 1:
            self.candidate[world] = self._save(world)

    def _end(self, world: int, succeeded: bool, draws: torch.Tensor) -> None:
        if self.is_retry[world]:
            self.is_retry[world] = False
            self._restore(world, self.postponed[world])
            return
        if self.num_candidates[world] and not succeeded:
            self.failed[world, self.num_failed[world] % KEPT] = self.candidate[world]
            self.num_failed[world] += 1
        self.num_candidates[world] = 0
        kept = min(int(self.num_failed[world]), KEPT)
        if kept and draws[1] < self._chance:
            self.is_retry[world] = True
            self.postponed[world] = self._save(world)
            self._restore(world, self.failed[world, int(draws[2] * kept)])

    def _save(self, world: int) -> torch.Tensor:
        return torch.frombuffer(bytearray(self._sim.save([world])), dtype=torch.uint8)

    def _restore(self, world: int, saved: torch.Tensor) -> None:
        self._sim.restore(saved.numpy().tobytes(), [world])


def _used_saves(rows: Mapping[str, torch.Tensor]) -> Iterator[tuple[int, torch.Tensor]]:
    """The saves of worlds that a retry may restore, with the worlds."""
    for world in range(len(rows["is_retry"])):
        yield from ((world, saved) for saved in rows["failed"][world, : int(rows["num_failed"][world])])
        if rows["num_candidates"][world]:
            yield world, rows["candidate"][world]
        if rows["is_retry"][world]:
            yield world, rows["postponed"][world]
