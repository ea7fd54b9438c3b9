"""The cameras that have a name, and where they stand in a world."""

from __future__ import annotations

import math

import numpy as np

from doorstep._arguments import check_integer, refuse
from doorstep.render.camera import CameraPose, Vector, camera_axes, quaternion_of
from doorstep.render.snapshot import Snapshot

NAMED_CAMERAS = ("top", "overview", "follow", "agent")

_MARGIN = 1.04  # of views of the whole level
_TOP_ALTITUDE = 200.0  # metres: above whatever may have been thrown up
# To the eye, from the middle of the level: from its side, for wide pictures, or from its start.
_OVERVIEW_DIRECTIONS = (np.array([0.75, -0.3, 1.0]), np.array([0.25, -0.75, 1.0]))
_OVERVIEW_FOV = 40.0
_OVERVIEW_HEIGHT = 5.0  # of the highest walls, metres
_FOLLOW_OFFSET = np.array([0.0, -9.0, 10.0])  # from the agent to the eye: behind it along the level, and above
_FOLLOW_AHEAD = np.array([0.0, 2.5, 0.0])  # from the agent to what is looked at
_FOLLOW_FOV = 55.0
_AGENT_EYE = np.array([0.0, 0.0, 1.5])  # as the cameras that agents carry by default
_AGENT_FOV = 100.0


def check_camera(camera: object, agent: object, num_agents: int) -> tuple[str | CameraPose, int | None]:
    """The camera and the number of the agent it belongs to; None for the agent in the lead."""
    if not isinstance(camera, CameraPose) and not (isinstance(camera, str) and camera in NAMED_CAMERAS):
        refuse("camera", f"{', '.join(map(repr, NAMED_CAMERAS))} or a CameraPose", camera)
    if agent is None:
        return camera, None
    if camera not in ("follow", "agent"):
        refuse("agent", 'None, unless camera is "follow" or "agent"', agent)
    return camera, check_integer("agent", agent, 0, num_agents - 1)


def pose_of(camera: str | CameraPose, snapshot: Snapshot, agent: int, aspect: float) -> CameraPose:
    """Where a camera stands in this moment. aspect: width of the picture over its height."""
    if isinstance(camera, CameraPose):
        return camera
    if camera == "top":
        return _top(snapshot, aspect)
    if camera == "overview":
        return _overview(snapshot, aspect)
    position = snapshot.body_positions[agent].astype(np.float64)
    if camera == "agent":
        return CameraPose(position + _AGENT_EYE, snapshot.body_rotations[agent], _AGENT_FOV)
    return CameraPose.look_at(position + _FOLLOW_OFFSET, position + _FOLLOW_AHEAD, fov=_FOLLOW_FOV)


def _top(snapshot: Snapshot, aspect: float) -> CameraPose:
    """Straight down on the whole level, which lies along the picture's longer side."""
    low, high = snapshot.floor_bounds()
    extent_x, extent_y = (high - low).tolist()
    upright, lying = max(extent_y, extent_x / aspect), max(extent_x, extent_y / aspect)
    up = (0.0, 1.0, 0.0) if upright <= lying else (-1.0, 0.0, 0.0)
    position = (*((low + high) / 2).tolist(), _TOP_ALTITUDE)
    rotation = quaternion_of(*camera_axes((0.0, 0.0, -1.0), up))
    return CameraPose(position, rotation, view_height=_MARGIN * min(upright, lying))


def _overview(snapshot: Snapshot, aspect: float) -> CameraPose:
    """Obliquely on the whole level, from as near as shows all of it."""
    low, high = (np.append(corner, z) for corner, z in zip(snapshot.floor_bounds(), (0, _OVERVIEW_HEIGHT), strict=True))
    middle, half = (low + high) / 2, (high - low) / 2
    eyes = [_MARGIN * _distance(direction, half, aspect) * direction for direction in _OVERVIEW_DIRECTIONS]
    return CameraPose.look_at(middle + min(eyes, key=np.linalg.norm), middle, fov=_OVERVIEW_FOV)


def _distance(direction: Vector, half: Vector, aspect: float) -> float:
    """How many times `direction` an eye must be away to see all corners of a box around the origin.

    It sees a corner if that is no further to the side, or up, than its distance along the view times the tangent.
    """
    corners = np.stack(np.meshgrid((-1, 1), (-1, 1), (-1, 1)), axis=-1).reshape(-1, 3) * half
    right, ahead, up = camera_axes(-direction, (0.0, 0.0, 1.0))
    tangent = math.tan(math.radians(_OVERVIEW_FOV / 2))
    needed = np.maximum(np.abs(corners @ right) / (tangent * aspect), np.abs(corners @ up) / tangent) - corners @ ahead
    return float(needed.max() / np.linalg.norm(direction))
