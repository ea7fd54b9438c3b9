"""A moment in the work of a stream."""

from __future__ import annotations

from typing import Any, final

from doorstep._arguments import check_flag, check_integer, check_timeout, refuse
from doorstep._native import Resource, resources
from doorstep.cuda.device import Device, check_device_index
from doorstep.cuda.stream import MAX_ADDRESS, Stream, as_stream


@final
class Event:
    """A CUDA event: recorded on a stream, it happens when everything begun there before has ended.

    (`doorstep.StepEvent` is the end of a step, on any device.)

    Args:
        device: a Device or its number; None: PyTorch's current device if PyTorch uses CUDA, else 0.
        timing: whether `elapsed_seconds` may be asked; costs a little.
    """

    __slots__ = ("__weakref__", "_device_index", "_owner", "_resource", "_timing")

    def __init__(self, device: Device | int | None = None, *, timing: bool = False) -> None:
        self._device_index = check_device_index(device)
        self._timing = check_flag("timing", timing)
        self._resource: Resource = resources.create_event(resources.context(self._device_index), self._timing)
        self._owner: object = None

    @classmethod
    def from_handle(cls, handle: int, device: Device | int | None = None, *, owner: object = None) -> Event:
        """An event that somebody else made and ends: a CUevent as an integer. `owner` is kept alive."""
        made = object.__new__(cls)
        made._device_index = check_device_index(device)
        made._timing = True  # unknown: the driver says if it has none
        raw = check_integer("handle", handle, 1, MAX_ADDRESS)
        made._resource = resources.borrow_event(resources.context(made._device_index), raw)
        made._owner = owner
        return made

    @property
    def handle(self) -> int:
        """The CUevent."""
        return self._resource.info().raw

    def record(self, stream: Stream | object) -> None:
        """Makes it the end of what has been begun on the stream up to now."""
        resources.record_event(self._resource, as_stream(stream, self._device_index)._resource)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for it, at most `timeout` seconds (None: without limit); True if it has happened.

        An event that was never recorded counts as happened.
        """
        return resources.wait_for_event(self._resource, check_timeout(timeout))

    @property
    def done(self) -> bool:
        """True if it has happened."""
        return resources.wait_for_event(self._resource, 0.0)

    def elapsed_seconds(self, end: Event) -> float:
        """Waits for both events; the time from this one to `end`, as the device measures it."""
        for name, event in (("timing", self), ("end", end)):
            if not event._timing:
                refuse(name, "an event made with timing=True", event)
        milliseconds = None
        while milliseconds is None:
            self.wait()
            end.wait()
            milliseconds = resources.milliseconds_between(self._resource, end._resource)
        return milliseconds / 1000

    def close(self) -> None:
        """Gives the event back. Streams that wait for it still do."""
        self._resource.close()
        self._owner = None

    @property
    def closed(self) -> bool:
        """True after `close()`."""
        return self._resource.closed

    def __repr__(self) -> str:
        return f"cuda.Event({'closed' if self.closed else f'{self.handle:#x}'}, cuda:{self._device_index})"

    def __reduce__(self) -> Any:
        raise TypeError("a cuda.Event belongs to this process and cannot be pickled")
