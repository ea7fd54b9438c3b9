"""Waiting that Ctrl-C can end."""

from __future__ import annotations

from collections.abc import Callable

from doorstep._native.status import check
from doorstep.errors import Status

# A wait without limit is cut into slices, because signals (Ctrl-C) are handled only between two calls.
SLICE_NANOSECONDS = 50_000_000


def wait(function: Callable[[int, int], int], handle: int, timeout: float | None) -> bool:
    """Calls a waiting function of the C API until it is done (True) or the seconds are over (False)."""
    remaining = None if timeout is None else int(timeout * 1e9)
    while True:
        nanoseconds = SLICE_NANOSECONDS if remaining is None else min(remaining, SLICE_NANOSECONDS)
        status = function(handle, nanoseconds)
        if status != Status.PENDING:
            check(status)
            return True
        if remaining is not None:
            remaining -= nanoseconds
            if remaining <= 0:
                return False
