"""Where the browser's camera goes: presets, and behind an agent. All are (position, look at), metres."""

from __future__ import annotations

import math
from dataclasses import dataclass
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

_SIDES = {  # from the middle of what is shown to the camera
    "top": np.array([0.0, -1e-3, 1.0]),  # not quite from above, so that +y points up in the picture
    "left": np.array([-1.0, 0.0, 0.8]),
    "right": np.array([1.0, 0.0, 0.8]),
    "all": np.array([0.0, -0.6, 1.0]),
}
_MARGIN = 0.04  # of the picture, on each side
_BEHIND, _ABOVE, _AHEAD = 6.0, 11.0, 4.0  # metres, of a camera that follows; it looks over the walls


@dataclass(frozen=True)
class Lens:
    """What a browser's camera sees. The panel lies beside its picture."""

    field_of_view: float = math.radians(75.0)  # vertical
    aspect: float = 4 / 3  # width of the picture divided by its height


def preset(name: str, layout: Layout, cell: int, lens: Lens) -> Place:
    """A preset by name, from which a world, or for "all" every world, just fits the picture."""
    return _fit(layout.whole() if name == "all" else layout.box(cell), _SIDES[name], lens)


def behind(sim: Simulator, world: int, agent: int, offset: Array) -> Place:
    """Behind and above an agent, looking where it looks."""
    position = read(sim.state.body_positions)[world, agent] + offset
    heading = yaw(read(sim.state.body_rotations)[world, agent])
    ahead = np.array([-np.sin(heading), np.cos(heading), 0.0])
    return position - _BEHIND * ahead + (0, 0, _ABOVE), position + _AHEAD * ahead


def _fit(points: Array, side: Array, lens: Lens) -> Place:
    """The nearest place on a side from which all points [P, 3] are seen; it looks at a point of the floor.

    Along each axis of the picture the points have to lie between two planes through the camera. Both planes touch a
    point where the camera is nearest; the axis that needs the larger distance decides.
    """
    right, up, ahead = _axes(side)
    depths = points @ ahead
    top = (1 - 2 * _MARGIN) * math.tan(lens.field_of_view / 2)  # slope of the plane above
    across, depth_across = _between(points @ right, depths, top * lens.aspect)
    upwards, depth_upwards = _between(points @ up, depths, top)
    position = across * right + upwards * up + min(depth_across, depth_upwards) * ahead
    return position, position - position[2] / ahead[2] * ahead


def _axes(side: Array) -> tuple[Array, Array, Array]:
    """Unit vectors to the right, upwards and ahead in the picture of a camera on a side; it stands upright."""
    ahead = -side / np.linalg.norm(side)
    right = np.cross(ahead, (0.0, 0.0, 1.0))
    right /= np.linalg.norm(right)
    return right, np.cross(right, ahead), ahead


def _between(places: Array, depths: Array, slope: float) -> tuple[float, float]:
    """Where a camera is, along an axis of its picture and in depth, if the outermost points touch its two planes."""
    most, least = float((places - slope * depths).max()), float((places + slope * depths).min())
    return (most + least) / 2, (least - most) / (2 * slope)
