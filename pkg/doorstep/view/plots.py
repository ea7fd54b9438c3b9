"""Plots of one agent: what it got lately, and what it observes now.

Every axis along x has a fixed range. Without one, the browser's plots take x for seconds since 1970, and a plot that is
made while data arrive may show its first points only, for ever.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import viser

from doorstep import EntityKind
from doorstep.simulator import Simulator
from doorstep.view import history, reading
from doorstep.view.history import History

_HEIGHT = 130  # pixels
_MET_BY_LIDAR = (EntityKind.CUBE, EntityKind.WALL, EntityKind.AGENT, EntityKind.DOOR)
_KIND_AXES = ({"ticks": {"show": False}}, {"ticks": {"show": False}, "incrs": (1,), "space": 8})
_DOTS = {"width": 0, "points": {"show": True, "size": 5}}  # instead of a line: there is nothing between two kinds


class Plots:
    """The plots, below one another."""

    def __init__(self, gui: viser.GuiApi, sim: Simulator) -> None:
        self._sim = sim
        self._features = np.arange(len(reading.observations(sim, 0, 0)), dtype=np.float64)
        rays = sim.lidar.shape[2]
        self._angles = np.arange(rays) * 360 / rays
        self._rewards = _add(
            gui,
            "reward and return of the last steps",
            ("steps ago", -history.LONGEST, 0),
            (
                {"label": "reward", "stroke": "#e8590c", "width": 1},
                {"label": "return", "stroke": "#1c7ed6", "width": 2},
            ),
        )
        self._observations = _add(
            gui,
            "observations except lidar, scaled",
            ("feature", 0, len(self._features) - 1),
            ({"label": "value", "stroke": "#2f9e44", "width": 1},),
        )
        around = ("degrees to the left", 0, 360)
        self._distances = _add(
            gui, "lidar: distance in metres", around, ({"label": "metres", "stroke": "#22b8cf", "width": 1},)
        )
        self._kinds = _add(
            gui,
            f"lidar: {', '.join(f'{kind.value} {kind.name.lower()}' for kind in _MET_BY_LIDAR)}",
            around,
            ({"label": "kind (0 nothing)", "stroke": "#fab005", **_DOTS},),
            kinds=True,
        )

    def show(self, world: int, agent: int, history: History) -> None:
        """Curves of one agent."""
        distances, kinds = reading.lidar(self._sim, world)
        self._rewards.data = history.curves()
        self._observations.data = (self._features, reading.observations(self._sim, world, agent))
        self._distances.data = (self._angles, distances[agent])
        self._kinds.data = (self._angles, kinds[agent])


def _add(
    gui: viser.GuiApi,
    title: str,
    x: tuple[str, float, float],
    curves: tuple[dict[str, Any], ...],
    kinds: bool = False,
) -> viser.GuiUplotHandle:
    """x: what it is and its range; kinds: y are kinds of entities, else their range follows from the curves."""
    label, low, high = x
    scales: dict[str, Any] = {"x": {"time": False, "range": (low, high)}}
    if kinds:
        scales["y"] = {"range": (-0.5, max(_MET_BY_LIDAR) + 0.5)}
    return gui.add_uplot(
        (np.full(1, high), *(np.zeros(1) for _ in curves)),
        ({"label": label}, *curves),
        scales=scales,
        axes=_KIND_AXES if kinds else None,
        title=title,
        height=_HEIGHT,
    )
