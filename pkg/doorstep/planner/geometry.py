"""Rectangles on the floor: the footprints of walls, cubes and agents, and what they sweep when they move.

Nearly everything here is plain numbers: for the few rectangles of a world, numpy's calls cost more than the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Point = tuple[float, float]  # x, y in metres


class Rectangle(NamedTuple):
    """A rectangle of any orientation. `(ux, uy)` is the unit vector of its length, metres otherwise."""

    x: float
    y: float
    ux: float
    uy: float
    half_length: float
    half_width: float


class Bounds(NamedTuple):
    """A rectangle along the axes, metres."""

    low_x: float
    low_y: float
    high_x: float
    high_y: float

    def grown(self, by: float) -> Bounds:
        """The bounds with every side moved out."""
        return Bounds(self.low_x - by, self.low_y - by, self.high_x + by, self.high_y + by)

    def contains(self, x: float, y: float) -> bool:
        """Whether a point is inside."""
        return self.low_x < x < self.high_x and self.low_y < y < self.high_y

    def nearest(self, x: float, y: float) -> Point:
        """The point inside that is nearest to another point."""
        return min(max(x, self.low_x), self.high_x), min(max(y, self.low_y), self.high_y)


def rectangle_of(bounds: Bounds) -> Rectangle:
    """Bounds as a rectangle whose length is along x."""
    x, y = (bounds.low_x + bounds.high_x) / 2, (bounds.low_y + bounds.high_y) / 2
    return Rectangle(x, y, 1.0, 0.0, (bounds.high_x - bounds.low_x) / 2, (bounds.high_y - bounds.low_y) / 2)


def facing(yaw: float) -> Point:
    """The unit vector that a body with this yaw looks along; yaw 0 is +y, positive to the left."""
    return -math.sin(yaw), math.cos(yaw)


def yaw_towards(x: float, y: float) -> float:
    """The yaw of a body that looks along a vector."""
    return math.atan2(-x, y)


def wrapped(angle: float) -> float:
    """The same angle in [-pi, pi)."""
    return (angle + math.pi) % (2 * math.pi) - math.pi


def extent(yaw: float, half_side: float) -> float:
    """Half of what a square of this yaw takes up along an axis, and along the other."""
    return half_side * (abs(math.cos(yaw)) + abs(math.sin(yaw)))


def swept(start: Point, end: Point, direction: Point, half_length: float, half_width: float) -> Rectangle:
    """What a rectangle sweeps that moves along its length, from one place to another."""
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    return Rectangle(x, y, *direction, math.dist(start, end) / 2 + half_length, half_width)


def overlap(a: Rectangle, b: Rectangle) -> bool:
    """Whether two rectangles overlap: no side of either has the other one beyond it (separating axes)."""
    dx, dy = b.x - a.x, b.y - a.y
    cosine = abs(a.ux * b.ux + a.uy * b.uy)
    sine = abs(a.ux * b.uy - a.uy * b.ux)
    return (
        abs(dx * a.ux + dy * a.uy) < a.half_length + b.half_length * cosine + b.half_width * sine
        and abs(dy * a.ux - dx * a.uy) < a.half_width + b.half_length * sine + b.half_width * cosine
        and abs(dx * b.ux + dy * b.uy) < b.half_length + a.half_length * cosine + a.half_width * sine
        and abs(dy * b.ux - dx * b.uy) < b.half_width + a.half_length * sine + a.half_width * cosine
    )


def overlaps_any(rectangles: Sequence[Rectangle], others: Sequence[Rectangle]) -> NDArray[np.bool_]:
    """bool [M]: which of M rectangles overlap at least one of the others; all pairs at once."""
    if not rectangles or not others:
        return np.zeros(len(rectangles), np.bool_)
    ax, ay, aux, auy, al, aw = np.array(rectangles).T[:, :, None]
    bx, by, bux, buy, bl, bw = np.array(others).T[:, None, :]
    dx, dy = bx - ax, by - ay
    cosine, sine = np.abs(aux * bux + auy * buy), np.abs(aux * buy - auy * bux)
    pairs = np.abs(dx * aux + dy * auy) < al + bl * cosine + bw * sine
    pairs &= np.abs(dy * aux - dx * auy) < aw + bl * sine + bw * cosine
    pairs &= np.abs(dx * bux + dy * buy) < bl + al * cosine + aw * sine
    pairs &= np.abs(dy * bux - dx * buy) < bw + al * sine + aw * cosine
    found: NDArray[np.bool_] = pairs.any(axis=1)
    return found


def crosses(start: Point, end: Point, box: Bounds) -> bool:
    """Whether a segment has points inside of a box (slabs)."""
    enter, leave = 0.0, 1.0
    for begin, finish, low, high in (
        (start[0], end[0], box.low_x, box.high_x),
        (start[1], end[1], box.low_y, box.high_y),
    ):
        along = finish - begin
        if abs(along) < 1e-9:
            if not low < begin < high:
                return False
            continue
        near, far = (low - begin) / along, (high - begin) / along
        enter, leave = max(enter, min(near, far)), min(leave, max(near, far))
    return enter < leave


_GIVE = 0.3  # metres: a body that stands closer to a thing than it should may leave


def sees(start: Point, end: Point, boxes: Iterable[Bounds]) -> bool:
    """Whether a segment is free of boxes. A start inside of a box may be left, but not towards its middle."""
    return not any(crosses(start, end, box) and not _leaves(start, end, box) for box in boxes)


def _leaves(start: Point, end: Point, box: Bounds) -> bool:
    if not box.contains(*start):
        return False
    inner = box.grown(-_GIVE)
    if not inner.contains(*start):
        return not crosses(start, end, inner)
    to_middle = (box.low_x + box.high_x) / 2 - start[0], (box.low_y + box.high_y) / 2 - start[1]
    return (end[0] - start[0]) * to_middle[0] + (end[1] - start[1]) * to_middle[1] < 0
