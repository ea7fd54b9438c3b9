"""Between which numbers an agent's observations are: of every part, and of all of them side by side."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from doorstep._observations import AnyObservations, part_size, parts_of

# Lowest and highest numbers of one agent's observation, of its shape or of its last dimension.
Bounds: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32]]

# Metres. Behind the reference's third room the floor is endless: how far agents get there depends on the episode.
REFERENCE_EXTENT, LEVEL_EXTENT = 50.0, 1000.0  # of all things in a level from the origin
STEP_LENGTH = 2.0  # the most that an agent moves in a step, with the largest force that a level may have
REFERENCE_ROOM, SHORTEST_ROOM = 13.0, 0.1
LIDAR_REACH = 200.0
UNIT = 40.0  # by which distances are divided
# What levels may have, divided by the reference's: mass of cubes, friction, walking force, turning torque, door speed
MOST_PHYSICS = (75.1, 2.0, 2.0, 2.0, 3.4)


def bounds_of(
    name: str, *, num_agents: int, longest_episode: int, has_levels: bool, observations: AnyObservations
) -> Bounds:
    """Of a tensor of float32 by name; with levels of one's own, things may be farther away. observations: the parts of
    the tensor of that name."""
    far = (LEVEL_EXTENT if has_levels else REFERENCE_EXTENT) + STEP_LENGTH * longest_episode
    room = SHORTEST_ROOM if has_levels else REFERENCE_ROOM
    place, distance = far / UNIT, 4 * far / UNIT
    ranges = {
        "self_observations": (
            (-far / 10, far / 10), (-2 * far / room, 2 * far / room), *[(-place, place)] * 4, (-1, 1), (0, 1),
        ),
        "partner_observations": ((0, distance), (-1, 1), (0, 1)),
        "room_entity_observations": ((0, distance), (-1, 1), (0, 1)),
        "door_observations": ((0, distance), (-1, 1), (0, 1)),
        "lidar": ((0, LIDAR_REACH / UNIT), (0, 1)),
        "steps_remaining": ((0, 1),),
        "agent_index": ((0, 1),),
        "physics": [(0, most) for most in MOST_PHYSICS] if has_levels else [(1, 1)] * len(MOST_PHYSICS),
    }  # fmt: skip
    if name != "observations":
        return _arrays(ranges[name])
    rows = [
        (scale * low, scale * high)
        for part, scale in parts_of(observations)
        for low, high in list(ranges[part]) * (part_size(part, num_agents) // len(ranges[part]))
    ]
    return _arrays(rows)


def _arrays(ranges: Any) -> Bounds:
    low, high = np.array(ranges, np.float32).T
    return low, high
