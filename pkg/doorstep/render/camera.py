"""Where a picture is taken from: a pose, or a camera with a name that finds its pose in a world."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_between, check_integer, check_rotation, check_vector, refuse
from doorstep._native import EntityKind
from doorstep.errors import SimulationError
from doorstep.render.objects import Snapshot

Vector = NDArray[np.float64]

UNIT_TOLERANCE = 1e-3  # of a quaternion's length
_POINT = "3 finite numbers (x, y, z)"

_MARGIN = 1.04  # of views of the whole level
_TOP_ALTITUDE = 200.0  # metres: above every body, also above cubes that were thrown up
# From the middle of the level to the eye: beside the level, for wide pictures, or before its start.
_OVERVIEW_DIRECTIONS = (np.array([0.75, -0.3, 1.0]), np.array([0.25, -0.75, 1.0]))
_OVERVIEW_FOV = 40.0
_OVERVIEW_HEIGHT = 5.0  # of the highest walls, metres
_FOLLOW_OFFSET = np.array([0.0, -9.0, 10.0])  # from the agent to the eye: behind it along the level, and above
_FOLLOW_AHEAD = np.array([0.0, 2.5, 0.0])  # from the agent to the middle of the picture
_FOLLOW_FOV = 55.0
_AGENT_EYE = np.array([0.0, 0.0, 1.5])  # the default of `Cameras`
_AGENT_FOV = 100.0
_FURTHEST = 1e5  # metres; a level is 40 m long


@dataclass(frozen=True)
class CameraPose:
    """A camera for `Simulator.render`: its position, its direction and its field of view.

    >>> import doorstep
    >>> pose = doorstep.CameraPose.look_at((14.0, -8.0, 12.0), (0.0, 8.0, 0.0))
    >>> sim = doorstep.Simulator(1)
    >>> sim.render(camera=pose, width=320, height=240).shape
    (240, 320, 3)

    Args:
        position: of the eye, (x, y, z), metres.
        rotation: unit quaternion (w, x, y, z). (1, 0, 0, 0) looks along +y, with +z up and +x to the right.
        fov: vertical field of view in degrees, more than 0, less than 180.
        view_height: height of the picture in metres: the view is orthographic, and `fov` is ignored. None:
            perspective.

    Raises:
        ArgumentError: a value is out of range.
    """

    position: Sequence[float] | NDArray[Any]
    rotation: Sequence[float] | NDArray[Any] = (1.0, 0.0, 0.0, 0.0)
    fov: float = 60.0
    view_height: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", check_vector("position", self.position, 3, _POINT))
        object.__setattr__(self, "rotation", check_rotation("rotation", self.rotation, 2 * UNIT_TOLERANCE))
        object.__setattr__(self, "fov", check_between("fov", self.fov, 180, "degrees"))
        if self.view_height is not None:
            object.__setattr__(self, "view_height", check_between("view_height", self.view_height, 1e6, "metres"))

    @classmethod
    def look_at(
        cls,
        position: Sequence[float] | NDArray[Any],
        target: Sequence[float] | NDArray[Any],
        *,
        fov: float = 60.0,
        view_height: float | None = None,
    ) -> CameraPose:
        """A camera at `position` with `target` in the middle of the picture and +z up; looking straight down, +y up.

        Raises:
            ArgumentError: a value is out of range, or `target` is where the camera is.
        """
        eye = np.array(check_vector("position", position, 3, _POINT))
        middle = np.array(check_vector("target", target, 3, _POINT))
        if np.linalg.norm(middle - eye) < 1e-6:
            refuse("target", "apart from the position of the camera", target)
        return cls(position, _rotation_towards(middle - eye), fov, view_height)


# ---- Cameras with a name


def check_camera(camera: object, agent: object, num_agents: int) -> tuple[str | CameraPose, int | None]:
    """The camera, and the agent it belongs to; None: the leading agent."""
    if not isinstance(camera, CameraPose) and not (isinstance(camera, str) and camera in NAMED_CAMERAS):
        refuse("camera", f"{', '.join(map(repr, NAMED_CAMERAS))} or a CameraPose", camera)
    if agent is None:
        return camera, None
    if camera not in ("follow", "agent"):
        refuse("agent", 'None, unless camera is "follow" or "agent"', agent)
    return camera, check_integer("agent", agent, 0, num_agents - 1)


def pose_of(camera: str | CameraPose, snapshot: Snapshot, agent: int, aspect: float) -> CameraPose:
    """The pose of a camera at this moment. aspect: width of the picture over its height.

    Raises:
        SimulationError: what the camera looks at has no finite place.
    """
    return camera if isinstance(camera, CameraPose) else _POSES[camera](snapshot, agent, aspect)


def _top(snapshot: Snapshot, _: int, aspect: float) -> CameraPose:
    """Straight down on the whole level, which lies along the picture's longer side."""
    _check_level("top", snapshot)
    low, high = snapshot.floor_bounds()
    extent_x, extent_y = (high - low).tolist()
    upright, lying = max(extent_y, extent_x / aspect), max(extent_x, extent_y / aspect)
    up = (0.0, 1.0, 0.0) if upright <= lying else (-1.0, 0.0, 0.0)
    position = (*((low + high) / 2).tolist(), _TOP_ALTITUDE)
    rotation = _quaternion_of(*_camera_axes((0.0, 0.0, -1.0), up))
    return CameraPose(position, rotation, view_height=_MARGIN * min(upright, lying))


