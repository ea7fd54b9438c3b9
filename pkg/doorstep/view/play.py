"""What is watched: worlds that go on by themselves or are played by hand, and recordings.

Both step a simulator that they are given. A step that fails raises what the simulator raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from doorstep.simulator import Simulator
from doorstep.view.policies import Policy

PlayerAction = Callable[[], tuple[int, int, int, int]]


class Play(Protocol):
    """Something that can be stepped."""

    position: int
    """Steps taken."""

    @property
    def length(self) -> int | None:
        """Steps there are; None: no end."""

    def step(self) -> None:
        """Steps once; nothing happens at the end."""


class LivePlay:
    """A policy acts for all agents but one, perhaps: the one whom a player moves."""

    length = None

    def __init__(self, sim: Simulator, policy: Policy) -> None:
        self.position = 0
        self.player: tuple[int, int, PlayerAction] | None = None  # world, agent, and what it does
        self._sim = sim
        self._policy = policy

    def step(self) -> None:
        actions = self._policy()
        if self.player is not None:
            world, agent, act = self.player
            actions[world, agent] = act()
        self._sim.actions = actions
        self._sim.step()
        self.position += 1

    def reset(self, world: int) -> None:
        """Gives a world its next level."""
        self._sim.reset([world])


_MOST_SNAPSHOT_BYTES = 256 << 20
_FEWEST_STEPS_BETWEEN_SNAPSHOTS = 20


class Replay:
    """Recorded actions, with the simulator at any of their steps.

    Snapshots are kept every so many steps; a jump restores the last one before its goal and steps from there, so that
    the worlds, and what the last step wrote, are those of the recording.

    Args:
        sim: as it was when the recording began: made with the same seed and never stepped.
        actions: [steps, N, A, 4].
    """

    def __init__(self, sim: Simulator, actions: NDArray[np.int32]) -> None:
        self.position = 0
        self._sim = sim
        self._actions = actions
        self._snapshots = {0: sim.save()}
        most_snapshots = max(_MOST_SNAPSHOT_BYTES // len(self._snapshots[0]), 1)
        self._spacing = max(_FEWEST_STEPS_BETWEEN_SNAPSHOTS, -(-len(actions) // most_snapshots))

    @property
    def length(self) -> int:
        return len(self._actions)

    def step(self) -> None:
        if self.position < self.length:
            self._sim.actions = self._actions[self.position]
            self._sim.step()
            self.position += 1
            if self.position % self._spacing == 0 and self.position not in self._snapshots:
                self._snapshots[self.position] = self._sim.save()

    def seek(self, position: int) -> None:
        """Goes to the state after so many steps; beyond the ends: to the end."""
        position = min(max(position, 0), self.length)
        # strictly before, unless it is the beginning: only a step writes rewards
        start = max(at for at in self._snapshots if at < max(position, 1))
        if not start <= self.position <= position:
            self._sim.restore(self._snapshots[start])
            self.position = start
        while self.position < position:
            self.step()
