"""Checks of the numbers that levels are made of. What is checked becomes Python's own int, float or tuple."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from doorstep._arguments import check_integer, is_number, refuse

# A number, or (low, high): drawn at every reset, uniform in [low, high).
NumberOrRange: TypeAlias = "float | tuple[float, float]"

MAX_COORDINATE = 1000.0  # metres; lidar reaches 200, and far from 0 single precision is too coarse for contacts
MIN_SIZE = 0.01  # metres
MAX_YAW = 2 * math.pi  # radians


def check_number(name: str, value: object, low: float, high: float, unit: str) -> float:
    if not is_number(value) or not low <= value <= high:
        refuse(name, f"a number of {unit}, {low:g} to {high:g}", value)
    return float(value)


def check_coordinate(name: str, value: object) -> float:
    return check_number(name, value, -MAX_COORDINATE, MAX_COORDINATE, "metres")


def check_size(name: str, value: object) -> float:
    return check_number(name, value, MIN_SIZE, MAX_COORDINATE, "metres")


def check_range(name: str, value: object, low: float, high: float, unit: str, hint: str = "") -> NumberOrRange:
    """A number or a pair (low, high), which lists are too."""
    ends: list[Any] = list(value) if isinstance(value, (tuple, list)) else [value]
    if not 1 <= len(ends) <= 2 or not all(is_number(end) and low <= end <= high for end in ends):
        refuse(name, f"a number of {unit} or a range (low, high) of them, {low:g} to {high:g}", value, hint)
    first, last = float(ends[0]), float(ends[-1])
    if first > last:
        refuse(name, "a range (low, high) with low <= high", value, "exchange the two")
    return (first, last) if len(ends) == 2 else first


def check_yaw(name: str, value: object) -> NumberOrRange:
    return check_range(name, value, -MAX_YAW, MAX_YAW, "radians", "math.radians() converts degrees")


def check_integer_range(name: str, value: object, low: int, high: int) -> int | tuple[int, int]:
    """An integer or a pair (low, high) of integers, both inclusive."""
    if not isinstance(value, (tuple, list)):
        return check_integer(name, value, low, high)
    if len(value) != 2:
        refuse(name, "an integer or a range (low, high)", value)
    first, last = (check_integer(f"{name}[{i}]", end, low, high) for i, end in enumerate(value))
    if first > last:
        refuse(name, "a range (low, high) with low <= high", value, "exchange the two")
    return first, last


def ends_of(value: NumberOrRange) -> tuple[float, float]:
    """Least and largest of what may be drawn."""
    return value if isinstance(value, tuple) else (value, value)
