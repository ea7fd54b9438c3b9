"""A library whose tensors offer DLPack's C exchange API, made of ctypes callbacks that note every call."""

import ctypes

from doorstep._native.dlpack import _ManagedVersioned
from doorstep._native.library import PYTHON

NAME, VERSIONED = (ctypes.create_string_buffer(name) for name in (b"dlpack_exchange_api", b"dltensor_versioned"))
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
        *(("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p)),
        *(("allocator", ALLOCATOR), ("from_object", FROM_OBJECT), ("to_object", TO_OBJECT)),
        *(("borrow", ctypes.c_void_p), ("current_stream", STREAM)),
    )


FAILED = -1  # with an exception set, says the protocol; ctypes callbacks cannot set one


def new_capsule(address, name):
    new = PYTHON.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return new(address, ctypes.addressof(name), None)


class Producer:
    """A library. Its tensor class is `Tensor`; `failing` names functions that fail.

    Attributes:
        streams: current stream by number of a CUDA device.
        deleted: how many managed tensors have been deleted.
    """

    def __init__(self, version=(1, 3), previous=None, failing=(), streams=()):
        self.failing, self.streams, self.previous = set(failing), dict(streams), previous
        self.calls, self.deleted, self._alive = [], 0, {}
        self._delete = DELETER(self._deleted)
        self.api = ExchangeApi(
            *version,
            ctypes.addressof(previous.api) if previous else None,
            *(ALLOCATOR(self._allocate), FROM_OBJECT(self._from_object), TO_OBJECT(self._to_object), None),
            STREAM(self._current_stream),
        )
        capsule = new_capsule(ctypes.addressof(self.api), NAME)
        self.Tensor = type("Tensor", (ProducedTensor,), {"__dlpack_c_exchange_api__": capsule, "producer": self})

    def tensor(self, pointer, *shape_and_strides, **options):
        return self.Tensor(pointer, *shape_and_strides, **options)

    def managed(self, tensor):
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

    def capsule(self, tensor):
        """What `__dlpack__` returns of a tensor. Nobody consumes it."""
        return new_capsule(self.managed(tensor), VERSIONED)

    @property
    def alive(self):
        """How many managed tensors have not been deleted."""
        return len(self._alive)

    def _deleted(self, address):
        del self._alive[address]
        self.deleted += 1

    def _allocate(self, prototype, out, context, set_error):
        self.calls.append("allocate")
        if "allocate" not in self.failing:
            SET_ERROR(set_error)(context, b"MemoryError", b"the device is full")
        return FAILED

    def _from_object(self, tensor, out):
        self.calls.append("from_object")
        if "from_object" in self.failing:
            return FAILED
        out[0] = self.managed(tensor)
        return 0

    def _to_object(self, managed, out):
        self.calls.append("to_object")
        return FAILED

    def _current_stream(self, device_type, device_index, out):
        self.calls.append(f"stream of {device_type}:{device_index}")
        if device_index not in self.streams:
            return FAILED
        out[0] = self.streams[device_index]
        return 0


class ProducedTensor:
    """Memory of somebody, described."""

    def __init__(
        self, pointer, shape, strides=None, *, dtype=(2, 32, 1), device=(1, 0), flags=0, byte_offset=0
    ):  # fmt: skip
        self.pointer, self.shape, self.dtype, self.device = pointer, shape, dtype, device
        self.flags, self.byte_offset = flags, byte_offset
        packed = [1]
        for extent in reversed(shape[1:]):
            packed.insert(0, packed[0] * extent)
        self.strides = strides if strides is not None else tuple(packed[: len(shape)])

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        self.producer.calls.append(f"__dlpack__ {options}")
        raise BufferError("this library exports through its exchange API only")
