"""Maps made of characters: what stands in which cell, seen from above with +y upwards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias, get_args

from doorstep._arguments import check_choice, check_vector, refuse
from doorstep._configs import Range
from doorstep._native._generated import LEVEL_MAX_DOORS, LEVEL_MAX_STATICS, MAX_AGENTS
from doorstep.errors import ArgumentError
from doorstep.levels.numbers import SIZE, YAW, NumberOrRange
from doorstep.levels.parts import Button, Cube, Door, Goal, GoalAgentsName, Spawn, Wall
from doorstep.levels.rectangles import Cell, Rectangle, bounds, merge

WALL, CUBE, GOAL, FLOOR = "#", "O", "X", ". "
DOORS = "ABCDEFGH"
BUTTONS = DOORS.lower()
SPAWNS = "12345678"
LONGEST = 256  # lines, and columns, of a map
assert len(DOORS) == LEVEL_MAX_DOORS
assert len(SPAWNS) == MAX_AGENTS

_MEANINGS = (
    "'#' wall, '.' or ' ' floor, 'A' to 'H' doors, 'a' to 'h' their buttons, 'O' cube, '1' to '8' spawns, 'X' goal"
)

# Parts, each with a cell that shows where it is.
Placed: TypeAlias = "list[tuple[Cell, Any]]"


@dataclass(frozen=True)
class Map:
    """What a map holds, as the arguments of a level, and where in the text each part is."""

    parts: dict[str, Any]
    places: dict[str, str]  # "walls[3]": "line 4, column 7"

    def located(self, error: ArgumentError) -> ArgumentError:
        """The error with the places of the parts that it is about."""
        message = re.sub(r"\b\w+\[\d+\]", lambda found: self._with_place(found[0]), str(error.args[0]))
        part = error.argument.partition(".")[0]
        if part in self.places:
            message = f"{self.places[part]}: " + message.replace(self._with_place(part), part, 1)
        return ArgumentError(message, argument=error.argument, hint=error.hint)

    def _with_place(self, part: str) -> str:
        return f"{part} ({self.places[part]})" if part in self.places else part


@dataclass(frozen=True)
class _Grid:
    """Cells by their characters, and how rows and columns become metres."""

    cells: dict[str, set[Cell]]
    first_line: int  # of the text, from 1
    indentation: int
    height: int  # rows
    width: int  # columns of the longest line
    cell_x: float
    cell_y: float
    left: float
    bottom: float

    def centre(self, cell: Cell) -> tuple[float, float]:
        row, column = cell
        return self.left + (column + 0.5) * self.cell_x, self.bottom + (self.height - row - 0.5) * self.cell_y

    def box(self, rectangle: Rectangle) -> tuple[float, float, float, float]:
        """Centre and sizes."""
        rows, columns = rectangle.last_row - rectangle.first_row, rectangle.last_column - rectangle.first_column
        x = self.left + (rectangle.first_column + columns / 2) * self.cell_x
        y = self.bottom + (self.height - rectangle.first_row - rows / 2) * self.cell_y
        return x, y, columns * self.cell_x, rows * self.cell_y

    def place(self, cell: Cell) -> str:
        row, column = cell
        return f"line {self.first_line + row}, column {self.indentation + column + 1}"

    def has(self, cell: Cell) -> bool:
        return 0 <= cell[0] < self.height and 0 <= cell[1] < self.width

    def rectangle(self, character: str, what: str) -> Rectangle:
        """The cells of a character, which must be one rectangle."""
        cells = self.cells[character]
        rectangle = bounds(cells)
        hole = min(rectangle.cells() - cells, default=None)
        if hole is not None:
            message = f"{self.place(hole)}: {what} has a gap here; its cells {character!r} must form one rectangle"
            raise ArgumentError(message, argument="text")
        return rectangle


def read_map(
    text: str,
    cell: object,
    origin: object,
    height: float,
    closing_doors: str,
    spawn_yaw: NumberOrRange,
    goal_agents: GoalAgentsName,
) -> Map:
    """Reads a map. Arguments as of `Level.from_ascii`.

    Raises:
        ArgumentError: names the line and column of what cannot be read.
    """
    check_choice("goal_agents", goal_agents, get_args(GoalAgentsName))
    Range(YAW).check("spawn_yaw", spawn_yaw)
    grid = _grid(text, cell, origin)
    letters = [letter for letter in DOORS if letter in grid.cells]
    found = {
        "walls": _walls(grid, height),
        "doors": _doors(grid, letters, height, closing_doors),
        "buttons": _buttons(grid, letters),
        "cubes": [(place, Cube(*grid.centre(place))) for place in sorted(grid.cells.get(CUBE, ()))],
        "spawns": _spawns(grid, spawn_yaw),
    }
    parts: dict[str, Any] = {name: [part for _, part in placed] for name, placed in found.items()}
    places = {f"{name}[{i}]": grid.place(at) for name, placed in found.items() for i, (at, _) in enumerate(placed)}
    return Map({**parts, "goal": _goal(grid, goal_agents)}, places)


# ---- Cells ----


def _grid(text: object, cell: object, origin: object) -> _Grid:
    first_line, indentation, lines = _lines(text)
    cells: dict[str, set[Cell]] = {}
    for row, line in enumerate(lines):
        for column, character in enumerate(line):
            cells.setdefault(character, set()).add((row, column))
    cell_x, cell_y = _cell_sizes(cell)
    width = max(map(len, lines))
    left, bottom = -width * cell_x / 2, -cell_y
    if origin is not None:
        left, bottom = check_vector("origin", origin, 2, "None or two numbers (x, y)")
    grid = _Grid(cells, first_line, indentation, len(lines), width, cell_x, cell_y, left, bottom)
    for character in cells:
        if character not in f"{WALL}{CUBE}{GOAL}{FLOOR}{DOORS}{BUTTONS}{SPAWNS}":
            message = (
                f"{grid.place(min(cells[character]))}: {character!r} has no meaning; the characters are {_MEANINGS}"
            )
            raise ArgumentError(message, argument="text")
    return grid


def _lines(text: object) -> tuple[int, int, list[str]]:
    """The number of the first line, the indentation, and the lines without it and without what is empty around."""
    if not isinstance(text, str) or not text.strip():
        refuse("text", "a map of characters", text, _MEANINGS)
    lines = [line.rstrip() for line in text.splitlines()]
    used = [i for i, line in enumerate(lines) if line]
    lines, first = lines[used[0] : used[-1] + 1], used[0] + 1
    indentation = min(len(line) - len(line.lstrip(" ")) for line in lines if line)
    lines = [line[indentation:] for line in lines]
    if max(len(lines), *map(len, lines)) > LONGEST:
        shape = f"a map of {max(map(len, lines))} x {len(lines)} characters"
        message = f"text is {shape}; it must be at most {LONGEST} x {LONGEST}"
        raise ArgumentError(message, argument="text", hint="make cells larger")
    return first, indentation, lines


def _cell_sizes(cell: object) -> tuple[float, float]:
    if isinstance(cell, (tuple, list)):
        if len(cell) != 2:
            refuse("cell", "a number of metres, or two (width, height)", cell)
        return SIZE.check("cell[0]", cell[0]), SIZE.check("cell[1]", cell[1])
    size = SIZE.check("cell", cell)
    return size, size


# ---- Parts ----


def _walls(grid: _Grid, height: float) -> Placed:
    rectangles = list(islice(merge(grid.cells.get(WALL, ())), LEVEL_MAX_STATICS + 1))
    if len(rectangles) > LEVEL_MAX_STATICS:
        message = f"the walls of the map are more than {LEVEL_MAX_STATICS} rectangles, the most that a level has"
        raise ArgumentError(message, argument="text", hint="use fewer and longer walls")
    return [(rectangle.first_cell, Wall(*grid.box(rectangle), height=height)) for rectangle in rectangles]


def _doors(grid: _Grid, letters: list[str], height: float, closing: object) -> Placed:
    if not isinstance(closing, str) or not set(closing) <= set(letters):
        refuse("closing_doors", f"letters of the map's doors, {''.join(letters)!r}", closing)
    rectangles = [(letter, grid.rectangle(letter, f"door {letter}")) for letter in letters]
    return [
        (rectangle.first_cell, Door(*grid.box(rectangle), height=height, persistent=letter not in closing))
        for letter, rectangle in rectangles
    ]


def _buttons(grid: _Grid, letters: list[str]) -> Placed:
    placed: Placed = []
    for letter in BUTTONS:
        for place in sorted(grid.cells.get(letter, ())):
            door = letter.upper()
            if door not in letters:
                message = f"{grid.place(place)}: {letter!r} is a button of door {door}, which the map does not have"
                raise ArgumentError(message, argument="text", hint=f"draw the cells of the door with {door!r}")
            placed.append((place, Button(*grid.centre(place), door=letters.index(door))))
    return placed


def _spawns(grid: _Grid, yaw: NumberOrRange) -> Placed:
    digits = [digit for digit in SPAWNS if digit in grid.cells]
    for digit, expected in zip(digits, SPAWNS, strict=False):
        if digit != expected:
            where = grid.place(min(grid.cells[digit]))
            message = f"{where}: there is a spawn {digit!r}, but none {expected!r}; agents are numbered from '1'"
            raise ArgumentError(message, argument="text")
    rectangles = [grid.rectangle(digit, f"spawn {digit}") for digit in digits]
    for digit in digits:
        _check_way_out(grid, digit)
    return [(rectangle.first_cell, _spawn(grid, rectangle, yaw)) for rectangle in rectangles]


def _check_way_out(grid: _Grid, digit: str) -> None:
    """Refuses lines that end before the wall around a spawn, and walls around nothing but the spawn.

    What a line lacks is floor, as editors remove spaces from ends of lines: it is a hole only where all else is wall.
    """
    walls = grid.cells.get(WALL, set())
    drawn = set().union(*grid.cells.values())
    inside, new = set(grid.cells[digit]), set(grid.cells[digit])
    while new:
        new = {cell for near in new for cell in _neighbours(near)} - inside
        new &= drawn - walls
        inside |= new
    edge = {(row, column) for row, column in inside if not 0 < row < grid.height - 1 or not 0 < column < grid.width - 1}
    is_closed = edge <= set().union(*(grid.cells.get(letter, ()) for letter in DOORS))
    missing = {cell for near in inside for cell in _neighbours(near) if cell not in drawn and grid.has(cell)}
    for row, column in sorted(missing):
        beyond = range(column, grid.width)
        if is_closed or (column > 0 and any((row - 1, x) in walls and (row + 1, x) in walls for x in beyond)):
            message = f"{grid.place((row, column))}: the line ends here, which leaves a hole in the wall"
            raise ArgumentError(message, argument="text", hint="go on with '#', or with '.' if it is to be open")
    if is_closed and inside == grid.cells[digit]:
        message = f"{grid.place(min(inside))}: there is nothing but walls around spawn {digit}"
        raise ArgumentError(message, argument="text", hint="leave a way out with '.', or move the spawn")


def _neighbours(cell: Cell) -> list[Cell]:
    row, column = cell
    return [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]


def _spawn(grid: _Grid, rectangle: Rectangle, yaw: NumberOrRange) -> Spawn:
    """Drawn between the centres of the outermost cells."""
    x, y, size_x, size_y = grid.box(rectangle)
    return Spawn(_around(x, size_x - grid.cell_x), _around(y, size_y - grid.cell_y), yaw)


def _around(centre: float, length: float) -> NumberOrRange:
    return (centre - length / 2, centre + length / 2) if length > 0 else centre


def _goal(grid: _Grid, agents: GoalAgentsName) -> Goal | None:
    if GOAL not in grid.cells:
        return None
    x, y, size_x, size_y = grid.box(grid.rectangle(GOAL, "the goal"))
    return Goal(x - size_x / 2, x + size_x / 2, y - size_y / 2, y + size_y / 2, agents)
