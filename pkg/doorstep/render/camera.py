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
_OVERVIEW_DIRECTIONS = (np.array([0.66, -0.36, 1.2]), np.array([0.25, -0.75, 1.1]))
_OVERVIEW_FOV = 40.0
_OVERVIEW_HEIGHT = 5.0  # of the highest walls that must be in the picture, metres
_AGENT_HEIGHT = 2.0
_OVERVIEW_REACH = 12.0  # agents farther from the level are left out, metres
_AGENT_HALF = 1.4  # metres, with its disc
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


def pose_of(
    camera: str | CameraPose, snapshot: Snapshot, agent: int, aspect: float, anchor: Vector | None = None
) -> CameraPose:
    """The pose of a camera at this moment.

    Args:
        camera: checked.
        snapshot: the world.
        agent: of the cameras "follow" and "agent".
        aspect: width of the picture over its height.
        anchor: where "follow" takes its agent to be; None: where it is.

    Raises:
        SimulationError: what the camera looks at has no finite place.
    """
    if camera == "follow" and anchor is not None:
        return following(anchor)
    return camera if isinstance(camera, CameraPose) else _POSES[camera](snapshot, agent, aspect)


def following(place: Vector) -> CameraPose:
    """From behind a place, along the level, and above."""
    return CameraPose.look_at(place + _FOLLOW_OFFSET, place + _FOLLOW_AHEAD, fov=_FOLLOW_FOV)


def overview_box(snapshot: Snapshot) -> tuple[Vector, Vector]:
    """What "overview" shows: the low and the high corner of the box around the level, its goal and its agents."""
    low, high = snapshot.level_bounds()
    agents = snapshot.body_positions[: snapshot.num_agents, :2]
    near = agents[(np.abs(agents - (low + high) / 2) < (high - low) / 2 + _OVERVIEW_REACH).all(axis=1)]
    places = np.concatenate([np.stack([low, high]), near - _AGENT_HALF, near + _AGENT_HALF])
    tops = (snapshot.static_positions + snapshot.static_sizes)[snapshot.static_kinds != EntityKind.NONE, 2]
    height = min(float(tops.max(initial=_AGENT_HEIGHT)), _OVERVIEW_HEIGHT)
    return np.append(places.min(axis=0), 0), np.append(places.max(axis=0), height)


def _top(snapshot: Snapshot, _: int, aspect: float) -> CameraPose:
    """Straight down on the whole level, which lies along the picture's longer side."""
    _check_level("top", snapshot)
    low, high = snapshot.level_bounds()
    extent_x, extent_y = (high - low).tolist()
    upright, lying = max(extent_y, extent_x / aspect), max(extent_x, extent_y / aspect)
    up = (0.0, 1.0, 0.0) if upright <= lying else (-1.0, 0.0, 0.0)
    position = (*((low + high) / 2).tolist(), _TOP_ALTITUDE)
    rotation = _quaternion_of(*_camera_axes((0.0, 0.0, -1.0), up))
    return CameraPose(position, rotation, view_height=_MARGIN * min(upright, lying))


def _overview(snapshot: Snapshot, _: int, aspect: float) -> CameraPose:
    """Obliquely on the whole level with its goal and its agents, as large as the picture allows."""
    _check_level("overview", snapshot)
    box = np.stack(overview_box(snapshot))
    poses = [_showing(box, direction, aspect) for direction in _OVERVIEW_DIRECTIONS]
    return min(poses, key=lambda pose: float(np.linalg.norm(np.asarray(pose.position) - box.mean(axis=0))))


def _follow(snapshot: Snapshot, agent: int, _: float) -> CameraPose:
    """From behind the agent, along the level, and above."""
    return following(_agent_position("follow", snapshot, agent))


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


def _showing(box: Vector, direction: Vector, aspect: float) -> CameraPose:
    """The nearest pose, in a direction from a box given by two of its corners, that has all of it in the picture.

    With a corner's components r, u and f along the camera's right, up and forward axes, it is in the picture if
    |r - eye_r| <= tangent (f - eye_f), and likewise for u: the eye lies in the middle of what those allow.
    """
    corners = np.stack(np.meshgrid(*box.T.astype(np.float64)), axis=-1).reshape(-1, 3)
    right, ahead, up = _camera_axes(-direction, (0.0, 0.0, 1.0))
    tangent = math.tan(math.radians(_OVERVIEW_FOV / 2)) / _MARGIN
    eye, forward = np.zeros(3), math.inf
    for axis, slope in ((right, tangent * aspect), (up, tangent)):
        least = float((corners @ axis - slope * (corners @ ahead)).max())
        most = float((corners @ axis + slope * (corners @ ahead)).min())
        eye += axis * (least + most) / 2
        forward = min(forward, (most - least) / (2 * slope))
    return CameraPose(eye + ahead * forward, _quaternion_of(right, ahead, up), _OVERVIEW_FOV)


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
