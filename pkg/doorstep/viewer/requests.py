"""What people do in the page, on its way from viser's threads to the one that owns the simulator."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import viser

from doorstep.errors import ArgumentError

T = TypeVar("T")


class Commands(Protocol):
    """What can be requested in the page."""

    def toggle_pause(self) -> None: ...
    def step_once(self) -> None: ...
    def reset_world(self) -> None: ...
    def set_rate(self, rate: float) -> None: ...
    def seek(self, position: int) -> None: ...
    def choose_world(self, world: int) -> None: ...
    def choose_agent(self, agent: int) -> None: ...
    def choose_player(self, agent: int | None) -> None: ...
    def follow(self, on: bool) -> None: ...
    def look_from(self, preset: str, client: viser.ClientHandle) -> None: ...
    def zoom(self, cell: int, client: viser.ClientHandle) -> None: ...
    def show_trails(self, on: bool) -> None: ...
    def show_lidar(self, on: bool) -> None: ...
    def show_grabs(self, on: bool) -> None: ...
    def show_picture(self, on: bool) -> None: ...


class Requests:
    """Calls that any thread may post and one thread makes."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._posted = threading.Event()

    def post(self, call: Callable[..., object], *arguments: Any) -> None:
        """Requests a call."""
        self._calls.append((call, arguments))
        self._posted.set()

    def serve(self) -> bool:
        """Makes the calls in the order of their requests; a call that met a collision is repeated.

        Returns:
            Whether there were any.

        Raises:
            Exception: what a call raised. The calls after it are still waiting.
        """
        self._posted.clear()
        served = False
        while self._calls:
            call, arguments = self._calls.popleft()
            try:
                call(*arguments)
            except RuntimeError as error:
                if not is_collision(error):
                    raise
                self._calls.appendleft((call, arguments))
            served = True
        return served

    def wait(self, timeout: float | None) -> None:
        """Returns as soon as a call is requested, or after `timeout` seconds, or the longest time that threads wait."""
        self._posted.wait(None if timeout is None else min(timeout, threading.TIMEOUT_MAX))


def is_collision(error: Exception) -> bool:
    """Whether sending woke viser's thread just as it began to wait, which asyncio does not support.

    The message that was being sent arrives all the same; those after it have to be sent again.
    """
    return type(error) is RuntimeError and str(error) == "deque mutated during iteration"


# ---- Checks of what a page sends as the value of a control: any program can connect and send anything ----


def one_of(name: str, choices: Mapping[str, T]) -> Callable[[object], T]:
    """A function from the name of a choice to the choice; it raises ArgumentError for other values."""

    def chosen(value: object) -> T:
        if not isinstance(value, str) or value not in choices:
            message = f"{name} is {value!r}; it must be one of {', '.join(choices)}."
            raise ArgumentError(message, argument=name)
        return choices[value]

    return chosen


def number(name: str, least: float, most: float) -> Callable[[object], float]:
    """A function from a number to the nearest allowed one; it raises ArgumentError for other values."""

    def nearest(value: object) -> float:
        if not isinstance(value, int | float) or math.isnan(value):
            message = f"{name} is {value!r}; it must be a number from {least:g} to {most:g}."
            raise ArgumentError(message, argument=name)
        return min(max(value, least), most)

    return nearest


def whole_number(name: str, least: int, most: int) -> Callable[[object], int]:
    """As `number`, rounded towards zero."""
    nearest = number(name, least, most)
    return lambda value: int(nearest(value))
