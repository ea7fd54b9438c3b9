"""What a page sends for a control, checked: a program can send anything."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from doorstep.errors import ArgumentError

T = TypeVar("T")


def one_of(name: str, choices: Mapping[str, T]) -> Callable[[object], T]:
    """Turns a choice into what it stands for; an ArgumentError if there is no such choice."""

    def chosen(value: object) -> T:
        if not isinstance(value, str) or value not in choices:
            message = f"{name} is {value!r}; it must be one of {', '.join(choices)}."
            raise ArgumentError(message, argument=name)
        return choices[value]

    return chosen


def number(name: str, least: float, most: float) -> Callable[[object], float]:
    """Turns a number into the nearest one that is allowed; an ArgumentError if it is none."""

    def nearest(value: object) -> float:
        if not isinstance(value, int | float) or math.isnan(value):
            message = f"{name} is {value!r}; it must be a number from {least:g} to {most:g}."
            raise ArgumentError(message, argument=name)
        return min(max(value, least), most)

    return nearest


def whole(name: str, least: int, most: int) -> Callable[[object], int]:
    """As `number`, without what is behind the point."""
    nearest = number(name, least, most)
    return lambda value: int(nearest(value))
