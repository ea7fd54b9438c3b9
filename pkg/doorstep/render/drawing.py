"""Draws a world for people to look at: `Simulator.render`."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_flag, check_integer
from doorstep._native import MAX_RESOLUTION, MAX_SAMPLES, EntityKind, draw_picture
from doorstep.render import look
from doorstep.render.camera import UNIT_TOLERANCE, Vector, check_camera, pose_of
from doorstep.render.objects import Objects, Snapshot, objects_of
from doorstep.render.shapes import shapes_of

_NEAR_CORNERS = 0.9  # of a box's half extents
_STUB = 0.2  # height of what remains of a wall that is cut down, metres
_LOOK = {
    **{name: look.rgb(getattr(look, name.upper())) for name in ("ground", "background", "eye", "pupil")},
    **{name: getattr(look, name.upper()) for name in ("sun", "sun_radius", "sky", "bounce", "corner_reach")},
    "to_sun": tuple(np.array(look.TO_SUN) / np.linalg.norm(look.TO_SUN)),
}


class Drawing:
    """The arguments of `Simulator.render`, checked, but for the world."""

    def __init__(
        self,
        camera: object,
        agent: object,
        num_agents: int,
        *,
        width: object,
        height: object,
        samples: object,
        shadows: object,
    ) -> None:
        self._camera, self._agent = check_camera(camera, agent, num_agents)
        self._width = check_integer("width", width, 1, MAX_RESOLUTION)
        self._height = check_integer("height", height, 1, MAX_RESOLUTION)
        self._samples = check_integer("samples", samples, 1, MAX_SAMPLES)
        self._shadows = check_flag("shadows", shadows)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the picture."""
        return self._height, self._width, 3

    def resized(self, width: int, height: int) -> Drawing:
        """The same with another size of the picture, pixels."""
        other = copy.copy(self)
        other._width, other._height = width, height
        return other

    def agent_of(self, snapshot: Snapshot) -> int:
        """The agent of the cameras "follow" and "agent"."""
        return snapshot.leading_agent if self._agent is None else self._agent

    def draw(self, snapshot: Snapshot, anchor: Vector | None = None) -> NDArray[np.uint8]:
        """The picture, uint8 [height, width, 3]. anchor: where "follow" takes its agent to be, if not where it is."""
        agent = self.agent_of(snapshot)
        pose = pose_of(self._camera, snapshot, agent, self._width / self._height, anchor)
        objects = objects_of(snapshot)
        drawn = _can_be_drawn(objects)
        if self._camera == "agent":
            drawn[agent] = False
        if self._camera == "follow":
            _cut_walls_between(objects, drawn, np.array(pose.position), _points_of(objects[agent]))
        return draw_picture(
            shapes_of(snapshot, objects, drawn),
            width=self._width,
            height=self._height,
            samples=self._samples,
            shadows=self._shadows,
            orthographic=pose.view_height is not None,
            vertical_fov=pose.fov if pose.view_height is None else pose.view_height,
            position=pose.position,
            rotation=pose.rotation,
            **_LOOK,
        )


def _can_be_drawn(objects: Objects) -> NDArray[np.bool_]:
    """Which are there; edits of the state may have given a world any values."""
    finite = np.isfinite(objects["centre"]).all(axis=1) & np.isfinite(objects["size"]).all(axis=1)
    lengths = np.linalg.norm(objects["rotation"].astype(np.float64), axis=1)
    return (objects["kind"] != EntityKind.NONE) & finite & (np.abs(lengths - 1) < UNIT_TOLERANCE)  # type: ignore[no-any-return]


def _points_of(box: Any) -> Vector:
    """[9, 3]: its middle, and points near its corners: a wall that the box touches does not hide them."""
    corners = np.stack(np.meshgrid((-1, 1), (-1, 1), (-1, 1)), axis=-1).reshape(-1, 3) * _NEAR_CORNERS
    points = np.concatenate([np.zeros((1, 3)), corners]) * (box["size"] / 2.0)
    axis, w = box["rotation"][1:].astype(np.float64), float(box["rotation"][0])
    turned = points + 2 * np.cross(axis, np.cross(axis, points) + w * points)
    return turned + box["centre"]  # type: ignore[no-any-return]


def _cut_walls_between(objects: Objects, drawn: NDArray[np.bool_], eye: Vector, targets: Vector) -> None:
    """Cuts down walls and doors, whose sides are parallel to the axes, that a line of sight meets: slab test."""
    is_static = (objects["kind"] == EntityKind.WALL) | (objects["kind"] == EntityKind.DOOR)
    statics = np.flatnonzero(is_static & drawn)
    directions = targets[:, None] - eye  # [T, 1, 3]; with the statics [T, S, 3]
    slopes = np.where(directions == 0, 1e-12, directions)
    centres, halves = objects["centre"][statics].astype(np.float64), objects["size"][statics] / 2.0
    first, second = (centres - halves - eye) / slopes, (centres + halves - eye) / slopes
    enters = np.minimum(first, second).max(axis=2)
    leaves = np.maximum(first, second).min(axis=2)
    between = statics[((enters <= leaves) & (leaves > 0) & (enters < 1)).any(axis=0)]
    bottoms = objects["centre"][between, 2] - objects["size"][between, 2] / 2
    objects["size"][between, 2] = _STUB
    objects["centre"][between, 2] = bottoms + _STUB / 2
