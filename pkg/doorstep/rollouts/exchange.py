"""A policy whose actions come from another thread: rows that replicas ask for are handed out, and wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native import ACTIONS
from doorstep.errors import ClosedError

_SLICE_SECONDS = 0.05  # of a wait for actions, after which it is seen that the engine ends


@final
class AskedRows(NamedTuple):
    """What a replica needs actions for: arrays of R rows, all agents of a policy world by world."""

    replica: int
    worlds: NDArray[np.int32]  # slots
    steps: NDArray[np.int64]  # that the episode has made
    tags: NDArray[np.uint64]  # of the library
    observations: NDArray[np.float32]  # [R, F]
    rewards: NDArray[np.float32]  # of the step before


@final
class Row(NamedTuple):
    """An environment that waits for its caller: the arrays of its agents."""

    env: int
    step: int
    observations: NDArray[np.float32]  # [K, F]
    rewards: NDArray[np.float32]  # [K]
    ended: Any = None  # an EpisodeResult: this was its last step


class _Block:
    """The environments of one call of a replica, which goes on when all have actions."""

    def __init__(self, envs: list[int], num_agents: int) -> None:
        self.envs = envs
        self.actions = np.zeros((len(envs), num_agents, len(ACTIONS)), np.int32)
        self.missing = len(envs)


@final
class Exchange:
    """Takes rows from replicas, and actions for them from callers. Refers to no engine.

    Args:
        num_agents: K, of an environment, whose actions are sent.
    """

    def __init__(self, num_agents: int) -> None:
        self._num_agents = num_agents
        self.changed = threading.Condition()
        self.ready: dict[int, Row] = {}  # by environment, the one that waits longest first
        self.closed = False
        self.num_blocked = 0  # replicas that wait for actions
        self.env_of: Callable[[int], int]  # by a library's tag
        self.is_ending: Callable[[], bool]  # the engine
        self._places: dict[int, tuple[_Block, int]] = {}  # by environment of them: where its actions go
        self._envs: dict[tuple[int, int], int] = {}  # by replica and world

    @property
    def num_settled(self) -> int:
        """Environments of replicas that wait for actions."""
        return len(self._places)

    def __call__(self, asked: AskedRows) -> NDArray[np.int32]:
        """Called by a replica. Waits until all rows have actions; int32 [R, 4].

        Raises:
            ClosedError: it was closed, or the engine ends.
        """
        with self.changed:
            rows = [self._row_at(asked, first) for first in range(0, len(asked.worlds), self._num_agents)]
            block = _Block([row.env for row in rows], self._num_agents)
            for place, row in enumerate(rows):
                self.ready[row.env] = row
                self._places[row.env] = block, place
            self.num_blocked += 1
            self.changed.notify_all()
            while block.missing and not self.closed and not self.is_ending():
                self.changed.wait(_SLICE_SECONDS)
            if block.missing:
                self._go_on(block)
                raise ClosedError("the environments were closed")
        return block.actions.reshape(-1, len(ACTIONS))

    def _go_on(self, block: _Block) -> None:
        self.num_blocked -= 1
        for env in block.envs:
            del self._places[env]
        self.changed.notify_all()

    def _row_at(self, asked: AskedRows, first: int) -> Row:
        place, step = (asked.replica, int(asked.worlds[first])), int(asked.steps[first])
        if step == 0:
            self._envs[place] = self.env_of(int(asked.tags[first]))
        rows = slice(first, first + self._num_agents)
        rewards = asked.rewards[rows] if step else np.zeros(self._num_agents, np.float32)
        return Row(self._envs[place], step, asked.observations[rows], rewards)

    def give(self, env: int, actions: NDArray[np.int32]) -> None:
        """The actions [K, 4] of an environment that a replica waits for. With the lock held."""
        block, place = self._places[env]
        block.actions[place] = actions
        block.missing -= 1
        if not block.missing:
            self._go_on(block)

    def end(self, row: Row) -> None:
        """An environment whose episode has ended."""
        with self.changed:
            self.ready[row.env] = row
            self.changed.notify_all()

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.changed.notify_all()
