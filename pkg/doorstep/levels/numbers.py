"""The numbers that levels are made of, with their limits."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

from doorstep._configs import Number, Range

# A number, or (low, high): drawn at every reset, uniform in [low, high).
NumberOrRange: TypeAlias = "float | tuple[float, float]"

MAX_COORDINATE = 1000.0  # metres; lidar reaches 200, and far from 0 single precision is too coarse for contacts
MIN_SIZE = 0.01  # metres

COORDINATE = Number(-MAX_COORDINATE, MAX_COORDINATE, unit="metres")
SIZE = Number(MIN_SIZE, MAX_COORDINATE, unit="metres")
YAW = Number(-2 * math.pi, 2 * math.pi, unit="radians", hint="math.radians() converts degrees")

Coordinate: TypeAlias = Annotated[float, COORDINATE]
Size: TypeAlias = Annotated[float, SIZE]
Yaw: TypeAlias = Annotated[float, YAW]
DrawnCoordinate: TypeAlias = Annotated[NumberOrRange, Range(COORDINATE)]
DrawnYaw: TypeAlias = Annotated[NumberOrRange, Range(YAW)]


def ends_of(value: NumberOrRange) -> tuple[float, float]:
    """Least and largest of what may be drawn."""
    return value if isinstance(value, tuple) else (value, value)
