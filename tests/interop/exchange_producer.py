"""A library whose tensors offer DLPack's C exchange API, made of ctypes callbacks that note every call."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

from doorstep._native.dlpack import _ManagedVersioned
from doorstep._native.library import PYTHON

NAME = ctypes.create_string_buffer(b"dlpack_exchange_api")
OUT = ctypes.POINTER(ctypes.c_void_p)
ALLOCATOR = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, OUT, ctypes.c_void_p, ctypes.c_void_p)
SET_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, OUT)
TO_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, OUT)
STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, OUT)
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class ExchangeApi(ctypes.Structure):
    """DLPackExchangeAPI."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocator", ALLOCATOR),
        ("from_object", FROM_OBJECT),
        ("to_object", TO_OBJECT),
        ("borrow", ctypes.c_void_p),
        ("current_stream", STREAM),
    )


FAILED = -1  # with an exception set, says the protocol; ctypes callbacks cannot set one


@dataclass(eq=False)
class Producer:
    """A library. Its tensor class is `Tensor`; `failing` names functions that fail.

    Attributes:
        streams: current stream by number of a CUDA device.
        deleted: how many managed tensors have been deleted.
    """

    version: tuple[int, int] = (1, 3)
    previous: Producer | None = None
    failing: set[str] = field(default_factory=set)
    streams: dict[int, int] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    deleted: int = 0

    def __post_init__(self) -> None:
        self._alive: dict[int, Any] = {}
        self._delete = DELETER(self._deleted)
        previous = ctypes.addressof(self.previous.api) if self.previous else None
        self.api: ExchangeApi = ExchangeApi(
            *self.version,
            previous,
            ALLOCATOR(self._allocate),
            FROM_OBJECT(self._from_object),
            TO_OBJECT(self._to_object),
            None,
            STREAM(self._current_stream),
        )
        new_capsule = PYTHON.PyCapsule_New
        new_capsule.restype = ctypes.py_object
        new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        capsule = new_capsule(ctypes.addressof(self.api), ctypes.addressof(NAME), None)
        self.Tensor = type("Tensor", (ProducedTensor,), {"__dlpack_c_exchange_api__": capsule, "producer": self})

    def tensor(self, pointer: int, *shape_and_strides: tuple[int, ...], **options: Any) -> ProducedTensor:
        made: ProducedTensor = self.Tensor(pointer, *shape_and_strides, **options)
        return made

    def managed(self, tensor: ProducedTensor) -> int:
        """Address of a new managed tensor."""
        rank = len(tensor.shape)
        shape, strides = (ctypes.c_int64 * rank)(*tensor.shape), (ctypes.c_int64 * rank)(*tensor.strides)
        managed = _ManagedVersioned(1, 3, None, ctypes.cast(self._delete, ctypes.c_void_p), tensor.flags)
        described = managed.tensor
        described.data, described.byte_offset = tensor.pointer - tensor.byte_offset, tensor.byte_offset
        described.device_type, described.device_index = tensor.device
        described.rank, (described.code, described.bits, described.lanes) = rank, tensor.dtype
        described.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
        described.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
        self._alive[ctypes.addressof(managed)] = (managed, shape, strides)
        return ctypes.addressof(managed)

    @property
    def alive(self) -> int:
        """How many managed tensors have not been deleted."""
        return len(self._alive)

    def _deleted(self, address: int) -> None:
        del self._alive[address]
        self.deleted += 1

    def _allocate(self, prototype: int, out: Any, context: int, set_error: int) -> int:
        self.calls.append("allocate")
        if "allocate" in self.failing:
            return FAILED
        SET_ERROR(set_error)(context, b"MemoryError", b"the device is full")
        return -1

    def _from_object(self, tensor: ProducedTensor, out: Any) -> int:
        self.calls.append("from_object")
        if "from_object" in self.failing:
            return FAILED
        out[0] = self.managed(tensor)
        return 0

    def _to_object(self, managed: int, out: Any) -> int:
        self.calls.append("to_object")
        return FAILED

    def _current_stream(self, device_type: int, device_index: int, out: Any) -> int:
        self.calls.append(f"stream of {device_type}:{device_index}")
        if device_index not in self.streams:
            return FAILED
        out[0] = self.streams[device_index]
        return 0


class ProducedTensor:
    """Memory of somebody, described."""

    producer: Producer

    def __init__(
        self,
        pointer: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        *,
        dtype: tuple[int, int, int] = (2, 32, 1),
        device: tuple[int, int] = (1, 0),
        flags: int = 0,
        byte_offset: int = 0,
    ) -> None:
        self.pointer, self.shape, self.dtype, self.device = pointer, shape, dtype, device
        self.flags, self.byte_offset = flags, byte_offset
        packed = [1]
        for extent in reversed(shape[1:]):
            packed.insert(0, packed[0] * extent)
        self.strides = strides if strides is not None else tuple(packed[: len(shape)])

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        self.producer.calls.append(f"__dlpack__ {options}")
        raise BufferError("this library exports through its exchange API only")
