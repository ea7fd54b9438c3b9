"""A level as a map of characters, seen from above with +y upwards: what `read_map()` reads, the other way round."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from doorstep.levels.ascii_map import BUTTONS, CUBE, DOORS, GOAL, SPAWNS, WALL

CELL = (1.0, 2.0)  # metres of a character, which is about twice as high as wide in most fonts
_FLOOR = "."
_WIDEST = 100  # characters of a line; larger levels have larger cells

_Box: TypeAlias = "tuple[float, float, float, float]"  # low x, high x, low y, high y


def map_of(level: Any) -> tuple[str, tuple[float, float]]:
    """The map of a `Level`, and the metres of a character's cell.

    Parts have the nearest cells, at least one. Where parts share cells, what comes last is drawn: goal, spawns, walls,
    doors, buttons, cubes.
    """
    parts = _parts(level)
    left, right, bottom, top = _around([box for box, _ in parts])
    scale = max(1, math.ceil((right - left) / CELL[0] / _WIDEST))
    cell_x, cell_y = scale * CELL[0], scale * CELL[1]
    columns, rows = math.ceil((right - left) / cell_x - 1e-6), math.ceil((top - bottom) / cell_y - 1e-6)
    lines = [[_FLOOR] * max(columns, 1) for _ in range(max(rows, 1))]
    for (low_x, high_x, low_y, high_y), character in parts:
        for row in _cells(low_y - bottom, high_y - bottom, cell_y, len(lines)):
            for column in _cells(low_x - left, high_x - left, cell_x, len(lines[0])):
                lines[row][column] = character
    return "\n".join("".join(line) for line in reversed(lines)), (cell_x, cell_y)


def _parts(level: Any) -> list[tuple[_Box, str]]:
    """The boxes of all parts, in the order in which they are drawn."""
    goal, (half_x, half_y) = level.goal, (CELL[0] / 2, CELL[1] / 2)
    parts = [] if goal is None else [((goal.min_x, goal.max_x, goal.min_y, goal.max_y), GOAL)]
    for spawn, digit in zip(level.spawns, SPAWNS, strict=False):
        (low_x, high_x), (low_y, high_y) = _range(spawn.x), _range(spawn.y)
        parts.append(((low_x - half_x, high_x + half_x, low_y - half_y, high_y + half_y), digit))
    parts += [(_box(wall), WALL) for wall in level.walls]
    parts += [(_box(door), letter) for door, letter in zip(level.doors, DOORS, strict=False)]
    parts += [((button.x, button.x, button.y, button.y), BUTTONS[button.door]) for button in level.buttons]
    parts += [((cube.x, cube.x, cube.y, cube.y), CUBE) for cube in level.cubes]
    return parts


def _box(part: Any) -> _Box:
    half_x, half_y = part.size_x / 2, part.size_y / 2
    return part.x - half_x, part.x + half_x, part.y - half_y, part.y + half_y


def _range(value: Any) -> tuple[float, float]:
    return value if isinstance(value, tuple) else (value, value)


def _around(boxes: list[_Box]) -> _Box:
    low_x, high_x, low_y, high_y = zip(*boxes, strict=True)
    return min(low_x), max(high_x), min(low_y), max(high_y)


def _cells(low: float, high: float, size: float, count: int) -> range:
    """The cells that an interval has, whose edges are moved to the nearest ones; a point has the cell that it is in."""
    if low == high:
        first = min(max(math.floor(low / size), 0), count - 1)
        return range(first, first + 1)
    first = min(max(math.floor(low / size + 0.5), 0), count - 1)
    return range(first, max(first + 1, min(math.floor(high / size + 0.5), count)))
