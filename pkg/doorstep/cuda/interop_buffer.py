"""Memory that CUDA and another API of the process share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

from numpy.typing import DTypeLike, NDArray

from doorstep._arguments import check_flag, check_integer
from doorstep._copies import Owner
from doorstep._native import STREAM_OWN, Resource, resources
from doorstep._native.foreign_tensor import CPU, ForeignTensor
from doorstep._native.resources import PitchedRows
from doorstep._streams import CurrentStream
from doorstep._tensors.checks import ReadRules, check_copyable, refuse_tensor
from doorstep._tensors.reader import read_memory
from doorstep.cuda._row_copies import TensorRows, row_copies
from doorstep.cuda.buffer import MAX_BYTES, Buffer
from doorstep.cuda.device import Device
from doorstep.cuda.stream import Stream, as_stream, stream_on
from doorstep.errors import ArgumentError

MAX_DESCRIPTOR = 2**31 - 1


@final
class InteropBuffer(Owner, remedy="copy its values: copy_to_host()"):
    """Bytes of a GPU's memory that Vulkan, or another API of the process, also reads and writes.

    Made here, its memory is exported (`export`) and imported there; or memory that was exported there is imported here
    (`InteropBuffer.import_fd`). Tensors are copied in and out; libraries also use the memory in place, through
    `__cuda_array_interface__` (`torch.as_tensor(buffer, device="cuda")`), as one row of bytes.

    Both APIs must use the same GPU (`Device.uuid`), and semaphores order their work (`Semaphore`).

    Args:
        nbytes: its size, at least 1.
        device: a Device or its number; None: PyTorch's current device if PyTorch uses CUDA, else 0.
        stream: the stream it is used on; its work ends before the memory is released. None: a new stream.

    Raises:
        DeviceError: the GPU cannot export memory.
        DriverFunctionError: the driver cannot.
        OutOfMemoryError: the GPU has not enough free memory.
    """

    __slots__ = ("__weakref__", "_buffer", "_current_stream", "_resource")

    def __init__(self, nbytes: int, device: Device | int | None = None, *, stream: Stream | object = None) -> None:
        nbytes = check_integer("nbytes", nbytes, 1, MAX_BYTES)
        used_on = stream_on(device, stream)
        self._use(resources.create_exported_memory(used_on._resource, nbytes), nbytes, used_on)

    @classmethod
    def import_fd(
        cls,
        fd: int,
        nbytes: int,
        device: Device | int | None = None,
        *,
        dedicated: bool = False,
        stream: Stream | object = None,
    ) -> InteropBuffer:
        """Memory that the other API has exported.

        Args:
            fd: its file descriptor, of the handle type OPAQUE_FD_BIT. This takes ownership: the descriptor is closed
                when this returns. If this raises, the descriptor stays open and belongs to the caller.
            nbytes: the size it was allocated with (Vulkan's `allocationSize`).
            device: a Device or its number; None: PyTorch's current device if PyTorch uses CUDA, else 0.
            dedicated: True for an allocation made for a single buffer or image (`VkMemoryDedicatedAllocateInfo`).
            stream: as for a new InteropBuffer.
        """
        fd = check_integer("fd", fd, 0, MAX_DESCRIPTOR)
        nbytes = check_integer("nbytes", nbytes, 1, MAX_BYTES)
        dedicated = check_flag("dedicated", dedicated)
        used_on = stream_on(device, stream)
        made = object.__new__(cls)
        made._use(resources.import_memory(used_on._resource, fd, nbytes, dedicated), nbytes, used_on)
        return made

    def _use(self, resource: Resource, nbytes: int, stream: Stream) -> None:
        self._resource = resource
        self._buffer = Buffer._holding(resource, nbytes, stream)
        self._current_stream = CurrentStream(stream._device_index)

    @property
    def nbytes(self) -> int:
        """Its size."""
        return self._buffer.nbytes

    @property
    def allocated_bytes(self) -> int:
        """Its size rounded up to the GPU's unit of allocation: what the other API must import (`allocationSize`)."""
        return self._buffer._open().info().bytes

    @property
    def pointer(self) -> int:
        """Its address on the device."""
        return self._buffer.pointer

    @property
    def device(self) -> Device:
        """The GPU it belongs to."""
        return self._buffer.device

    @property
    def stream(self) -> Stream:
        """The stream it is used on."""
        return self._buffer.stream

    def export(self) -> int:
        """A new file descriptor of memory that was allocated here.

        The caller owns it: importing it into the other API takes ownership; otherwise close it with `os.close`. The
        memory lives as long as this object, the descriptor, or an import of it.
        """
        self._buffer._open()
        return resources.export_memory(self._resource)

    def copy_in(self, tensor: Any, stream: Stream | object = None, *, offset: int = 0) -> None:
        """Begins a copy of a tensor's elements, side by side in C order, into the buffer.

        The copy is ordered after the work on the tensor's own stream, if its library tells which one that is, and later
        work on that stream is ordered after the copy. Returns at once; for a tensor of the host, when the copy is done.

        Args:
            tensor: of PyTorch, numpy or another library, on this GPU or the host, also one with gaps between its
                elements. Its gradient is ignored.
            stream: the stream of the copy; None: PyTorch's current one if PyTorch uses CUDA, else the buffer's.
            offset: the byte of the buffer that the first element is copied to.

        Raises:
            ArgumentError: it is no tensor, is on another device, or does not fit; or it is of the host and the stream
                is being recorded.
        """
        self._copy(tensor, stream, offset, out=False)

    def copy_out(self, tensor: Any, stream: Stream | object = None, *, offset: int = 0) -> None:
        """Begins a copy from the buffer into a tensor's elements, with the arguments and in the order of `copy_in`.

        Elements are read side by side from the byte `offset` on. Bytes between the tensor's elements keep their value.

        Raises:
            ArgumentError: it is no tensor, is read-only, is on another device, its elements overlap, or it needs more
                bytes than there are; or it is of the host and the stream is being recorded.
        """
        self._copy(tensor, stream, offset, out=True)

    def _copy(self, tensor: Any, stream: Stream | object, offset: int, *, out: bool) -> None:
        on = self._copying_stream(stream)
        first = self.pointer + check_integer("offset", offset, 0, self.nbytes)
        found = read_memory(tensor, ReadRules("tensor", written=out, stream=on.handle))
        check_copyable("tensor", found, written=out)
        self._check_fits(found, self.nbytes - offset)
        _check_waitable(found, on)
        with self._ordered(found, on):
            for part in row_copies(found):
                packed = PitchedRows(first + part.offset, part.row_bytes)
                source, destination = (packed, part.rows) if out else (part.rows, packed)
                _copy_rows(on, destination, source, part, on_host=found.device_type == CPU)

    def _check_fits(self, tensor: ForeignTensor, nbytes: int) -> None:
        device = f"cuda:{self.stream._device_index}"
        if tensor.device not in ("cpu", device):
            refuse_tensor("tensor", f"on {tensor.device}", f"on {device} or on the CPU")
        if tensor.nbytes > nbytes:
            refuse_tensor("tensor", f"{tensor.nbytes} bytes long", f"at most {nbytes} bytes long")

    def _copying_stream(self, stream: object) -> Stream:
        if stream is None:
            current = self._current_stream()
            return self.stream if current == STREAM_OWN else as_stream(current, self.stream._device_index)
        return as_stream(stream, self.stream._device_index)

    @contextmanager
    def _ordered(self, tensor: ForeignTensor, on: Stream) -> Iterator[None]:
        """Around a copy: orders it after the work of the tensor's library, and later work of both after the copy."""
        owner = None
        if tensor.stream is not None:
            owner = as_stream(tensor.stream, tensor.device_index)
            resources.stream_follow(on._resource, owner._resource)
        try:
            yield
        finally:
            if tensor.device_type == CPU:
                on.synchronize()
            for later in (owner, self.stream):
                if later is not None:
                    resources.stream_follow(later._resource, on._resource)

    def copy_to_host(self, dtype: DTypeLike = "uint8") -> NDArray[Any]:
        """All its bytes as a new array of one dimension, after the work begun on its stream."""
        return self._buffer.copy_to_host(dtype)

    def close(self) -> None:
        """Releases the memory; if arrays may have been made of it, when this object and all of them are released.

        The other API keeps what it has imported or exported. This waits for the work of its stream; if that takes more
        than some seconds, because it waits for a semaphore that is never signalled, the memory is never released.
        """
        self._buffer.close()

    @property
    def closed(self) -> bool:
        """True after `close()`."""
        return self._buffer.closed

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._buffer.__cuda_array_interface__

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        raise TypeError(f"{self!r} is memory of a GPU, which numpy cannot read; use copy_to_host()")

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self.nbytes} bytes"
        return f"cuda.InteropBuffer({state}, cuda:{self.stream._device_index})"


def _check_waitable(tensor: ForeignTensor, on: Stream) -> None:
    """Copies of the host's memory are waited for, which would end a recording."""
    if tensor.device_type == CPU and resources.stream_is_capturing(on._resource):
        raise ArgumentError(
            "the stream is being captured; the copy of a host tensor would have to be waited for",
            argument="stream",
            hint="capture copies of tensors on the GPU, or copy before the capture begins",
        )


def _copy_rows(on: Stream, destination: PitchedRows, source: PitchedRows, part: TensorRows, *, on_host: bool) -> None:
    if part.num_rows > 1 and not on_host:
        resources.copy_rows(on._resource, destination, source, part.row_bytes, part.num_rows)
        return
    for row in range(part.num_rows):
        places = destination.pointer + row * destination.pitch, source.pointer + row * source.pitch
        resources.copy(on._resource, *places, part.row_bytes)
