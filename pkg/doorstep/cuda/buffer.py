"""Memory of CUDA that other libraries read in place."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from doorstep._arguments import check_integer, refuse
from doorstep._copies import Owner
from doorstep._native import Resource, resources
from doorstep._streams import interface_stream
from doorstep.cuda.device import Device
from doorstep.cuda.stream import MAX_ADDRESS, Stream, stream_on
from doorstep.errors import ClosedError

MAX_BYTES = 2**48


@final
class Buffer(Owner, remedy="copy its bytes: copy_to_host()"):
    """Bytes in a device's memory, or page-locked bytes of the host that the device also reads (`Buffer.pinned`).

    Other libraries read device memory through `__cuda_array_interface__` (`torch.as_tensor(buffer, device="cuda")`) and
    pinned memory through `__array_interface__` (`numpy.asarray(buffer)`), in place and as one row of bytes. Tensors
    made of a buffer keep it alive.

    Args:
        nbytes: its size, at least 1. The memory comes from the device's pool, without synchronising.
        device: a Device or its number; None: PyTorch's current device if PyTorch uses CUDA, else 0.
        stream: the stream that it is used on and released on; None: a new stream.
    """

    __slots__ = (
        "__weakref__",
        "_closed",
        "_device_index",
        "_nbytes",
        "_owner",
        "_pinned",
        "_resource",
        "_shared",
        "_stream",
    )

    def __init__(self, nbytes: int, device: Device | int | None = None, *, stream: Stream | object = None) -> None:
        self._nbytes = check_integer("nbytes", nbytes, 1, MAX_BYTES)
        self._stream = stream_on(device, stream)
        self._device_index = self._stream._device_index
        pool = resources.default_memory_pool(resources.context(self._device_index))
        self._use(resources.create_device_memory(pool, self._stream._resource, self._nbytes))

    @classmethod
    def pinned(cls, nbytes: int, device: Device | int | None = None) -> Buffer:
        """Page-locked memory of the host."""
        made = object.__new__(cls)
        made._nbytes = check_integer("nbytes", nbytes, 1, MAX_BYTES)
        made._stream = stream_on(device, None)
        made._device_index = made._stream._device_index
        made._use(resources.create_pinned_memory(resources.context(made._device_index), made._nbytes), pinned=True)
        return made

    @classmethod
    def from_pointer(
        cls,
        pointer: int,
        nbytes: int,
        device: Device | int | None = None,
        *,
        stream: Stream | object = None,
        owner: object = None,
    ) -> Buffer:
        """Device memory that other code allocates and frees; `owner` is kept alive as long as it is used here."""
        made = object.__new__(cls)
        made._nbytes = check_integer("nbytes", nbytes, 1, MAX_BYTES)
        address = check_integer("pointer", pointer, 1, MAX_ADDRESS)
        made._stream = stream_on(device, stream)
        made._device_index = made._stream._device_index
        context = resources.context(made._device_index)
        made._use(resources.borrow_device_memory(context, address, made._nbytes), owner=owner)
        return made

    @classmethod
    def _holding(cls, resource: Resource, nbytes: int, stream: Stream) -> Buffer:
        """Memory of the stream's device that is allocated already."""
        made = object.__new__(cls)
        made._nbytes = nbytes
        made._device_index = stream._device_index
        made._stream = stream
        made._use(resource)
        return made

    def _use(self, resource: Resource, *, pinned: bool = False, owner: object = None) -> None:
        self._resource = resource
        self._pinned = pinned
        self._owner = owner
        self._closed = False
        self._shared = False  # whether an array interface has been handed out

    def _open(self) -> Resource:
        if self._closed:
            raise ClosedError("this cuda.Buffer was closed", hint="make a new one; arrays made of it stay valid")
        return self._resource

    @property
    def nbytes(self) -> int:
        """Its size."""
        return self._nbytes

    @property
    def is_pinned(self) -> bool:
        """True for memory of the host."""
        return self._pinned

    @property
    def pointer(self) -> int:
        """Its address on the device."""
        return self._open().info().raw

    @property
    def device(self) -> Device:
        """The GPU it belongs to."""
        return Device(self._device_index)

    @property
    def stream(self) -> Stream:
        """The stream it is used on."""
        return self._stream

    def copy_from_host(self, array: ArrayLike) -> None:
        """Copies an array into its first bytes, after the work begun on its stream; returns when the copy is done."""
        source = np.ascontiguousarray(array)
        if source.nbytes > self._nbytes:
            refuse("array", f"at most {self._nbytes} bytes long", f"{source.nbytes} bytes")
        self._stream.copy(self.pointer, source.ctypes.data, source.nbytes)
        self._stream.synchronize()

    def copy_to_host(self, dtype: DTypeLike = "uint8") -> NDArray[Any]:
        """All its bytes as a new array of one dimension, after the work begun on its stream."""
        element = np.dtype(dtype)
        if element.hasobject or element.itemsize == 0 or self._nbytes % element.itemsize:
            refuse("dtype", f"one whose size divides {self._nbytes} bytes", dtype)
        pointer = self.pointer
        array = np.empty(self._nbytes // element.itemsize, element)
        self._stream.copy(array.ctypes.data, pointer, self._nbytes)
        self._stream.synchronize()
        return array

    def close(self) -> None:
        """Releases the memory; if arrays may have been made of it, when this object and all of them are released."""
        self._closed = True
        if not self._shared:
            self._resource.close()
            self._owner = None

    @property
    def closed(self) -> bool:
        """True after `close()`."""
        return self._closed

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._pinned:
            raise AttributeError("pinned memory has an __array_interface__")
        return {**self._interface(self.pointer), "stream": interface_stream(self._stream.handle)}

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if not self._pinned:
            raise AttributeError("memory of a device has a __cuda_array_interface__; copy_to_host() copies it")
        return self._interface(self._open().info().host)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        raise TypeError(f"{self!r} is memory of a GPU, which numpy cannot read; use copy_to_host()")

    def _interface(self, address: int) -> dict[str, Any]:
        self._shared = True
        return {"version": 3, "typestr": "|u1", "shape": (self._nbytes,), "strides": None, "data": (address, False)}

    def __repr__(self) -> str:
        place = "pinned, " if self._pinned else ""
        return f"cuda.Buffer({'closed' if self._closed else f'{self._nbytes} bytes'}, {place}cuda:{self._device_index})"
