"""Work in the order in which it was begun."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from doorstep._arguments import check_integer, refuse
from doorstep._native import Resource, resources
from doorstep._streams import check_stream, check_stream_on
from doorstep.cuda.device import Device, check_device_index

if TYPE_CHECKING:
    from doorstep.cuda.event import Event

MAX_ADDRESS = 2**64 - 1


@final
class Stream:
    """A CUDA stream: what is begun on it is done in that order, beside other streams.

    Give one to `Simulator(stream=...)`, or to any library that knows `__cuda_stream__`; to PyTorch as
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
        """A stream that somebody else made and ends.

        Args:
            stream: a CUstream as an integer, a torch.cuda.Stream or any object with `__cuda_stream__()`.
            device: its device, where the object does not tell.
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
        """True if everything begun on it has ended."""
        return resources.stream_is_done(self._resource)

    def synchronize(self) -> None:
        """Waits until everything begun on it has ended."""
        resources.synchronize_stream(self._resource)

    def wait_event(self, event: Event) -> None:
        """What is begun on it from now on waits for the event. Returns at once."""
        resource = getattr(event, "_resource", None)
        if not isinstance(resource, Resource) or isinstance(event, Stream):
            refuse("event", "a doorstep.cuda.Event", event)
        resources.stream_wait_event(self._resource, resource)

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
            destination: where the first row goes.
            destination_pitch: bytes from the beginning of a row to that of the next one, at least `row_bytes`.
            source: where the first row is.
            source_pitch: likewise.
            row_bytes: bytes of a row.
            num_rows: number of rows.
        """
        to = resources.Rows(
            check_integer("destination", destination, 0, MAX_ADDRESS),
            check_integer("destination_pitch", destination_pitch, 0, MAX_ADDRESS),
        )
        from_ = resources.Rows(
            check_integer("source", source, 0, MAX_ADDRESS), check_integer("source_pitch", source_pitch, 0, MAX_ADDRESS)
        )
        row_bytes = check_integer("row_bytes", row_bytes, 0, MAX_ADDRESS)
        num_rows = check_integer("num_rows", num_rows, 0, MAX_ADDRESS)
        resources.copy_rows(self._resource, to, from_, row_bytes, num_rows)

    def close(self) -> None:
        """Gives the stream back; what was begun on it ends in its own time. Buffers made on it stay valid."""
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

    def __reduce__(self) -> Any:
        raise TypeError("a cuda.Stream belongs to this process and cannot be pickled")


def as_stream(stream: object, device_index: int) -> Stream:
    """A Stream as it is; anything else that stands for one, borrowed."""
    if isinstance(stream, Stream):
        check_stream_on("stream", stream, device_index)
        return stream
    return Stream.from_handle(stream, device_index)
