"""Where agents are to go: an area, and a spot in it for each agent."""

from __future__ import annotations

from typing import final

import numpy as np

from doorstep.planner.geometry import Bounds, Point
from doorstep.planner.level import Level

_INSIDE = 0.7  # metres that spots keep from the sides of the area, which is half of what an agent may be off
_APART = 2.8  # metres between spots: agents beside each other do not touch
_FROM_DOORS = 4.0  # metres between spots and the middles of doors, so that agents come in behind one another


@final
class GoalArea:
    """An area of a level that agents are to go to.

    Attributes:
        for_all: whether all agents are to get there; otherwise one is enough.
    """

    def __init__(self, level: Level, bounds: Bounds, *, for_all: bool) -> None:
        self.for_all = for_all
        self._level, self._inner = level, _without_margin(bounds)
        self._spots: dict[int, list[Point]] = {}

    def spots(self, count: int) -> list[Point]:
        """A point in the area for each of some agents, apart from each other and from doors if there is room."""
        if count not in self._spots:
            self._spots[count] = self._found(count)
        return self._spots[count]

    def _found(self, count: int) -> list[Point]:
        """Each spot is the cell that is farthest from the spots before it, up to a distance, and then from doors."""
        inner = self._inner
        cells = self._level.points_in(inner, self._level.place_near(*inner.middle))
        if not len(cells):
            return [inner.middle] * count
        doors = [door.middle for door in self._level.doors if door]
        middle = ((cells - inner.middle) ** 2).sum(axis=1) ** 0.5
        room = np.full(len(cells), _FROM_DOORS)
        for door in doors:
            room = np.minimum(room, ((cells - door) ** 2).sum(axis=1) ** 0.5)
        apart = np.full(len(cells), _APART)
        spots: list[Point] = []
        for _ in range(count):
            x, y = cells[np.lexsort((middle, -room, -apart))[0]].tolist()
            spots.append((x, y))
            apart = np.minimum(apart, ((cells - (x, y)) ** 2).sum(axis=1) ** 0.5)
        return spots


def _without_margin(bounds: Bounds) -> Bounds:
    """Of a narrow area, the middle."""
    low_x, low_y, high_x, high_y = bounds
    margin_x, margin_y = min(_INSIDE, (high_x - low_x) / 2), min(_INSIDE, (high_y - low_y) / 2)
    return Bounds(low_x + margin_x, low_y + margin_y, high_x - margin_x, high_y - margin_y)
