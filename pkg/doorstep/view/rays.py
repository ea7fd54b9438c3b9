"""The rays of agents as line segments: what lidar saw, and where a grab reaches or holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep.simulator import Simulator
from doorstep.view import colours, reading
from doorstep.view.reading import read

Array = NDArray[Any]

_RAY_HEIGHT = 0.5  # metres above an agent's position, of both kinds of rays
_GRAB_LENGTH = 2.0  # metres

Segments = tuple[Array, Array]
"""Points, float32 [count, 2, 3], and colours, uint8 [count, 3]. What is not there has no length."""


def lidar(sim: Simulator, world: int, offset: Array) -> Segments:
    """Every lidar ray of the agents of a world, from the agent to what it hit."""
    distances, kinds = reading.lidar(sim, world)
    origins, yaws = _poses(sim, world, offset)
    count = distances.shape[1]
    angles = yaws[:, None] + np.pi / 2 + 2 * np.pi * np.arange(count) / count  # sample 0 is ahead, then to the left
    directions = np.stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)], axis=-1)
    starts = np.repeat(origins[:, None], count, axis=1)
    return _segments(starts, starts + directions * distances[..., None]), colours.LIDAR[kinds.reshape(-1)]


def grabs(sim: Simulator, world: int, offset: Array) -> Segments:
    """For each agent of a world the ray that it would grab along, or a line to the cube that it holds."""
    origins, yaws = _poses(sim, world, offset)
    ahead = np.stack([-np.sin(yaws), np.cos(yaws), np.zeros_like(yaws)], axis=-1)
    held = read(sim.state.agent_grabs)[world]
    cubes = read(sim.state.body_positions)[world][held] + offset
    holding = (held >= 0)[:, None]
    ends = np.where(holding, cubes, origins + _GRAB_LENGTH * ahead)
    return _segments(origins, ends), np.where(holding, colours.HOLDING, colours.GRAB_RAY)


def _poses(sim: Simulator, world: int, offset: Array) -> tuple[Array, Array]:
    """Where the rays of each agent begin [A, 3], and yaws [A]: zero looks along +y, counter-clockwise."""
    positions = read(sim.state.body_positions)[world, : sim.num_agents]
    rotations = read(sim.state.body_rotations)[world, : sim.num_agents]
    return positions + offset + (0, 0, _RAY_HEIGHT), yaw(rotations)


def yaw(rotations: Array) -> Array:
    """Of quaternions [..., 4] that turn about z."""
    return 2 * np.arctan2(rotations[..., 3], rotations[..., 0])


def _segments(starts: Array, ends: Array) -> Array:
    return np.stack([starts, ends], axis=-2).astype(np.float32).reshape(-1, 2, 3)
