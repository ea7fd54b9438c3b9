"""DLPack's structs: tensors that objects export through `__dlpack__`, and the C exchange API of their classes.

The structs of the DLPack 1.0 specification.
"""

from __future__ import annotations

import ctypes
from typing import Any

from doorstep._native._generated import STREAM_OWN, PythonLibrary
from doorstep._native.foreign_tensor import (
    CUDA,
    CUDA_MANAGED,
    ForeignTensor,
    element_type,
    is_contiguous,
    packed_strides,
)
from doorstep._native.library import PYTHON

LEGACY_STREAM = 1
NO_ORDER = -1
READ_ONLY, IS_COPIED = 1, 2  # flags
ONLY_COPIES = "it exports copies only"

EXCHANGE_ATTRIBUTE = "__dlpack_c_exchange_api__"
EXCHANGE_CAPSULE = b"dlpack_exchange_api"
EXCHANGE_MAJOR = 1


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_index", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


class _ExchangeAPI(ctypes.Structure):
    """DLPackExchangeAPI; other major versions have the first three fields."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("managed_tensor_allocator", ctypes.c_void_p),
        ("managed_tensor_from_py_object_no_sync", ctypes.c_void_p),
        ("managed_tensor_to_py_object_no_sync", ctypes.c_void_p),
        ("dltensor_from_py_object_no_sync", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    )


# ---- Exported tensors ----


def read_dlpack(tensor: Any, library: PythonLibrary, stream: int) -> ForeignTensor:
    """Reads what a tensor exports: its memory, not a copy.

    Args:
        tensor: any object with `__dlpack__`.
        library: its library.
        stream: the CUstream that the caller will work on, before which the library orders its work; STREAM_OWN: no
            order is needed.

    Raises:
        BufferError: the object exports copies only, or a version of DLPack that is not known here.
        Exception: any that `__dlpack__` raises.
    """
    device_type, _ = tensor.__dlpack_device__()
    options = {"stream": _consumer_stream(stream)} if device_type in (CUDA, CUDA_MANAGED) else {}
    try:
        capsule = tensor.__dlpack__(max_version=(1, 0), copy=False, **options)
    except TypeError:  # older than these arguments
        return _read_old_exporter(tensor, library, options)
    return _read_capsule(tensor, library, capsule)


def _read_old_exporter(tensor: Any, library: PythonLibrary, options: dict[str, int]) -> ForeignTensor:
    """It cannot say whether it copies; but two copies that live at once lie in different places."""
    capsules = [tensor.__dlpack__(**options) for _ in range(2)]
    exported, again = (_read_capsule(tensor, library, capsule) for capsule in capsules)
    if exported.pointer != again.pointer and 0 not in exported.shape:
        raise BufferError(ONLY_COPIES)
    return exported


def _consumer_stream(stream: int) -> int:
    return NO_ORDER if stream == STREAM_OWN else stream or LEGACY_STREAM


def _read_capsule(owner: object, library: PythonLibrary, capsule: Any) -> ForeignTensor:
    """The capsule stays unconsumed: it deletes its tensor itself."""
    is_valid, get_pointer = PYTHON.PyCapsule_IsValid, PYTHON.PyCapsule_GetPointer
    is_valid.argtypes = get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    get_pointer.restype = ctypes.c_void_p
    if is_valid(capsule, b"dltensor"):
        managed = _Managed.from_address(get_pointer(capsule, b"dltensor"))
        return _describe(owner, library, managed.tensor, 0)
    versioned = _ManagedVersioned.from_address(get_pointer(capsule, b"dltensor_versioned"))
    if versioned.major != 1:
        raise BufferError(f"it exports DLPack {versioned.major}.{versioned.minor}; doorstep reads version 1")
    return _describe(owner, library, versioned.tensor, versioned.flags)


def _describe(owner: object, library: PythonLibrary, tensor: _Tensor, flags: int) -> ForeignTensor:
    if flags & IS_COPIED:
        raise BufferError(ONLY_COPIES)
    dtype, rank, data = element_type(tensor.code, tensor.bits, tensor.lanes), tensor.rank, tensor.data
    itemsize, shape = dtype.itemsize, tuple(tensor.shape[:rank]) if rank else ()
    if rank and tensor.strides:
        strides = tuple([stride * itemsize for stride in tensor.strides[:rank]])
    else:
        strides = packed_strides(shape, itemsize)
    return ForeignTensor(
        owner,
        library,
        data + tensor.byte_offset if data else 0,
        dtype,
        shape,
        strides,
        tensor.device_type,
        tensor.device_index,
        is_contiguous(shape, strides, itemsize),
        False,
        bool(flags & READ_ONLY),
    )


# ---- The exchange API ----


def exchange_api(cls: type) -> int:
    """Address of a class's DLPackExchangeAPI of the major version that is known here, or 0."""
    capsule = getattr(cls, EXCHANGE_ATTRIBUTE, None)
    if type(capsule).__name__ != "PyCapsule":
        return 0
    get_pointer = PYTHON.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    address = get_pointer(capsule, EXCHANGE_CAPSULE)
    while address:
        api = _ExchangeAPI.from_address(address)
        if api.major == EXCHANGE_MAJOR:
            return int(address)
        address = api.previous
    return 0


def can_describe(api: int) -> bool:
    """Whether the exchange API at an address describes tensors without exporting them."""
    return bool(_ExchangeAPI.from_address(api).dltensor_from_py_object_no_sync)
