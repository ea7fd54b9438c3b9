"""What people ask for in the page, on its way from viser's threads to the one that owns the simulator."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any


def is_collision(error: Exception) -> bool:
    """Whether what was sent woke viser's thread just as it fell asleep, which asyncio does not allow.

    What was sent arrives all the same; the rest has to be sent again.
    """
    return type(error) is RuntimeError and str(error) == "deque mutated during iteration"


class Requests:
    """Calls that wait for their thread."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._posted = threading.Event()

    def post(self, call: Callable[..., object], *arguments: Any) -> None:
        """From any thread: have this called."""
        self._calls.append((call, arguments))
        self._posted.set()

    def serve(self) -> bool:
        """Calls what was posted, in order. Whether there was any. A call that met a collision is made again."""
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
        """Returns when something has been posted, or after so many seconds."""
        self._posted.wait(timeout)
