"""What does not move in a world: walls, doors and buttons, on a grid, and which places doors connect.

A level is made once and used until its walls, doors or buttons change. Nothing in it depends on whether doors are open.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native import EntityKind
from doorstep.planner.geometry import Bounds, Obstacle, Point, Rectangle, rectangle_of

CELL = 0.4  # metres, side of a cell
AGENT_HALF = 1.0  # metres
CLEARANCE = 1.08  # metres from an agent's centre to a thing: its half side, turned by half the smallest turn, and slack
BUTTON_HALF = 0.65  # metres
_MARGIN = 4.0  # metres of floor around the walls
_MOST_CELLS = 300  # along an axis
_FARTHEST = 1000.0  # metres; a thing beyond, or without a finite place, is not there
_ALIGNED = 0.05  # sine times cosine of a turn whose effect is less than a cell
_DOORWAY = 3.0  # metres from a place in a doorway within which there is a place outside of it
_CLOSED_DOOR_PRICE = 10.0  # of a closed door, in places: one that is open is gone through instead


@final
class Level:
    """The grid of a level and its places.

    A place is a connected part of the floor that agents can walk on while all doors are closed, or what a closed door
    takes away from the floor: places `num_rooms + d` are the doors d. Neighbouring places are connected.

    Args:
        statics: positions [S, 3] (bottom centre), sizes [S, 3] and kinds [S] of walls and doors.
        door_statics: int [D], the statics of the doors' panels.
        button_positions: [K, 3].
        button_doors: int [K].
    """

    def __init__(
        self,
        statics: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
        door_statics: Sequence[int],
        button_positions: Sequence[Sequence[float]],
        button_doors: Sequence[int],
    ) -> None:
        boxes, kinds = _boxes(*statics), statics[2]
        is_door = [0 <= static < len(kinds) and kinds[static] == EntityKind.DOOR for static in door_statics]
        self.doors = [boxes.pop(s, None) if real else None for s, real in zip(door_statics, is_door, strict=True)]
        walls = list(boxes.values())
        self.buttons: list[Point] = [(x, y) for x, y, _ in button_positions]
        self.buttons_of = [
            [button for button, of in enumerate(button_doors) if of == door and _is_near(self.buttons[button])]
            for door in range(len(self.doors))
        ]
        self.walls_in_sight = [Obstacle(wall.grown(CLEARANCE - 0.02)) for wall in walls]
        self.doors_in_sight = [door and Obstacle(door.grown(CLEARANCE - 0.02)) for door in self.doors]
        self.wall_rectangles: list[Rectangle] = [rectangle_of(wall) for wall in walls]
        self.door_rectangles = [door and rectangle_of(door) for door in self.doors]
        self._lay_out([box for box in (*walls, *self.doors) if box])
        self._wall_bounds = walls
        self._walls_grown: dict[float, NDArray[np.uint8]] = {}
        self.walls = self.walls_grown(CLEARANCE)
        self._find_places()
        self.highest = max((box.high_y for box in (*walls, *self.doors) if box), default=0.0)

    # ---- The grid ----

    def _lay_out(self, boxes: Sequence[Bounds]) -> None:
        corners = [corner for box in boxes for corner in (box[:2], box[2:])]
        points = [*self.buttons, *corners]
        near = [point for point in points if _is_near(point)] or [(0.0, 0.0)]
        self.low_x = min(x for x, _ in near) - _MARGIN
        self.low_y = min(y for _, y in near) - _MARGIN
        self.width = min(int((max(x for x, _ in near) + _MARGIN - self.low_x) / CELL) + 1, _MOST_CELLS)
        self.height = min(int((max(y for _, y in near) + _MARGIN - self.low_y) / CELL) + 1, _MOST_CELLS)

    def cell_at(self, x: float, y: float) -> int:
        """The cell of a point; of a point outside of the grid, the nearest one."""
        column = min(max(int((x - self.low_x) / CELL), 0), self.width - 1)
        row = min(max(int((y - self.low_y) / CELL), 0), self.height - 1)
        return row * self.width + column

    def centre_of(self, cell: int) -> Point:
        """The centre of a cell."""
        row, column = divmod(cell, self.width)
        return self.low_x + (column + 0.5) * CELL, self.low_y + (row + 0.5) * CELL

    def cells_in(self, box: Bounds) -> tuple[slice, slice]:
        """The rows and columns of the cells whose centres are in a box."""
        return (
            slice(*_range(box.low_y - self.low_y, box.high_y - self.low_y, self.height)),
            slice(*_range(box.low_x - self.low_x, box.high_x - self.low_x, self.width)),
        )

    def cells_around(self, point: Point, reach: float) -> list[int]:
        """The cells whose centres are in a square around a point."""
        x, y = point
        rows, columns = self.cells_in(Bounds(x - reach, y - reach, x + reach, y + reach))
        return [
            row * self.width + column
            for row in range(rows.start, rows.stop)
            for column in range(columns.start, columns.stop)
        ]

    def walls_grown(self, clearance: float) -> NDArray[np.uint8]:
        """[rows, columns]: 1 where a centre is closer to a wall than that, or at the border; not to be written to."""
        if clearance not in self._walls_grown:
            grid = np.zeros((self.height, self.width), np.uint8)
            for wall in self._wall_bounds:
                grid[self.cells_in(wall.grown(clearance))] = 1
            grid[[0, -1], :] = grid[:, [0, -1]] = 1
            self._walls_grown[clearance] = grid
        return self._walls_grown[clearance]

    def is_inside(self, obstacle: Obstacle) -> NDArray[np.bool_]:
        """Of the cells whose centres are in an obstacle's bounds [rows, columns], which are inside of it."""
        rows, columns = self.cells_in(obstacle.bounds)
        if abs(obstacle.ux * obstacle.uy) < _ALIGNED:
            return np.ones((rows.stop - rows.start, columns.stop - columns.start), np.bool_)
        x = (self.low_x + (np.arange(columns.start, columns.stop) + 0.5) * CELL)[None, :]
        y = (self.low_y + (np.arange(rows.start, rows.stop) + 0.5) * CELL)[:, None]
        (middle_x, middle_y), ux, uy = obstacle.middle, obstacle.ux, obstacle.uy
        u, v = (x - middle_x) * ux + (y - middle_y) * uy, (y - middle_y) * ux - (x - middle_x) * uy
        inside: NDArray[np.bool_] = np.maximum(np.abs(u), np.abs(v)) < obstacle.half_side
        return inside

    # ---- Places ----

    def _find_places(self) -> None:
        flat = np.where(self.walls != 0, -1, -2)
        self.num_rooms = 0
        doors = np.full_like(flat, -1)
        for index, door in enumerate(self.doors):
            if door:
                part = doors[self.cells_in(door.grown(CLEARANCE))]  # a view
                part[part == -1] = index
        doors[flat == -1] = -1
        self.door_cells = [np.flatnonzero(doors == index) for index in range(len(self.doors))]
        flat[doors >= 0] = -1
        self.place_of: list[int] = flat.ravel().tolist()
        for cell, place in enumerate(self.place_of):
            if place == -2:
                self._flood(cell)
        for index, cells in enumerate(self.door_cells):
            for cell in cells.tolist():
                self.place_of[cell] = self.num_rooms + index
        self._places = np.array(self.place_of)
        self.neighbours = self._connections()
        self._last_cell = {place: cell for cell, place in enumerate(self.place_of)}
        self._highest_from: dict[int, int] = {}

    def _flood(self, first: int) -> None:
        place, self.num_rooms = self.num_rooms, self.num_rooms + 1
        place_of, width, count = self.place_of, self.width, len(self.place_of)
        place_of[first] = place
        pending = [first]
        while pending:
            cell = pending.pop()
            column = cell % width
            for neighbour in (
                cell - width,
                cell + width if cell + width < count else -1,
                cell - 1 if column else -1,
                cell + 1 if column < width - 1 else -1,
            ):
                if neighbour >= 0 and place_of[neighbour] == -2:
                    place_of[neighbour] = place
                    pending.append(neighbour)

    def _connections(self) -> list[set[int]]:
        found: list[set[int]] = [set() for _ in range(self.num_rooms + len(self.doors))]
        places = self._places.reshape(self.height, self.width)
        for a, b in ((places[1:], places[:-1]), (places[:, 1:], places[:, :-1])):
            differ = (a != b) & (a >= 0) & (b >= 0)
            for one, other in set(zip(a[differ].tolist(), b[differ].tolist(), strict=True)):
                found[one].add(other)
                found[other].add(one)
        return found

    def place_near(self, x: float, y: float, reach: float = 2.0) -> int:
        """The place of a point, or of the nearest cell that has one, within a reach in metres; -1: none."""
        cell = self.cell_at(x, y)
        if self.place_of[cell] >= 0:
            return self.place_of[cell]
        x, y = self.centre_of(cell)  # of the nearest cell, outside of the grid
        return min(
            ((abs(at[0] - x) + abs(at[1] - y), self.place_of[near]) for near, at in self._around(x, y, reach)),
            default=(0, -1),
        )[1]

    def room_near(self, x: float, y: float, is_open: Sequence[int]) -> int:
        """The place of a point as `place_near()` finds it; before a closed door, the nearest other one."""
        place = self.place_near(x, y)
        if place < self.num_rooms or is_open[place - self.num_rooms]:
            return place
        rooms = [
            (math.dist(at, (x, y)), of)
            for cell, at in self._around(x, y, _DOORWAY)
            if (of := self.place_of[cell]) < self.num_rooms
        ]
        return min(rooms, default=(0, place))[1]

    def points_in(self, box: Bounds, place: int) -> NDArray[np.float64]:
        """[M, 2]: the cells of a place that are in a box."""
        rows, columns = self.cells_in(box)
        found = np.argwhere(self._places.reshape(self.height, self.width)[rows, columns] == place)
        row, column = found[:, 0] + rows.start, found[:, 1] + columns.start
        return np.stack([self.low_x + (column + 0.5) * CELL, self.low_y + (row + 0.5) * CELL], axis=1)

    def quiet_points(self, place: int, busy: Sequence[tuple[Point, float]]) -> NDArray[np.float64]:
        """[M, 2]: the cells of a place that are not too close to points, each with its distance in metres."""
        cells = np.flatnonzero(self._places == place)
        rows, columns = np.divmod(cells, self.width)
        points = np.stack([self.low_x + (columns + 0.5) * CELL, self.low_y + (rows + 0.5) * CELL], axis=1)
        for point, distance in busy:
            points = points[((points - point) ** 2).sum(axis=1) > distance**2]
        return points

    def _around(self, x: float, y: float, reach: float) -> list[tuple[int, Point]]:
        cells = self.cells_around((x, y), reach)
        return [(cell, self.centre_of(cell)) for cell in cells if self.place_of[cell] >= 0]

    # ---- Ways ----

    def reachable(self, start: int, is_open: Sequence[int]) -> set[int]:
        """The places that can be reached from one through open doors."""
        found, pending = {start}, [start]
        while pending:
            for place in self.neighbours[pending.pop()]:
                if place not in found and (place < self.num_rooms or is_open[place - self.num_rooms]):
                    found.add(place)
                    pending.append(place)
        return found

    def closed_doors_between(
        self, start: int, goals: Collection[int], is_open: Sequence[int], shut: Collection[int] = ()
    ) -> list[int] | None:
        """The closed doors on the way from a place to one of others, in order; None if there is no way. Doors that are
        shut are not gone through."""
        queue: list[tuple[float, int, list[int]]] = [(0.0, start, [])]
        done = set()
        while queue:
            cost, place, doors = heapq.heappop(queue)
            if place in goals:
                return doors
            if place in done:
                continue
            done.add(place)
            for neighbour in self.neighbours[place] - done:
                door = neighbour - self.num_rooms
                closed = door >= 0 and not is_open[door]
                if door in shut or (closed and not self.buttons_of[door]):
                    continue
                price = _CLOSED_DOOR_PRICE if closed else 1.0
                heapq.heappush(queue, (cost + price, neighbour, [*doors, door] if closed else doors))
        return None

    def highest_from(self, start: int, x: float) -> tuple[set[int], Point]:
        """The place with the largest y that doors could lead to from a place, and a point there; beyond the walls
        that point has the given x."""
        if start not in self._highest_from:
            places = self.reachable(start, [bool(buttons) for buttons in self.buttons_of])
            rooms = [place for place in places if place < self.num_rooms]
            self._highest_from[start] = max(rooms or [start], key=lambda place: self._last_cell.get(place, -1))
        place = self._highest_from[start]
        point = self.centre_of(self._last_cell.get(place, 0))
        if point[1] > self.highest:
            point = min(max(x, self.low_x + CELL), self.low_x + (self.width - 1) * CELL), point[1]
        return {place}, point


def _boxes(positions: NDArray[Any], sizes: NDArray[Any], kinds: NDArray[Any]) -> dict[int, Bounds]:
    found = {}
    for index in np.flatnonzero(kinds != EntityKind.NONE).tolist():
        (x, y, _), (width, depth, _) = positions[index].tolist(), sizes[index].tolist()
        box = Bounds(x - width / 2, y - depth / 2, x + width / 2, y + depth / 2)
        if _is_near(box[:2]) and _is_near(box[2:]):
            found[index] = box
    return found


def _is_near(point: Sequence[float]) -> bool:
    return all(abs(value) < _FARTHEST for value in point)  # not so if one is not a number


def _range(low: float, high: float, count: int) -> tuple[int, int]:
    """The indices of the cells whose centres are between two lengths."""
    first = min(max(math.ceil(low / CELL - 0.5), 0), count)
    end = min(math.floor(high / CELL - 0.5) + 1, count)
    return first, max(first, end)
