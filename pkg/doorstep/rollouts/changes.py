"""Waiting for what other threads change."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Callable
from typing import final

SLICE_SECONDS = 0.05  # of a wait, after which it is seen what other threads have done


@final
class TimeLimit:
    """A timeout from now on, in seconds; None: without limit."""

    def __init__(self, timeout: float | None) -> None:
        self._end = None if timeout is None else time.monotonic() + timeout

    def left(self, most: float = threading.TIMEOUT_MAX) -> float:
        """Seconds, at most so many; 0 at the end."""
        return most if self._end is None else min(most, max(self._end - time.monotonic(), 0.0))


@final
class Changes:
    """Wakes threads that wait. Ctrl-C may end each call anywhere: no lock stays locked, as that of a
    `threading.Condition` does if KeyboardInterrupt is raised within its `__enter__()`."""

    def __init__(self) -> None:
        self.count = 0
        self._gates: collections.deque[threading.Lock] = collections.deque()

    def tell(self) -> None:
        """Something has changed."""
        self.count += 1
        with contextlib.suppress(IndexError):  # another thread has opened the last one
            while True:
                gate = self._gates[0]  # it is removed when it is open: Ctrl-C may come between
                with contextlib.suppress(RuntimeError):  # it is open
                    gate.release()
                with contextlib.suppress(ValueError):  # it was removed
                    self._gates.remove(gate)

    def wait(self, before: int, timeout: float) -> None:
        """Waits until `count` is not `before`, at most some seconds, and sometimes less; -1: without limit."""
        gate = threading.Lock()
        gate.acquire()
        self._gates.append(gate)
        if self.count == before:
            gate.acquire(timeout=timeout)
        with contextlib.suppress(ValueError):  # it was opened
            self._gates.remove(gate)

    def wait_until(
        self,
        is_done: Callable[[], bool],
        limit: TimeLimit,
        most: float = SLICE_SECONDS,
        wait: Callable[[int, float], None] | None = None,
    ) -> bool:
        """Waits until something is done; whether that was in time.

        Args:
            is_done: asked after each wait.
            most: seconds of a wait.
            wait: as `wait()`, which is used without it.
        """
        while True:
            before = self.count
            if is_done():
                return True
            left = limit.left(most)
            if left == 0:
                return False
            (wait or self.wait)(before, left)
