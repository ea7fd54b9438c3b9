"""Ways of cubes that are longer than one straight line: around corners and through open doors."""

from __future__ import annotations

import math

import numpy as np

from doorstep.planner.geometry import Point, obstacle_around
from doorstep.planner.paths import shortest_path
from doorstep.planner.scene import Scene

_CLEARANCE = 1.75  # metres from a cube's centre to a thing: its half side, and slack for what it is turned
_SPACING = 3  # cells between the points of a path
_BUTTON_REACH = 1.2  # metres from a button within which a cube's centre is to end


def cube_path(scene: Scene, cube: int, target: Point) -> list[Point]:
    """Points on a shortest way of a cube, without its start, about a metre apart; empty if there is none.

    The last one is the target, or where the cube is on a button that the target is the middle of.
    """
    body, level = scene.cubes[cube], scene.level
    if body is None:
        return []
    grid = level.walls_grown(_CLEARANCE).copy()
    for door, is_open in zip(level.doors, scene.is_open, strict=True):
        if door and not is_open:
            grid[level.cells_in(door.grown(_CLEARANCE))] = 1
    for other in range(len(scene.cubes)):
        rectangle = None if other == cube else scene.cube_rectangle(other)
        if rectangle:
            obstacle = obstacle_around(rectangle, _CLEARANCE)
            grid[level.cells_in(obstacle.bounds)] |= level.is_inside(obstacle)
    ends = _free_ends(grid, level.cells_around(target, _BUTTON_REACH))
    if not ends:
        return []
    end = min(ends, key=lambda cell: math.dist(level.centre_of(cell), target))
    cells = shortest_path(grid.tobytes(), level.width, level.cell_at(*body.at), end)
    return [level.centre_of(cell) for cell in cells[:0:-_SPACING][::-1]]


def _free_ends(grid: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], cells: list[int]) -> list[int]:
    flat = grid.ravel()
    return [cell for cell in cells if not flat[cell]]
