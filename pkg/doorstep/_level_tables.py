"""Levels as arrays of words that callers hold: which ranges every word has, and how arrays from outside are made safe.

Worlds read levels without looking at them again: a number of walls that is too large would be read beyond its end. What
the host can see is checked as a simulator does. What only a program has is moved into the ranges, on its device.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doorstep._native import MAX_EPISODE_LENGTH
from doorstep._native._generated import (
    LEVEL_MAX_BUTTONS,
    LEVEL_MAX_CUBES,
    LEVEL_MAX_DOORS,
    LEVEL_MAX_ROOMS,
    LEVEL_MAX_STATICS,
    GoalAgents,
    LevelSource,
    RoomType,
)
from doorstep._native._generated import Level as NativeLevel
from doorstep.levels.numbers import MAX_COORDINATE, MAX_YAW, MIN_SIZE
from doorstep.levels.rules import LARGEST_REWARD, PHYSICS_LIMITS, Rewards
from doorstep.simulator import Simulator

LEVEL = np.dtype(NativeLevel)
_REMEMBERED = 16  # tables that have been checked


# ---- What the host can see


def check_table(table: NDArray[np.uint32], num_agents: int) -> None:
    """Refuses levels that a simulator would refuse.

    Args:
        table: [L, words].
        num_agents: that have to begin somewhere.

    Raises:
        ArgumentError: as `Simulator.set_levels()`, but the level and its field are those of the library.
    """
    _check_bytes(np.ascontiguousarray(table).tobytes(), num_agents)


@functools.lru_cache(_REMEMBERED)
def _check_bytes(table: bytes, num_agents: int) -> None:
    count = len(table) // LEVEL.itemsize
    with Simulator(1, num_agents=num_agents, max_levels=count, num_threads=1) as sim:
        sim._session.set_levels((NativeLevel * count).from_buffer_copy(table), None)


# ---- What only a program has


class Ranges(NamedTuple):
    """The least and the largest value of each word of a level, as floats where the word is one.

    Attributes:
        is_float: bool [words].
        low: int32 [words]; of floats, their bits.
        high: likewise.
    """

    is_float: NDArray[np.bool_]
    low: NDArray[np.int32]
    high: NDArray[np.int32]


# Two words whose sum has a limit too
NUM_WALLS, NUM_DOORS = (LEVEL.fields[name][1] // 4 for name in ("num_walls", "num_doors"))  # type: ignore[index]
MOST_STATICS = LEVEL_MAX_STATICS


@functools.cache
def ranges() -> Ranges:
    """With counts and indices within these, nothing is read beyond a level; other numbers are what a world can bear."""
    low, high = np.zeros((), LEVEL), np.zeros((), LEVEL)
    for name, least, largest in _rows():
        for ends, value in ((low, least), (high, largest)):
            parts: Any = ends
            *path, field = name.split(".")
            for part in path:
                parts = parts[part]
            parts[field] = value
    is_float = np.array([kind == "f" for kind in _kinds(LEVEL)])
    return Ranges(is_float, *(np.frombuffer(ends.tobytes(), np.int32) for ends in (low, high)))


def _rows() -> Iterator[tuple[str, float, float]]:
    """Name, least and largest value of each field of a level, and of its parts."""
    far = MAX_COORDINATE
    yield "struct_size", LEVEL.itemsize, LEVEL.itemsize
    yield "source", min(LevelSource), max(LevelSource)
    yield "room_types", min(RoomType), max(RoomType)
    yield "num_walls", 0, LEVEL_MAX_STATICS
    yield "num_doors", 0, LEVEL_MAX_DOORS
    yield "num_buttons", 0, LEVEL_MAX_BUTTONS
    yield "num_cubes", 0, LEVEL_MAX_CUBES
    yield "num_agents", 0, len(NativeLevel().agents)
    yield "num_rooms", 1, LEVEL_MAX_ROOMS
    yield "min_episode_length", 1, MAX_EPISODE_LENGTH  # without effect where the largest one is 0
    yield "max_episode_length", 0, MAX_EPISODE_LENGTH
    yield "goal.agents", min(GoalAgents), max(GoalAgents)
    for name in ("min_x", "max_x", "min_y", "max_y"):
        yield f"goal.{name}", -np.inf, np.inf
    for field in dataclasses.fields(Rewards):
        yield f"rewards.{field.name}", 0 if field.name == "bonus_distance" else -LARGEST_REWARD, LARGEST_REWARD
    for name, (least, largest, _) in PHYSICS_LIMITS.items():
        yield from _ends(f"physics.{name}", least, largest)
    for box in ("walls", "doors.panel"):
        yield from ((f"{box}.{axis}", 0 if axis == "z" else -far, far) for axis in "xyz")
        yield from ((f"{box}.size_{axis}", MIN_SIZE, far) for axis in "xyz")
    yield "doors.persistent", 0, 1
    for part in ("buttons", "cubes"):
        yield from ((f"{part}.{axis}", -far, far) for axis in "xy")
    yield "buttons.door", 0, LEVEL_MAX_DOORS - 1
    yield "cubes.yaw", -MAX_YAW, MAX_YAW
    for axis, most in (("x", far), ("y", far), ("yaw", MAX_YAW)):
        yield from _ends(f"agents.{axis}", -most, most)
    yield from (("rooms.start", -far, far), ("rooms.end", -far, far), ("rooms.door", -1, LEVEL_MAX_DOORS - 1))


def _ends(name: str, least: float, largest: float) -> Iterator[tuple[str, float, float]]:
    yield from ((f"{name}.{end}", least, largest) for end in ("low", "high"))


def _kinds(dtype: np.dtype[Any]) -> list[str]:
    """The kind of each word, as numpy writes it: "f", "i" or "u"."""
    if dtype.subdtype:
        part, shape = dtype.subdtype
        return _kinds(part) * int(np.prod(shape))
    if dtype.fields:
        return [kind for name in dtype.names or () for kind in _kinds(dtype[name])]
    return [dtype.kind]
