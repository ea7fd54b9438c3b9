"""Rows of the table, and how their figures are taken."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from itertools import repeat
from typing import NamedTuple

# Nanoseconds of CPU time that one call of a side takes, measured once.
Side = Callable[[], float]


class Row(NamedTuple):
    """A line of the table; "asked" says what the ratio or the value has to be."""

    name: str
    value: str
    peer: str
    ratio: float
    asked: str
    fulfilled: bool


def at_most(name: str, value: float, peer: str, peer_value: float, limit: float) -> Row:
    """doorstep may take at most `limit` times the nanoseconds of the peer."""
    ratio = value / peer_value
    return Row(name, f"{value:.0f} ns", f"{peer}: {peer_value:.0f} ns", ratio, f"at most {limit:g}", ratio <= limit)


def faster_than(name: str, value: float, peer: str, peer_value: float, limit: float) -> Row:
    """The peer takes at least `limit` times the nanoseconds of doorstep."""
    ratio = peer_value / value
    return Row(name, f"{value:.0f} ns", f"{peer}: {peer_value:.0f} ns", ratio, f"at least {limit:g}", ratio >= limit)


def nanoseconds_at_most(name: str, value: float, peer: str, peer_value: float, limit: float) -> Row:
    """doorstep may take at most `limit` nanoseconds; the peer is there for the machine's sake."""
    ratio = value / peer_value
    return Row(name, f"{value:.0f} ns", f"{peer}: {peer_value:.0f} ns", ratio, f"at most {limit:g} ns", value <= limit)


def each_round(rounds: int, sides: Mapping[str, Side]) -> dict[str, list[float]]:
    """What each side took, round by round."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            taken[name].append(side())
    return taken


def medians(rounds: int, sides: Mapping[str, Side]) -> dict[str, float]:
    """The median of each side."""
    return {name: statistics.median(column) for name, column in each_round(rounds, sides).items()}


def per_call(function: Callable[[], object], calls: int) -> Side:
    """A function called in a loop of Python's, which is included: it takes a tenth of the fastest call."""

    def side() -> float:
        begin = time.process_time_ns()
        for _ in repeat(None, calls):
            function()
        return (time.process_time_ns() - begin) / calls

    return side
