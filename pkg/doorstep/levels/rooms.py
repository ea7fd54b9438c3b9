"""The rooms of a level that names none: every door across the way ends one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from doorstep._arguments import refuse
from doorstep.levels.numbers import MAX_COORDINATE, ends_of
from doorstep.levels.parts import (
    AGENT_SIZE,
    BUTTON_SIZE,
    CUBE_SIZE,
    MIN_LENGTH,
    Button,
    Cube,
    Door,
    Goal,
    Room,
    Spawn,
    Wall,
)

Part: TypeAlias = "Wall | Door | Button | Cube | Spawn"

# Metres. Doors in the same row of walls end the same room.
SAME_ROW = 1.0
# Metres. Rooms follow each other without gaps, to the rounding of numbers that a program computed.
ROUNDING = 1e-4

_HALF_SIZES = {Button: BUTTON_SIZE / 2, Cube: CUBE_SIZE / 2, Spawn: AGENT_SIZE / 2}


def derive_rooms(parts: Iterable[Part], doors: Sequence[Door], goal: Goal | None) -> tuple[Room, ...]:
    """A room up to the far side of each row of doors, and one behind the last row if the level goes on there.

    A door is in a row if it is at least as wide (x) as it is deep (y); others are side doors. Agents observe the door
    at the end of their room, the first one if there are several, else the first side door in it.
    """
    low, high = _extent(parts, goal)
    rooms = []
    for far_side, door in _rows(doors):
        end = max(far_side, low + MIN_LENGTH)  # of a thin door that is the lowest thing of the level
        rooms.append(Room(low, end, door))
        low = end
    if high >= low + MIN_LENGTH:
        rooms.append(Room(low, high, _side_door(doors, low, high)))
    return tuple(rooms)


def check_rooms(rooms: Sequence[Room], num_doors: int) -> None:
    """Refuses rooms that leave a gap or overlap, and doors that do not exist."""
    for i, room in enumerate(rooms):
        if room.door is not None and room.door >= num_doors:
            refuse(f"rooms[{i}].door", f"None or the index of one of {num_doors} doors", room.door)
        if i and abs(room.start - rooms[i - 1].end) > ROUNDING:
            hint = "rooms follow each other along y without gaps"
            refuse(f"rooms[{i}].start", f"the end of rooms[{i - 1}], {rooms[i - 1].end:g}", room.start, hint)


def _extent(parts: Iterable[Part], goal: Goal | None) -> tuple[float, float]:
    """Least and largest y of a level."""
    lows, highs = map(list, zip(*map(_extent_of, parts), strict=True))
    if goal is not None:
        lows.append(goal.min_y)
        highs.append(goal.max_y)
    return max(min(lows), -MAX_COORDINATE), min(max(highs), MAX_COORDINATE)


def _rows(doors: Sequence[Door]) -> list[tuple[float, int]]:
    """The far end of each row of doors, and its first door."""
    across = [(i, door) for i, door in enumerate(doors) if door.size_x >= door.size_y]
    ends = sorted((min(door.y + door.size_y / 2, MAX_COORDINATE), i) for i, door in across)
    rows: list[tuple[float, int]] = []
    for end, door in ends:
        if rows and end - rows[-1][0] < SAME_ROW:
            rows[-1] = (end, min(door, rows[-1][1]))
        else:
            rows.append((end, door))
    return rows


def _side_door(doors: Sequence[Door], start: float, end: float) -> int | None:
    inside = (i for i, door in enumerate(doors) if door.size_x < door.size_y and start <= door.y < end)
    return next(inside, None)


def _extent_of(part: Part) -> tuple[float, float]:
    """Least and largest y."""
    low, high = ends_of(part.y)
    half = part.size_y / 2 if isinstance(part, (Wall, Door)) else _HALF_SIZES[type(part)]
    return low - half, high + half
