"""The moment and the worlds of a run in which most is to be seen: the picture of `doorstep demo`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep import EntityKind, Simulator, Tensor
from doorstep.recording.panel import Image


class BestMoment:
    """Keeps the worlds of the moment with the most to see.

    What counts is what agents do: doors that are open, buttons that are pressed, cubes that are held. A world in which
    an agent is beyond the last door counts nothing: it has left the picture.

    Args:
        sim: the worlds.
        most: how many of them are kept.
    """

    def __init__(self, sim: Simulator, most: int) -> None:
        self._sim = sim
        self._most = most
        self._score = -1
        self._saved = b""
        self._count = 0
        self.step = 0  # of the moment

    def look(self, step: int) -> None:
        """Keeps the present worlds with the most to see, if there is more to see than before; of equals the later."""
        scores, furthest = self._scores()
        worlds = np.lexsort((-furthest, -scores))[: self._most]
        score = int(scores[worlds].sum())
        if score >= self._score:
            self._score, self.step, self._count = score, step, len(worlds)
            self._saved = self._sim.save(worlds)

    def draw(self, width: int, height: int) -> list[Image]:
        """Images of the worlds, uint8 [height, width, 3]. It puts them back into the simulator, in its first slots.

        Raises:
            LibraryError: this machine cannot draw.
        """
        worlds = range(self._count)
        self._sim.restore(self._saved, np.arange(self._count))
        return [self._sim.render(world, "overview", width=width, height=height) for world in worlds]

    def _scores(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """How much there is to see in each world, and how far its agents came, metres."""
        state = self._sim.state
        y = _host(state.body_positions)[:, : self._sim.num_agents, 1]
        events = [_host(state.door_open), _host(state.button_pressed), _host(state.agent_grabs) >= 0]
        scores = np.sum([event.sum(axis=1, dtype=np.int64) for event in events], axis=0)
        scores[y.max(axis=1) > self._last_doors()] = 0
        return scores, y.max(axis=1)

    def _last_doors(self) -> NDArray[np.float64]:
        """The largest y of a door in each world, metres; infinite without doors."""
        state = self._sim.state
        is_door = _host(state.static_kinds) == EntityKind.DOOR
        last = np.where(is_door, _host(state.static_positions)[:, :, 1], -np.inf).max(axis=1)
        return np.where(is_door.any(axis=1), last, np.inf)


def _host(field: Tensor) -> NDArray[Any]:
    return field.copy_to_host()
