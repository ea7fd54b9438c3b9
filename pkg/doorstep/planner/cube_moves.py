"""How cubes can be moved: in straight lines, by an agent that pushes from behind or pulls from ahead, and along paths
around corners and through open doors (`cube_path()`).

A grab ray that goes through the middle of a cube makes a handle along which force does not turn the cube, from any
side, also obliquely. So a move has any direction, and needs only that what agent and cube sweep is free.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from doorstep.planner.geometry import (
    Point,
    Rectangle,
    extent,
    facing,
    obstacle_around,
    overlaps_any,
    swept,
    yaw_towards,
)
from doorstep.planner.level import BUTTON_HALF
from doorstep.planner.paths import shortest_path
from doorstep.planner.scene import CUBE_HALF, Body, Scene

STAND_TOLERANCE = 1.2  # metres from where a cube is to be grabbed, at which the way to it may end
_ASKEW = 0.2  # radians that a cube may be turned by where it gets to; it then takes more room
_HANDLE = 1.45  # metres from an agent that grabs to the face of the cube; the ray is 2 long
_HAUL_PRICE = 2.0  # of hauling a metre, in metres walked
_GRAB_PRICE = 4.0  # of turning, grabbing and releasing, in metres walked
_ON_BUTTON = CUBE_HALF + BUTTON_HALF - 1.15  # metres that a cube's centre is to be off at most, along both axes
_SHORTEST = 0.3  # metres
_CLEARANCE = 1.75  # metres from a cube's centre to a thing: its half side, and slack for what it is turned
_SPACING = 3  # cells between the points of a path
_BUTTON_REACH = 1.2  # metres from a button within which a cube's centre is to end


class CubeMove(NamedTuple):
    """A cube's way to a target in one straight line.

    Attributes:
        cube: which one.
        target: of its centre, metres.
        push: the agent is behind the cube; otherwise before it.
        stand: where the agent grabs, metres.
        cost: in metres walked.
    """

    cube: int
    target: Point
    push: bool
    stand: Point
    cost: float


def handle_length(cube: Body, direction: Point) -> float:
    """Metres from the centre of a cube to an agent that grabs it looking along a direction."""
    angle = yaw_towards(*direction) - cube.yaw
    return CUBE_HALF / max(abs(math.cos(angle)), abs(math.sin(angle))) + _HANDLE


def scene_after(scene: Scene, move: CubeMove) -> tuple[Scene, Point]:
    """The scene after a move, and where its agent is then."""
    return scene.with_cube(move.cube, move.target, _ASKEW), _end_of_agent(scene, move)


def _end_of_agent(scene: Scene, move: CubeMove) -> Point:
    body = scene.cubes[move.cube]
    assert body is not None
    return move.stand[0] + move.target[0] - body.x, move.stand[1] + move.target[1] - body.y


def moves_onto(
    scene: Scene, cube: int, button: int, agent: Body, refused: Collection[tuple[object, ...]] = ()
) -> Iterator[CubeMove]:
    """The moves that put a cube on a button, the cheapest for the agent first."""
    body, (x, y) = scene.cubes[cube], scene.level.buttons[button]
    if body is None:
        return
    yield from _free_moves(scene, cube, _targets_on(body, (x, y)), agent, refused)


def _targets_on(body: Body, button: Point) -> list[Point]:
    x, y = button
    near = min(max(body.x, x - _ON_BUTTON), x + _ON_BUTTON), min(max(body.y, y - _ON_BUTTON), y + _ON_BUTTON)
    offsets = (0.0, -_ON_BUTTON, _ON_BUTTON)
    return [near, *((x + dx, y + dy) for dx, dy in itertools.product(offsets, offsets))]


def moves_towards(
    scene: Scene, cube: int, button: int, agent: Body, refused: Collection[tuple[object, ...]] = ()
) -> CubeMove | None:
    """The first of two moves that put a cube on a button by way of another place."""
    body = scene.cubes[cube]
    if body is None:
        return None
    best, least = None, math.inf
    for move in _free_moves(scene, cube, _places_around(body, _VIA_LENGTHS), agent, refused):
        if move.cost >= least:
            break
        end = _end_of_agent(scene, move)
        moved = scene.with_cube(cube, move.target)
        for onto in moves_onto(moved, cube, button, dataclasses.replace(agent, x=end[0], y=end[1]), refused):
            if move.cost + onto.cost >= least:
                break
            if moved.has_path(end, onto.stand, tolerance=STAND_TOLERANCE):
                best, least = move, move.cost + onto.cost
                break
    return best


def next_leg(
    scene: Scene, cube: int, button: int, agent: Body, refused: Collection[tuple[object, ...]] = ()
) -> CubeMove | None:
    """The first of any number of moves that put a cube on a button: as far along its way as one move gets it, if
    another one can follow."""
    body = scene.cubes[cube]
    if body is None:
        return None
    path = cube_path(scene, cube, scene.level.buttons[button])
    targets = [(point, path[index + 1 :]) for index, point in enumerate(path) if math.dist(point, body.at) > _SHORTEST]
    for target, rest in reversed(targets):
        for move in _free_moves(scene, cube, [target], agent, refused):
            if not scene.has_path(agent.at, move.stand, tolerance=STAND_TOLERANCE):
                continue
            end = _end_of_agent(scene, move)
            moved, there = scene.with_cube(cube, target), dataclasses.replace(agent, x=end[0], y=end[1])
            follow = (*moves_onto(moved, cube, button, there, refused), *_free_moves(moved, cube, rest, there, refused))
            if any(moved.has_path(end, following.stand, tolerance=STAND_TOLERANCE) for following in follow):
                return move
    return None


_VIA_LENGTHS = (2.0, 4.0, 6.0)
_ASIDE_LENGTHS = (3.0, 4.5, 6.0, 8.0)


def _places_around(body: Body, lengths: Iterable[float]) -> list[Point]:
    """Places along the faces of a cube."""
    directions = [facing(body.yaw + quarter * math.pi / 2) for quarter in range(4)]
    return [(body.x + length * x, body.y + length * y) for (x, y), length in itertools.product(directions, lengths)]


def moves_aside(
    scene: Scene, cube: int, agent: Body, refused: Collection[tuple[object, ...]] = ()
) -> Iterator[CubeMove]:
    """The moves of a cube along its faces, the cheapest for the agent first."""
    body = scene.cubes[cube]
    if body is None:
        return
    yield from _free_moves(scene, cube, _places_around(body, _ASIDE_LENGTHS), agent, refused)


def _free_moves(
    scene: Scene,
    cube: int,
    targets: list[Point],
    agent: Body,
    refused: Collection[tuple[object, ...]],
) -> Iterator[CubeMove]:
    body = scene.cubes[cube]
    assert body is not None
    moves = [move for target in targets for push in (True, False) if (move := _move(body, cube, target, push, agent))]
    moves = [move for move in sorted(moves, key=lambda move: move.cost) if name_of(move) not in refused]
    footprints = [footprint for move in moves for footprint in _swept_by(body, move)]
    blocked = overlaps_any(footprints, scene.footprints(without=(cube,)))
    for index, move in enumerate(moves):
        if not blocked[2 * index] and not blocked[2 * index + 1]:
            yield move


def name_of(move: CubeMove) -> tuple[object, ...]:
    """What is the same for moves that are nearly the same."""
    return move.cube, move.push, round(move.target[0]), round(move.target[1])


def _move(body: Body, cube: int, target: Point, push: bool, agent: Body) -> CubeMove | None:
    length = math.dist(body.at, target)
    if length < _SHORTEST:
        return None
    x, y = (target[0] - body.x) / length, (target[1] - body.y) / length
    sign = -1 if push else 1
    handle = handle_length(body, (x, y))
    stand = body.x + sign * handle * x, body.y + sign * handle * y
    cost = math.dist(agent.at, stand) + _HAUL_PRICE * length + _GRAB_PRICE
    if push and (agent.x - body.x) * x + (agent.y - body.y) * y > 0:
        cost += 3.0  # the way around the cube
    return CubeMove(cube, target, push, stand, cost)


def _swept_by(body: Body, move: CubeMove) -> tuple[Rectangle, Rectangle]:
    """What a cube and its agent sweep. Cubes that touch it at the side are no obstacle."""
    (tx, ty), length = move.target, math.dist(body.at, move.target)
    direction = (tx - body.x) / length, (ty - body.y) / length
    half = extent(yaw_towards(*direction) - body.yaw, CUBE_HALF)
    end = move.stand[0] + tx - body.x, move.stand[1] + ty - body.y
    return (
        swept(body.at, move.target, direction, half - 0.1, half - 0.1),
        swept(move.stand, end, direction, 1.05, 1.1),
    )


def cube_path(scene: Scene, cube: int, target: Point) -> list[Point]:
    """The points of a shortest path of a cube, about a metre apart, without the one where it starts; an empty list if
    the cube cannot reach the target.

    The last point is the target itself or, if the target is the middle of a button, a point where the cube presses it.
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
