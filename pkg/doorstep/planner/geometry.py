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

    @property
    def middle(self) -> Point:
        """Its centre, metres."""
        return (self.low_x + self.high_x) / 2, (self.low_y + self.high_y) / 2

    def nearest(self, x: float, y: float) -> Point:
        """The point inside that is nearest to another point."""
        return min(max(x, self.low_x), self.high_x), min(max(y, self.low_y), self.high_y)


def rectangle_of(bounds: Bounds) -> Rectangle:
    """Bounds as a rectangle whose length is along x."""
    return Rectangle(*bounds.middle, 1.0, 0.0, (bounds.high_x - bounds.low_x) / 2, (bounds.high_y - bounds.low_y) / 2)


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


# ---- What keeps the centres of agents away ----


class Obstacle(NamedTuple):
    """Bounds, with corners that a turned square around the middle cuts off; of a wall, nothing is cut off."""

    bounds: Bounds
    ux: float = 1.0
    uy: float = 0.0
    half_side: float = math.inf

    @property
    def middle(self) -> Point:
        """Its centre, metres."""
        return self.bounds.middle

    def grown(self, by: float) -> Obstacle:
        """The obstacle with every side moved out."""
        return self._replace(bounds=self.bounds.grown(by), half_side=self.half_side + by)

    def contains(self, point: Point) -> bool:
        """Whether a point is inside."""
        u, v = self.turned(point)
        return self.bounds.contains(*point) and max(abs(u), abs(v)) < self.half_side

    def turned(self, point: Point) -> Point:
        """A point in the frame of the turned square."""
        (x, y), (ux, uy) = self.middle, (self.ux, self.uy)
        return (point[0] - x) * ux + (point[1] - y) * uy, (point[1] - y) * ux - (point[0] - x) * uy


def obstacle_around(rectangle: Rectangle, clearance: float) -> Obstacle:
    """Where the centres of squares along the axes may not be, of half side `clearance`, because of a square."""
    yaw = yaw_towards(rectangle.ux, rectangle.uy)
    half = extent(yaw, rectangle.half_length) + clearance
    bounds = Bounds(rectangle.x - half, rectangle.y - half, rectangle.x + half, rectangle.y + half)
    return Obstacle(bounds, rectangle.ux, rectangle.uy, rectangle.half_length + extent(yaw, clearance))


def crosses(start: Point, end: Point, obstacle: Obstacle) -> bool:
    """Whether a segment has points inside of an obstacle: the part of it between all pairs of opposite sides."""
    box = obstacle.bounds
    part = _between(start[0], end[0], box.low_x, box.high_x, _WHOLE)
    part = part and _between(start[1], end[1], box.low_y, box.high_y, part)
    if part and obstacle.half_side < math.inf:
        (u, v), (to_u, to_v), half = obstacle.turned(start), obstacle.turned(end), obstacle.half_side
        part = _between(u, to_u, -half, half, part)
        part = part and _between(v, to_v, -half, half, part)
    return part is not None


_WHOLE = (0.0, 1.0)


def _between(
    begin: float, end: float, low: float, high: float, part: tuple[float, float]
) -> tuple[float, float] | None:
    """What is left of a part of a segment between two sides; None if nothing is."""
    along = end - begin
    if abs(along) < 1e-9:
        return part if low < begin < high else None
    near, far = (low - begin) / along, (high - begin) / along
    enter, leave = max(part[0], min(near, far)), min(part[1], max(near, far))
    return (enter, leave) if enter < leave else None


_GIVE = 0.3  # metres: a body that stands closer to a thing than it should may leave


def sees(start: Point, end: Point, obstacles: Iterable[Obstacle]) -> bool:
    """Whether a segment is free. A start inside of an obstacle may be left, but not towards its middle."""
    return not any(crosses(start, end, obstacle) and not _leaves(start, end, obstacle) for obstacle in obstacles)


def _leaves(start: Point, end: Point, obstacle: Obstacle) -> bool:
    if not obstacle.contains(start):
        return False
    inner = obstacle.grown(-_GIVE)
    if not inner.contains(start):
        return not crosses(start, end, inner)
    x, y = obstacle.middle
    return (end[0] - start[0]) * (x - start[0]) + (end[1] - start[1]) * (y - start[1]) < 0
