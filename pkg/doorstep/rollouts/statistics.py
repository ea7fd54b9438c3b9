"""`RolloutStatistics`: what the replicas of an engine have done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from doorstep._native._generated import ReplicaInfo


@final
@dataclass(frozen=True)
class RolloutStatistics:
    """Sums over the replicas of an engine, since its creation.

    Attributes:
        episodes: that were begun.
        steps: of simulators.
        episode_steps: of episodes: the worlds that played one, summed over the steps.
        world_steps: of all worlds, summed likewise.
    """

    episodes: int
    steps: int
    episode_steps: int
    world_steps: int

    @property
    def occupancy(self) -> float:
        """The part of the worlds' steps that were played for a request; 0 before the first step."""
        return self.episode_steps / self.world_steps if self.world_steps else 0.0

    @classmethod
    def of(cls, replicas: Sequence[ReplicaInfo]) -> RolloutStatistics:
        return cls(
            episodes=sum(info.episodes for info in replicas),
            steps=sum(info.steps for info in replicas),
            episode_steps=sum(info.world_steps for info in replicas),
            world_steps=sum(info.steps * info.num_worlds for info in replicas),
        )
