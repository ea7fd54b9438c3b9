"""Numbers that variables of the environment have."""

from __future__ import annotations

import os

from doorstep.errors import ArgumentError


def environment_integer(name: str, default: int, low: int = 0, high: int = 2**31 - 1) -> int:
    """The number that a variable has; unset or empty: the default.

    Raises:
        ArgumentError: it is no integer, or out of range.
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(high))
    if not is_number or not low <= int(text) <= high:
        message = f"the environment variable {name} is {text[:60]!r}; it must be an integer, {low} to {high}"
        raise ArgumentError(message, argument=name, hint="set another value, or unset it")
    return int(text)