def _overview(snapshot: Snapshot, _: int, aspect: float) -> CameraPose:
    """Obliquely on the whole level, from the smallest distance that shows all of it."""
    _check_level("overview", snapshot)
    low, high = (np.append(corner, z) for corner, z in zip(snapshot.floor_bounds(), (0, _OVERVIEW_HEIGHT), strict=True))
    middle, half = (low + high) / 2, (high - low) / 2
    eyes = [_MARGIN * _distance(direction, half, aspect) * direction for direction in _OVERVIEW_DIRECTIONS]
    return CameraPose.look_at(middle + min(eyes, key=np.linalg.norm), middle, fov=_OVERVIEW_FOV)


def _follow(snapshot: Snapshot, agent: int, _: float) -> CameraPose:
    """From behind the agent, along the level, and above."""
    position = _agent_position("follow", snapshot, agent)
    return CameraPose.look_at(position + _FOLLOW_OFFSET, position + _FOLLOW_AHEAD, fov=_FOLLOW_FOV)


def _through_eyes(snapshot: Snapshot, agent: int, _: float) -> CameraPose:
    """Through the agent's eyes."""
    position, rotation = _agent_position("agent", snapshot, agent), snapshot.body_rotations[agent]
    if not abs(np.linalg.norm(rotation.astype(np.float64)) - 1) < UNIT_TOLERANCE:
        _refuse_world("agent", snapshot, f"body_rotations[{agent}]", rotation, "a unit quaternion")
    return CameraPose(position + _AGENT_EYE, rotation, _AGENT_FOV)


_POSES: dict[str, Callable[[Snapshot, int, float], CameraPose]] = {
    "top": _top,
    "overview": _overview,
    "follow": _follow,
    "agent": _through_eyes,
}
NAMED_CAMERAS = tuple(_POSES)


def _distance(direction: Vector, half: Vector, aspect: float) -> float:
    """How many times `direction` an eye must be away to see all corners of a box around the origin.

    It sees a corner whose distance to the side, and up, is at most its distance along the view times the tangent.
    """
    corners = np.stack(np.meshgrid((-1, 1), (-1, 1), (-1, 1)), axis=-1).reshape(-1, 3) * half
    right, ahead, up = _camera_axes(-direction, (0.0, 0.0, 1.0))
    tangent = math.tan(math.radians(_OVERVIEW_FOV / 2))
    needed = np.maximum(np.abs(corners @ right) / (tangent * aspect), np.abs(corners @ up) / tangent) - corners @ ahead
    return float(needed.max() / np.linalg.norm(direction))


# ---- Worlds that a camera cannot show: their state was edited, or the simulation met trouble


def _check_level(camera: str, snapshot: Snapshot) -> None:
    """Checks what `floor_bounds` is made of."""
    kinds, of = (snapshot.static_kinds, "static") if snapshot.static_kinds.any() else (snapshot.body_kinds, "body")
    for name in (f"{of}_positions", f"{of}_sizes"):
        for slot in np.flatnonzero(kinds != EntityKind.NONE):
            _check_place(camera, snapshot, f"{name}[{slot}]", getattr(snapshot, name)[slot])


def _agent_position(camera: str, snapshot: Snapshot, agent: int) -> Vector:
    position = snapshot.body_positions[agent]
    _check_place(camera, snapshot, f"body_positions[{agent}]", position)
    return np.asarray(position, np.float64)


def _check_place(camera: str, snapshot: Snapshot, name: str, values: NDArray[Any]) -> None:
    if not (np.abs(values) < _FURTHEST).all():
        _refuse_world(camera, snapshot, name, values, f"finite, and less than {_FURTHEST:g} m")


def _refuse_world(camera: str, snapshot: Snapshot, name: str, values: NDArray[Any], requirement: str) -> None:
    raise SimulationError(
        f"camera {camera!r} cannot show world {snapshot.world}: its {name} is {values.tolist()}; it must be "
        f"{requirement}",
        argument="world",
        hint=f"reset the world, edit state.{name.partition('[')[0]}, or pass a CameraPose",
    )


# ---- Rotations


def _rotation_towards(direction: Vector) -> list[float]:
    straight = float(np.hypot(direction[0], direction[1])) < 1e-6 * abs(float(direction[2]))
    return _quaternion_of(*_camera_axes(direction, (0.0, 1.0, 0.0) if straight else (0.0, 0.0, 1.0)))


def _camera_axes(forward: Any, up: Any) -> tuple[Vector, Vector, Vector]:
    """The camera's right, forward and up; the last is as near as possible to the given one."""
    ahead = np.asarray(forward, np.float64) / np.linalg.norm(forward)
    right = np.cross(ahead, up)
    right /= np.linalg.norm(right)
    return right, ahead, np.cross(right, ahead)


def _quaternion_of(right: Vector, forward: Vector, up: Vector) -> list[float]:
    """Of the rotation that takes x, y, z to these axes.

    4 q q^T is linear in the matrix: the column of the largest component of q gives the others without cancellation.
    """
    (a, d, g), (b, e, h), (c, f, i) = right, forward, up
    products = np.array(
        [
            [1 + a + e + i, h - f, c - g, d - b],
            [h - f, 1 + a - e - i, b + d, c + g],
            [c - g, b + d, 1 - a + e - i, f + h],
            [d - b, c + g, f + h, 1 - a - e + i],
        ]
    )
    column = products[int(np.argmax(np.diag(products)))]
    return (column / np.linalg.norm(column)).tolist()  # type: ignore[no-any-return]
