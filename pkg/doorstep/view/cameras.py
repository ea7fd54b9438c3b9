"""Where the browser's camera goes: presets, and behind an agent. All are (position, look at), metres."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep.simulator import Simulator
from doorstep.view.layout import Layout
from doorstep.view.rays import yaw
from doorstep.view.reading import read

Array = NDArray[Any]
Place = tuple[Array, Array]

PRESETS = ("top", "left", "right", "all")

_HALF_VIEW = np.tan(np.radians(75.0) / 2)  # half the height of what a browser's camera sees at distance 1
_FROM_ABOVE = np.array([0.0, -1e-3, 1.0])  # not quite from above, so that +y points up in the picture
_FROM_FRONT = np.array([0.0, -0.75, 1.0])
_BEHIND, _ABOVE, _AHEAD = 6.0, 11.0, 4.0  # metres, of a camera that follows; it looks over the walls


def preset(name: str, layout: Layout, cell: int) -> Place:
    """A preset by name, of one world; "all" shows every world."""
    if name == "all":
        return _around(*layout.corners, _FROM_FRONT)
    centre = layout.offsets[cell, :2]
    side = {"top": _FROM_ABOVE, "left": np.array([-1.0, 0.0, 0.8]), "right": np.array([1.0, 0.0, 0.8])}[name]
    return _around(layout.low + centre, layout.high + centre, side)


def behind(sim: Simulator, world: int, agent: int, offset: Array) -> Place:
    """Behind and above an agent, looking where it looks."""
    position = read(sim.state.body_positions)[world, agent] + offset
    heading = yaw(read(sim.state.body_rotations)[world, agent])
    ahead = np.array([-np.sin(heading), np.cos(heading), 0.0])
    return position - _BEHIND * ahead + (0, 0, _ABOVE), position + _AHEAD * ahead


def _around(low: Array, high: Array, side: Array) -> Place:
    """Far enough on one side of a rectangle on the floor to see all of it in a window that is not narrow."""
    centre = np.append((low + high) / 2, 0.0)
    distance = 0.62 * float(max(high - low)) / _HALF_VIEW
    return centre + distance * side / np.linalg.norm(side), centre
