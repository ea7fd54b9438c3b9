"""The levels of a run: which episodes in them succeeded, and how often that was so lately."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import NamedTuple, final

import torch
from torch import nn

from doorstep.errors import ArgumentError
from doorstep.evaluation.arenas import Arena, find_arenas
from doorstep.levels import GeneratedLevel
from doorstep.levels.files import AnyLevel
from doorstep.training.config import TrainingConfig


class LevelOutcomes(NamedTuple):
    """The episodes that ended in a rollout, as sums for each of L levels: float64 [L].

    episodes: how many ended.
    successes: how many of them succeeded: the goal was reached, or all agents were beyond the level's exit, though
        perhaps not at the same time.
    returns: sum of their returns; that of an episode is the mean of its agents' sums of rewards.
    """

    episodes: torch.Tensor
    successes: torch.Tensor
    returns: torch.Tensor


@final
class SuccessRates(nn.Module):  # type: ignore[misc]
    """How often each of L levels was solved lately. An episode that is `window` episodes of its level older weighs 1/e.

    Attributes:
        episodes: float64 [L], that the estimates rest on: 0 before the first one, at most `window`.
        successes: float64 [L], how many of these succeeded.
    """

    episodes: torch.Tensor
    successes: torch.Tensor

    def __init__(self, num_levels: int, window: int) -> None:
        super().__init__()
        self._decay = 1 - 1 / window
        self.register_buffer("episodes", torch.zeros(num_levels, dtype=torch.float64, device="cpu"))
        self.register_buffer("successes", torch.zeros(num_levels, dtype=torch.float64, device="cpu"))

    def update(self, outcomes: LevelOutcomes) -> None:
        """Takes in the episodes of a rollout, which are equally old."""
        kept = self._decay**outcomes.episodes
        added = (1 - kept) / (1 - self._decay)  # decay^0 + ... + decay^(episodes - 1)
        rates = outcomes.successes / outcomes.episodes.clamp(min=1)
        self.episodes.mul_(kept).add_(added)
        self.successes.mul_(kept).add_(added * rates)

    @property
    def means(self) -> torch.Tensor:
        """Share of episodes that succeeded, float64 [L]; 0 where none has ended."""
        return self.successes / torch.where(self.episodes > 0, self.episodes, 1)


@final
class TrainingLevels:
    """What a run plays, and how success is told.

    Attributes:
        names: of the levels, all different.
        levels: themselves.
        digest: uint8 [32], which other levels do not have.
        has_reference_rooms: bool [L]: its rooms are of the types of the reference's, and agents begin in the first.
    """

    def __init__(self, arenas: Sequence[Arena], device: torch.device) -> None:
        self.names = tuple(arena.name for arena in arenas)
        self.levels = levels_of(arenas)
        text = "\n".join(level.to_json() for level in self.levels)
        self.digest = torch.frombuffer(bytearray(hashlib.sha256(text.encode()).digest()), dtype=torch.uint8)
        ends = [(_level_of(arena).exit, start_of_last_room(arena)) for arena in arenas]
        self._exits, self._last_rooms = torch.tensor(ends, dtype=torch.float32, device=device).T
        self.has_reference_rooms = torch.tensor(list(map(has_reference_rooms, arenas)), device=device)

    def succeeded(self, levels: torch.Tensor, terminations: torch.Tensor, largest_y: torch.Tensor) -> torch.Tensor:
        """Whether episodes that ended succeeded, bool [W]; arguments as of `outcomes()`."""
        return terminations | (largest_y > self._exits[levels][:, None]).all(1)

    def in_last_room(self, levels: torch.Tensor, largest_y: torch.Tensor) -> torch.Tensor:
        """Whether an agent has been in the last room of its level, bool [W]."""
        return (largest_y > self._last_rooms[levels][:, None]).any(1)

    def outcomes(
        self,
        levels: torch.Tensor,
        ended: torch.Tensor,
        terminations: torch.Tensor,
        largest_y: torch.Tensor,
        returns: torch.Tensor,
    ) -> LevelOutcomes:
        """The sums over episodes that ended, of W worlds or steps of worlds.

        Args:
            levels: int64 [W], that were played.
            ended, terminations: bool [W]: an episode ended, and did so by its goal.
            largest_y, returns: float [W, A], of the episodes that ended: metres, sums of rewards.
        """
        succeeded = self.succeeded(levels, terminations, largest_y)
        count = len(self.levels)

        def sums(weights: torch.Tensor) -> torch.Tensor:
            return torch.zeros(count, dtype=torch.float64, device=levels.device).index_add_(0, levels, weights.double())

        return LevelOutcomes(sums(ended), sums(ended & succeeded), sums(ended * returns.mean(1)))


def arenas_of(config: TrainingConfig) -> list[Arena]:
    """The levels of a config and their names.

    Raises:
        ArgumentError: the levels are refused, or one has neither a goal nor a door.
        OSError: the file cannot be read.
    """
    arenas = find_arenas(config.levels, config.simulator.num_agents)
    for arena in arenas:
        if not arena.has_goal and math.isinf(_level_of(arena).exit):
            raise ArgumentError(
                f"level {arena.name!r} has neither a goal nor a room with a door, so that no episode in it can succeed",
                argument="levels",
                hint="give it a goal",
            )
    return arenas


def _level_of(arena: Arena) -> AnyLevel:
    return arena.level or GeneratedLevel()


def has_reference_rooms(arena: Arena) -> bool:
    """Whether agents pass rooms of the types of the reference's, all three."""
    level, reference = arena.level, GeneratedLevel()
    if not isinstance(level, GeneratedLevel):
        return level is None
    return (level.room_types, level.first_room) == (reference.room_types, reference.first_room)


def levels_of(arenas: Sequence[Arena]) -> tuple[AnyLevel, ...]:
    return tuple(arena.level for arena in arenas if arena.level is not None)


def start_of_last_room(arena: Arena) -> float:
    """The y where the last room with a door begins, metres; 0 in a level without one."""
    level = arena.level
    if level is None or isinstance(level, GeneratedLevel):
        return GeneratedLevel().room_ends[-2]
    return max((room.start for room in level.rooms if room.door is not None), default=0.0)
