"""What moves in a world, at one moment, as plain numbers, and the ways that are free at that moment."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import final

from doorstep.planner.geometry import Bounds, Obstacle, Point, Rectangle, facing, obstacle_around, overlap, sees
from doorstep.planner.level import AGENT_HALF, CELL, CLEARANCE, Level
from doorstep.planner.paths import reachable_cells, shortest_path

CUBE_HALF = 1.5  # metres
CUBE_PRICE = 4.0  # cells that a path may be longer to avoid a cube
_SURELY_ON = 0.5  # metres; half the side of a button, less what a cube may slide
_AGENT_GAP = 2.15  # metres between the centres of agents that do not touch


@dataclass(frozen=True)
class Body:
    """An agent or a cube on the floor: metres, radians, metres per second."""

    x: float
    y: float
    yaw: float
    velocity: Point = (0.0, 0.0)

    @property
    def at(self) -> Point:
        """Where it is."""
        return self.x, self.y


@final
@dataclass
class Scene:
    """A world at one moment.

    Agents and cubes that have no finite place are None. `holds` has, for each agent, the index of the cube it holds
    or -1. Doors that stay open when their buttons are released are `lasting`.
    """

    level: Level
    agents: list[Body | None]
    cubes: list[Body | None]
    holds: list[int]
    is_open: list[int]
    pressed: list[int]
    lasting: list[bool]
    _obstacles: dict[tuple[int, ...], list[Obstacle]] = field(default_factory=dict)
    _grids: dict[object, bytes] = field(default_factory=dict)
    _reached: dict[object, list[list[int]]] = field(default_factory=dict)

    def with_cube(self, cube: int, place: Point, askew: float = 0.0) -> Scene:
        """The same scene with a cube at another place, turned by an angle."""
        cubes = self.cubes.copy()
        body = cubes[cube]
        cubes[cube] = body and dataclasses.replace(body, x=place[0], y=place[1], yaw=body.yaw + askew)
        return dataclasses.replace(self, cubes=cubes, _obstacles={}, _grids={}, _reached={})

    def covers(self, cube: int, button: int) -> bool:
        """Whether a cube is on a button, with some certainty."""
        rectangle = self.cube_rectangle(cube)
        x, y = self.level.buttons[button]
        return rectangle is not None and overlap(rectangle, Rectangle(x, y, 1.0, 0.0, _SURELY_ON, _SURELY_ON))

    def cube_obstacle(self, cube: int) -> Obstacle | None:
        """What a cube keeps the centres of agents away from."""
        rectangle = self.cube_rectangle(cube)
        return rectangle and obstacle_around(rectangle, CLEARANCE)

    def cube_rectangle(self, cube: int) -> Rectangle | None:
        """The footprint of a cube."""
        body = self.cubes[cube]
        return None if body is None else Rectangle(body.x, body.y, *facing(body.yaw), CUBE_HALF, CUBE_HALF)

    def obstacles(self, without: Collection[int] = ()) -> list[Obstacle]:
        """What keeps the centres of agents away: walls, closed doors, and all cubes but some."""
        key = tuple(without)
        if key not in self._obstacles:
            doors = [
                box for box, is_open in zip(self.level.doors_in_sight, self.is_open, strict=True) if box and not is_open
            ]
            cubes = [self.cube_obstacle(cube) for cube in range(len(self.cubes)) if cube not in without]
            self._obstacles[key] = [*self.level.walls_in_sight, *doors, *(box for box in cubes if box)]
        return self._obstacles[key]

    def footprints(self, without: Collection[int] = ()) -> list[Rectangle]:
        """The footprints of walls, closed doors, and all cubes but some."""
        doors = [
            box for box, is_open in zip(self.level.door_rectangles, self.is_open, strict=True) if box and not is_open
        ]
        cubes = [self.cube_rectangle(cube) for cube in range(len(self.cubes)) if cube not in without]
        return [*self.level.wall_rectangles, *doors, *(box for box in cubes if box)]

    def find_path(
        self,
        start: Point,
        goal: Point,
        *,
        without: Collection[int] = (),
        others: Iterable[Point] = (),
        tolerance: float = 1.0,
        through_cubes: bool = False,
    ) -> list[Point]:
        """The corners of a shortest path, without its start; empty if there is none.

        Args:
            start: metres; it may be closer to a thing than an agent should be.
            goal: metres.
            without: cubes that are not in the way.
            others: centres of agents to avoid.
            tolerance: metres within which a free cell replaces a goal that is not free.
            through_cubes: whether the path may lead through cubes, at a price.
        """
        avoided = _around(others, start, goal)
        if not through_cubes and sees(start, goal, self.obstacles(without)) and sees(start, goal, avoided):
            return [goal]
        ends = self._ends(start, goal, without, avoided, tolerance, through_cubes)
        if ends is None:
            return []
        level = self.level
        grid = self._grid(without, avoided, through_cubes)
        greed = 2.0 if through_cubes else 1.1
        cells = shortest_path(grid, level.width, *ends, price=CUBE_PRICE, greed=greed)
        points = [level.centre_of(cell) for cell in cells]
        if math.dist(points[-1], goal) < CELL:
            points[-1] = goal
        return points if through_cubes else self._pulled_tight([start, *points], without, avoided)

    def has_path(self, start: Point, goal: Point, *, without: Collection[int] = (), tolerance: float = 1.0) -> bool:
        """Whether `find_path()` finds one; this takes a fraction of its time."""
        if sees(start, goal, self.obstacles(without)):
            return True
        return self._ends(start, goal, without, [], tolerance, False) is not None

    def _ends(
        self,
        start: Point,
        goal: Point,
        without: Collection[int],
        avoided: list[Obstacle],
        tolerance: float,
        through_cubes: bool,
    ) -> tuple[int, int] | None:
        """The cells that a path begins and ends in; None if no path connects them."""
        level, grid = self.level, self._grid(without, avoided, through_cubes)
        first, last = _free_cell(level, grid, start, 2.0), _free_cell(level, grid, goal, tolerance)
        if first < 0 or last < 0:
            return None
        (row, column), (last_row, last_column) = divmod(first, level.width), divmod(last, level.width)
        parts = self._reached.setdefault((tuple(without), tuple(avoided), through_cubes), [])
        part = next((part for part in parts if part[row] >> column & 1), None)
        if part is None:
            part = reachable_cells(grid, level.width, first)
            parts.append(part)
        return (first, last) if part[last_row] >> last_column & 1 else None

    def cubes_on(self, path: Iterable[Point]) -> list[int]:
        """The cubes that a path leads through, in its order."""
        cubes = [(cube, obstacle) for cube in range(len(self.cubes)) if (obstacle := self.cube_obstacle(cube))]
        found: list[int] = []
        for point in path:
            found += [cube for cube, obstacle in cubes if cube not in found and obstacle.contains(point)]
        return found

    def _grid(self, without: Collection[int], avoided: list[Obstacle], through_cubes: bool) -> bytes:
        key = tuple(without), tuple(avoided), through_cubes
        if key not in self._grids:
            self._grids[key] = self._painted(without, avoided, 2 if through_cubes else 1)
        return self._grids[key]

    def _painted(self, without: Collection[int], avoided: list[Obstacle], cube: int) -> bytes:
        level = self.level
        grid = level.walls.copy()
        for index in range(len(self.cubes)):
            obstacle = None if index in without else self.cube_obstacle(index)
            if obstacle:
                part = grid[level.cells_in(obstacle.bounds)]  # a view
                part[(part == 0) & level.is_inside(obstacle)] = cube
        for obstacle in avoided:
            grid[level.cells_in(obstacle.bounds)] = 1
        flat = grid.ravel()
        for cells_of_door, is_open in zip(level.door_cells, self.is_open, strict=True):
            if not is_open:
                flat[cells_of_door] = 1
        return bytes(flat)

    def _pulled_tight(self, points: list[Point], without: Collection[int], avoided: list[Obstacle]) -> list[Point]:
        """Only the corners of a path that are needed: the others are cut short where the floor is free."""
        boxes = [*self.obstacles(without), *avoided]
        corners = []
        at = 0
        while at < len(points) - 1:
            step = len(points) - 1 - at
            while step > 1 and not sees(points[at], points[at + step], boxes):
                step = step * 3 // 4
            at += step
            corners.append(points[at])
        return corners


def _around(others: Iterable[Point], start: Point, goal: Point) -> list[Obstacle]:
    """What agents keep an agent away from, but for those that it touches or goes to."""
    return [
        Obstacle(Bounds(x - _AGENT_GAP, y - _AGENT_GAP, x + _AGENT_GAP, y + _AGENT_GAP))
        for x, y in others
        if math.dist((x, y), goal) > AGENT_HALF and math.dist((x, y), start) > AGENT_HALF
    ]


def _free_cell(level: Level, grid: bytes, point: Point, reach: float) -> int:
    """The cell of a point, or the free one that is nearest to it; -1 if none is within reach."""
    cell = level.cell_at(*point)
    if grid[cell] != 1:
        return cell
    x, y = point
    rows, columns = level.cells_in(Bounds(x - reach, y - reach, x + reach, y + reach))
    best, nearest = -1, math.inf
    for row in range(*rows.indices(level.height)):
        for column in range(*columns.indices(level.width)):
            cell = row * level.width + column
            distance = math.dist(level.centre_of(cell), point)
            if grid[cell] != 1 and distance < nearest:
                best, nearest = cell, distance
    return best
