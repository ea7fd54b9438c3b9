"""How the episodes of the worlds ended: which of them succeeded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from doorstep.levels.files import AnyLevel
from doorstep.simulator import Simulator
from doorstep.viewer.world_arrays import DISTANCE_UNIT, read

_LARGEST_Y = 5  # in self_observations


class Outcomes:
    """Counts the episodes that end while a simulator is stepped.

    An episode succeeds if its goal is reached or all agents were beyond the exit of its level, though perhaps not at
    the same time.

    Attributes:
        episodes: that ended, how many.
        successes: how many of them succeeded.
        ended: bool [N]: whether an episode of each world ended with the last step.
    """

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim
        self._exits = np.array([level.exit for level in sim.levels])
        self.clear()

    def clear(self) -> None:
        """Forgets all episodes."""
        self.episodes = self.successes = 0
        self.ended: NDArray[np.bool_] = np.zeros(self._sim.num_worlds, np.bool_)
        self._succeeded: list[bool | None] = [None] * self._sim.num_worlds  # in its last episode
        self._levels = self._present_levels()

    def of(self, world: int) -> bool | None:
        """Whether the last episode of a world succeeded; None: none has ended."""
        return self._succeeded[world]

    def level(self, world: int) -> AnyLevel:
        """The level of a world at the last step."""
        return self._sim.levels[int(self._levels[world])]

    def all_out(self) -> list[int]:
        """The worlds whose agents have all been beyond the exit in this episode."""
        exits = self._exits[self._present_levels()]
        out: list[int] = np.flatnonzero((read(self._sim.state.agent_max_y) > exits[:, None]).all(axis=1)).tolist()
        return out

    def add(self) -> None:
        """Counts the episodes that ended with the simulator's last step."""
        self.ended = read(self._sim.dones)[:, 0, 0] != 0
        if self.ended.any():
            largest_y = read(self._sim.final_self_observations)[:, :, _LARGEST_Y] * DISTANCE_UNIT
            out = (largest_y > self._exits[self._levels][:, None]).all(axis=1)
            self._count(np.flatnonzero(self.ended), out | (read(self._sim.terminations)[:, 0, 0] != 0))
        self._levels = self._present_levels()

    def add_successes(self, worlds: list[int]) -> None:
        """Counts episodes that are ended because all of their agents are out."""
        self.ended[worlds] = True
        self._count(np.array(worlds), np.ones(self._sim.num_worlds, np.bool_))
        self._levels = self._present_levels()

    def _count(self, worlds: NDArray[np.intp], succeeded: NDArray[np.bool_]) -> None:
        for world in worlds.tolist():
            self.episodes += 1
            self.successes += bool(succeeded[world])
            self._succeeded[world] = bool(succeeded[world])

    def _present_levels(self) -> NDArray[np.int64]:
        """Index of the level of each world, int64 [N], a copy: the step that ends an episode begins the next one."""
        if not self._sim.config.max_levels:
            return np.zeros(self._sim.num_worlds, np.int64)
        return read(self._sim.level_indices)[:, 0].astype(np.int64)
