"""What people ask for in the page, on its way from viser's threads to the one that owns the simulator."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any


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
        """Calls what was posted, in order. Whether there was any."""
        self._posted.clear()
        served = False
        while self._calls:
            call, arguments = self._calls.popleft()
            call(*arguments)
            served = True
        return served

    def wait(self, timeout: float | None) -> None:
        """Returns when something has been posted, or after so many seconds."""
        self._posted.wait(timeout)
