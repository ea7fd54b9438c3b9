"""Streams: work done in the order in which it was begun; and events: points in that work."""

from __future__ import annotations

from typing import final

from doorstep._arguments import check_flag, check_integer, check_timeout, refuse
from doorstep._copies import Owner
from doorstep._native import Resource, resources
from doorstep._streams import check_stream, check_stream_on
from doorstep.cuda.device import Device, check_device_index

MAX_ADDRESS = 2**64 - 1


@final
class Stream(Owner):
    """A CUDA stream: its work is done in the order in which it was begun, concurrently with other streams.

    Pass one to `Simulator(stream=...)`, or to any library that accepts `__cuda_stream__`; to PyTorch as
    `torch.cuda.ExternalStream(stream.handle)`.

    Args:
        device: a Device or its number; None: PyTorch's current device if PyTorch uses CUDA, else 0.
    """

    __slots__ = ("__weakref__", "_device_index", "_owner", "_resource")

    def __init__(self, device: Device | int | None = None) -> None:
        self._device_index = check_device_index(device)
        self._resource = resources.create_stream(resources.context(self._device_index))
        self._owner: object = None

    @classmethod
    def from_handle(cls, stream: object, device: Device | int | None = None, *, owner: object = None) -> Stream:
        """A stream that other code created and destroys.

        Args:
            stream: a CUstream as an integer, a torch.cuda.Stream or any object with `__cuda_stream__()`.
            device: its device, if the object does not tell.
            owner: kept alive as long as this object, like `stream` itself.
        """
        raw = check_stream("stream", stream)
        if device is None and raw.device_index is not None:
            device = raw.device_index
        made = object.__new__(cls)
        made._device_index = check_device_index(device)
        handle = check_stream_on("stream", stream, made._device_index)
        made._resource = resources.borrow_stream(resources.context(made._device_index), handle)
        made._owner = (stream, owner)
        return made

    @property
    def handle(self) -> int:
        """The CUstream."""
        return self._resource.info().raw

    @property
    def device(self) -> Device:
        """The GPU it belongs to."""
        return Device(self._device_index)

    @property
    def done(self) -> bool:
        """True if all work begun on it has ended."""
        return resources.stream_is_done(self._resource)

    def synchronize(self) -> None:
        """Waits until all work begun on it has ended."""
        resources.synchronize_stream(self._resource)

    def wait_event(self, event: Event) -> None:
        """Makes all work begun on the stream from now on wait for the event. Returns at once."""
        if not isinstance(event, Event):
            refuse("event", "a doorstep.cuda.Event", event)
        resources.stream_wait_event(self._resource, event._resource)

    def copy(self, destination: int, source: int, nbytes: int) -> None:
        """Begins a copy between two addresses, of a device or of the host. Returns at once.

        Both must stay valid until the copy has ended.
        """
        checked = {"destination": destination, "source": source, "nbytes": nbytes}
        resources.copy(self._resource, *(check_integer(name, value, 0, MAX_ADDRESS) for name, value in checked.items()))

    def copy_rows(
        self, destination: int, destination_pitch: int, source: int, source_pitch: int, row_bytes: int, num_rows: int
    ) -> None:
        """Begins a copy of rows of bytes, as images have them, between two addresses of devices. Returns at once.

        Args:
            destination: address that the first row is copied to.
            destination_pitch: bytes from the beginning of a row to that of the next one, at least `row_bytes`.
            source: address of the first row.
            source_pitch: as `destination_pitch`, of the source.
            row_bytes: bytes of a row.
            num_rows: number of rows.
        """
        to = resources.PitchedRows(
            check_integer("destination", destination, 0, MAX_ADDRESS),
            check_integer("destination_pitch", destination_pitch, 0, MAX_ADDRESS),
        )
        from_ = resources.PitchedRows(
            check_integer("source", source, 0, MAX_ADDRESS), check_integer("source_pitch", source_pitch, 0, MAX_ADDRESS)
        )
        row_bytes = check_integer("row_bytes", row_bytes, 0, MAX_ADDRESS)
        num_rows = check_integer("num_rows", num_rows, 0, MAX_ADDRESS)
        resources.copy_rows(self._resource, to, from_, row_bytes, num_rows)

    def close(self) -> None:
        """Releases the stream; work begun on it is still done. Buffers made on it stay valid."""
        self._resource.close()
        self._owner = None

    @property
    def closed(self) -> bool:
        """True after `close()`."""
        return self._resource.closed

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self.handle:#x}"
        return f"cuda.Stream({state}, cuda:{self._device_index})"


@final
class Event(Owner):
    """A CUDA event: recorded on a stream, it happens when all work begun there before has ended.

    (A `StepEvent` of `Simulator.step_async()` is something else: the end of an asynchronous step, on any device.)

    Args:
        device: a Device or its number; None: PyTorch's current device if PyTorch uses CUDA, else 0.
        timing: whether `elapsed_seconds` can be called; costs a little time.
    """

    __slots__ = ("__weakref__", "_device_index", "_owner", "_resource", "_timing")

    def __init__(self, device: Device | int | None = None, *, timing: bool = False) -> None:
        self._device_index = check_device_index(device)
        self._timing = check_flag("timing", timing)
        self._resource: Resource = resources.create_event(resources.context(self._device_index), self._timing)
        self._owner: object = None

    @classmethod
    def from_handle(cls, handle: int, device: Device | int | None = None, *, owner: object = None) -> Event:
        """An event that other code created and destroys: a CUevent as an integer. `owner` is kept alive."""
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
        """Sets it to the end of all work that has been begun on the stream."""
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
        """Waits for both events; seconds from this one to `end`, measured by the device."""
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
        """Releases the event. Streams that wait for it still do."""
        self._resource.close()
        self._owner = None

    @property
    def closed(self) -> bool:
        """True after `close()`."""
        return self._resource.closed

    def __repr__(self) -> str:
        return f"cuda.Event({'closed' if self.closed else f'{self.handle:#x}'}, cuda:{self._device_index})"


def stream_on(device: Device | int | None, stream: Stream | object) -> Stream:
    """A stream as given, or if it is None a new one of the device. Without a device, on that of a given Stream."""
    if device is None and isinstance(stream, Stream):
        return stream
    device_index = check_device_index(device)
    return Stream(device_index) if stream is None else as_stream(stream, device_index)


def as_stream(stream: object, device_index: int) -> Stream:
    """A Stream unchanged; a CUstream, or an object that has one, as a Stream that does not own it."""
    if isinstance(stream, Stream):
        check_stream_on("stream", stream, device_index)
        return stream
    return Stream.from_handle(stream, device_index)
