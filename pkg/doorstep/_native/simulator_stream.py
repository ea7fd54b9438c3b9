"""The CUDA stream that a simulator works on, kept equal to the caller's current stream unless one was passed."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

from doorstep._native._generated import SimulatorInfo
from doorstep._native.calls import check, sized
from doorstep._native.library import load
from doorstep.errors import Status


@final
class SimulatorStream:
    """A context manager: within it, calls on the simulator use the stream that is current for this thread.

    Args:
        simulator: its handle in the C API.
        current: returns this thread's current stream, or STREAM_OWN without one; None: the stream is fixed.
        first: the stream it works on to begin with.
    """

    __slots__ = ("_current", "_latest", "_lock", "_simulator")

    def __init__(self, simulator: int, current: Callable[[], int] | None, first: int) -> None:
        self._simulator = simulator
        self._current = current
        self._latest = first
        # Held during the call, so that no other thread moves the simulator to its own stream in between, nor steps it
        # between the two halves of a write that preserves the bytes between the elements. Reentrant, because a signal
        # handler may make a call in the same thread.
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._current is None:
            return
        try:
            stream = self._current()
            if stream != self._latest:
                self._move(stream)
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @contextmanager
    def moved_to(self, stream: int) -> Iterator[None]:
        """Within it, calls use this CUstream, after all work begun before; later work is ordered after them."""
        with self:
            before = self._latest
            if stream == before:
                yield
                return
            self._move(stream)
            try:
                yield
            finally:
                self._move(before)

    def _move(self, stream: int) -> None:
        status = load().ds_simulator_set_stream(self._simulator, stream)
        if status == Status.CLOSED:  # the memory may outlive the simulator; the call itself raises if it needs it
            self._current = None
            return
        check(status)
        self._latest = stream

    def handle(self) -> int | None:
        """The CUstream that the next call uses; None once the simulator is closed and all its work is done."""
        info = sized(SimulatorInfo)
        with self:
            status = load().ds_simulator_get_info(self._simulator, ctypes.byref(info))
        if status == Status.CLOSED:
            return None
        check(status)
        return info.stream
