"""Overlaps of what a level places: agents and cubes must start clear of each other, of walls and of closed doors.

A spawn stands for all squares that may be drawn from its ranges. Two convex shapes that may shift by (rx, ry) against
each other are apart if and only if a normal of one of their sides, or an axis, separates them by more than the shift;
what may turn is tried at every degree.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doorstep.errors import ArgumentError
from doorstep.levels.numbers import ends_of
from doorstep.levels.parts import AGENT_SIZE, CUBE_SIZE, Cube, Door, Spawn, Wall

# Metres. What overlaps by less touches: single precision and the steps of a degree are finer than this.
TOUCHING = 1e-3


@dataclass(frozen=True)
class Shape:
    """A box on or above the floor: centre, half of the range of the centre, half of the sizes, possible yaws."""

    name: str
    x: float
    y: float
    range_x: float
    range_y: float
    half_x: float
    half_y: float
    yaws: NDArray[np.float64]
    bottom: float
    top: float


def check_overlaps(
    walls: Iterable[Wall], doors: Iterable[Door], cubes: Iterable[Cube], spawns: Iterable[Spawn]
) -> None:
    """Refuses cubes and spawns that overlap anything. Touching is allowed.

    Raises:
        ArgumentError: names both, and by how much they overlap.
    """
    fixed = [_shape_of_box(f"walls[{i}]", wall) for i, wall in enumerate(walls)]
    fixed += [_shape_of_box(f"doors[{i}]", door) for i, door in enumerate(doors)]
    placed = [_shape_of_cube(f"cubes[{i}]", cube) for i, cube in enumerate(cubes)]
    spawned = [_shape_of_spawn(f"spawns[{i}]", spawn) for i, spawn in enumerate(spawns)]
    for shape, other in _pairs(fixed, placed, spawned):
        overlap = -separation(shape, other)
        if overlap > TOUCHING:
            _refuse_overlap(shape, other, overlap)


def separation(a: Shape, b: Shape) -> float:
    """Metres by which some axis separates two shapes where they come closest; negative where they overlap."""
    if a.top <= b.bottom or b.top <= a.bottom:
        return math.inf
    if math.hypot(a.x - b.x, a.y - b.y) > _radius(a) + _radius(b):  # most pairs are far from each other
        return TOUCHING
    yaws_a, yaws_b = np.meshgrid(a.yaws, b.yaws)
    none, quarter = np.zeros_like(yaws_a), math.pi / 2
    normals = np.stack([none, none + quarter, yaws_a, yaws_a + quarter, yaws_b, yaws_b + quarter])
    across = np.abs((b.x - a.x) * np.cos(normals) + (b.y - a.y) * np.sin(normals))
    shift = _extent(a.range_x + b.range_x, a.range_y + b.range_y, normals)
    extents = _extent(a.half_x, a.half_y, normals - yaws_a) + _extent(b.half_x, b.half_y, normals - yaws_b)
    gaps: NDArray[np.float64] = (across - shift - extents).max(axis=0)
    return float(gaps.min())


def _pairs(fixed: list[Shape], placed: list[Shape], spawned: list[Shape]) -> Iterator[tuple[Shape, Shape]]:
    """Each with what may be in its place first: the message is about the one that is easier to move."""
    for shape in (*placed, *spawned):
        yield from ((shape, other) for other in fixed)
    yield from ((b, a) for a, b in itertools.combinations((*placed, *spawned), 2))


def _extent(half_x: float, half_y: float, angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half of the length of a box's shadow on lines at these angles from its x axis."""
    extent: NDArray[np.float64] = half_x * np.abs(np.cos(angles)) + half_y * np.abs(np.sin(angles))
    return extent


def _radius(shape: Shape) -> float:
    return math.hypot(shape.half_x, shape.half_y) + math.hypot(shape.range_x, shape.range_y)


def _shape_of_box(name: str, box: Wall | Door) -> Shape:
    z = box.z if isinstance(box, Wall) else 0.0
    return Shape(name, box.x, box.y, 0, 0, box.size_x / 2, box.size_y / 2, np.zeros(1), z, z + box.height)


def _shape_of_cube(name: str, cube: Cube) -> Shape:
    half = CUBE_SIZE / 2
    return Shape(name, cube.x, cube.y, 0, 0, half, half, np.array([cube.yaw]), 0, CUBE_SIZE)


def _shape_of_spawn(name: str, spawn: Spawn) -> Shape:
    (low_x, high_x), (low_y, high_y), (low_yaw, high_yaw) = map(ends_of, (spawn.x, spawn.y, spawn.yaw))
    turn = min(high_yaw - low_yaw, math.pi / 2)  # a square looks the same after a quarter turn
    yaws = low_yaw + np.linspace(0, turn, 1 + math.ceil(math.degrees(turn)))
    centre, half_range = ((low_x + high_x) / 2, (low_y + high_y) / 2), ((high_x - low_x) / 2, (high_y - low_y) / 2)
    return Shape(name, *centre, *half_range, AGENT_SIZE / 2, AGENT_SIZE / 2, yaws, 0, AGENT_SIZE)


def _refuse_overlap(shape: Shape, other: Shape, overlap: float) -> None:
    is_drawn = any(one.range_x or one.range_y or len(one.yaws) > 1 for one in (shape, other))
    can, remedy = ("can overlap", "move it, or narrow its ranges") if is_drawn else ("overlaps", "move it")
    raise ArgumentError(
        f"{shape.name} {can} {other.name} by {overlap:.2g} m; "
        "it must start clear of walls, closed doors, cubes and other spawns",
        argument=shape.name,
        hint=remedy,
    )
