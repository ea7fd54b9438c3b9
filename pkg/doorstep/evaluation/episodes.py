"""Episodes that have been played, as arrays, and the seeds from which they follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_integer
from doorstep._native import MAX_SEED

MOST_EPISODES = 1_000_000

# Called with the number of episodes that have just ended.
Ended: TypeAlias = Callable[[int], None]


@final
@dataclass(frozen=True, eq=False)
class Episodes:
    """E episodes of A agents, in the order of their seeds.

    Attributes:
        returns: float32 [E, A], the sum of each agent's rewards.
        max_y: float32 [E, A], the largest y of each agent, metres.
        lengths: int64 [E], steps.
        reached_goal: bool [E], whether the goal ended the episode.
    """

    returns: NDArray[np.float32]
    max_y: NDArray[np.float32]
    lengths: NDArray[np.int64]
    reached_goal: NDArray[np.bool_]

    @classmethod
    def room_for(cls, count: int, num_agents: int) -> Episodes:
        """Arrays to be filled in."""
        rows = (count, num_agents)
        return cls(
            returns=np.zeros(rows, np.float32),
            max_y=np.zeros(rows, np.float32),
            lengths=np.zeros(count, np.int64),
            reached_goal=np.zeros(count, np.bool_),
        )


def episode_seeds(seed: int, count: int) -> NDArray[np.int64]:
    """The seeds of an evaluation's episodes, int64 [count]; a smaller count has the first of them.

    An episode is that of an `EpisodeRequest` with its seed: without a level the first one of `Simulator(1, seed=...)`.

    >>> from doorstep.evaluation import episode_seeds
    >>> episode_seeds(1, 3).tolist() == episode_seeds(1, 5)[:3].tolist()
    True

    Args:
        seed: of the evaluation, 0 to 2**32 - 1.
        count: 1 to 1,000,000.

    Raises:
        ArgumentError: an argument is refused.
    """
    sequence = np.random.SeedSequence(check_integer("seed", seed, 0, MAX_SEED))
    return sequence.generate_state(check_integer("count", count, 1, MOST_EPISODES), np.uint32).astype(np.int64)
