"""`StepEvent`: the end of an asynchronous step."""

from __future__ import annotations

from typing import final

from doorstep._arguments import check_timeout
from doorstep._copies import Owner
from doorstep._native import EventHandle


@final
class StepEvent(Owner, remedy="wait() for it here"):
    """What `Simulator.step_async()` returns.

    >>> import doorstep
    >>> sim = doorstep.Simulator(2)
    >>> event = sim.step_async()
    >>> event.wait()
    True
    >>> event.done
    True
    """

    __slots__ = ("_handle",)

    def __init__(self, handle: EventHandle) -> None:
        self._handle = handle

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the end of the step, at most `timeout` seconds (None: without limit); True if it has ended."""
        return self._handle.wait(check_timeout(timeout))

    @property
    def done(self) -> bool:
        """True if the step has ended."""
        return self._handle.wait(0.0)

    def __repr__(self) -> str:
        return f"StepEvent({'done' if self.done else 'running'})"
