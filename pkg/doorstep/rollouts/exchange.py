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

    def __init__(self, rows: list[Row | None], num_agents: int) -> None:
        self.actions = np.zeros((len(rows), num_agents, len(ACTIONS)), np.int32)
        self.missing = {row.env: place for place, row in enumerate(rows) if row}


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
        self.envs_of: Callable[[list[int]], list[int | None]]  # by the library's tags; None: the episode has ended
        self.is_ending: Callable[[], bool]  # the engine
        self._blocks: dict[int, _Block] = {}  # by environment of them

    @property
    def num_settled(self) -> int:
        """Environments of replicas that wait for actions."""
        return len(self._blocks)

    def __call__(self, asked: AskedRows) -> NDArray[np.int32]:
        """Called by a replica. Waits until all rows have actions; int32 [R, 4].

        Raises:
            ClosedError: it was closed, or the engine ends.
        """
        with self.changed:
            rows = self._rows_of(asked)
            block = _Block(rows, self._num_agents)
            for row in filter(None, rows):
                self._forget(row.env)  # asked for by a replica that has failed
                self.ready[row.env] = row
                self._blocks[row.env] = block
            self.num_blocked += bool(block.missing)
            self.changed.notify_all()
            while block.missing and not self.closed and not self.is_ending():
                self.changed.wait(_SLICE_SECONDS)
            if block.missing:
                self._go_on(block)
                raise ClosedError("the environments were closed")
        return block.actions.reshape(-1, len(ACTIONS))

    def _go_on(self, block: _Block) -> None:
        self.num_blocked -= 1
        self._blocks = {env: other for env, other in self._blocks.items() if other is not block}
        self.changed.notify_all()

    def _rows_of(self, asked: AskedRows) -> list[Row | None]:
        """An environment's each; None: its episode has ended meanwhile, because the policy of another agent failed."""
        envs = self.envs_of(asked.tags[:: self._num_agents].tolist())
        return [
            None if env is None else self._row_at(asked, world * self._num_agents, env)
            for world, env in enumerate(envs)
        ]

    def _row_at(self, asked: AskedRows, first: int, env: int) -> Row:
        step, rows = int(asked.steps[first]), slice(first, first + self._num_agents)
        rewards = asked.rewards[rows] if step else np.zeros(self._num_agents, np.float32)
        return Row(env, step, asked.observations[rows], rewards)

    def give(self, env: int, actions: NDArray[np.int32]) -> None:
        """The actions [K, 4] of an environment; unused if its episode has ended meanwhile. With the lock held."""
        if block := self._blocks.get(env):
            block.actions[block.missing[env]] = actions
            self._settle(block, env)

    def _settle(self, block: _Block, env: int) -> None:
        del block.missing[env]
        if not block.missing:
            self._go_on(block)

    def end(self, row: Row) -> None:
        """An environment whose episode has ended. It may have a row whose actions are missing: the policy of another
        agent has failed. Its replica waits for them no longer."""
        with self.changed:
            self._forget(row.env)
            self.ready[row.env] = row
            self.changed.notify_all()

    def _forget(self, env: int) -> None:
        """The row of an environment whose actions are not needed any more."""
        self.ready.pop(env, None)
        block = self._blocks.pop(env, None)
        if block and env in block.missing:
            self._settle(block, env)

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.changed.notify_all()
