"""Reads what an object exports through `__dlpack__`. The structs are those of the DLPack 1.0 specification."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from doorstep._native._generated import STREAM_OWN
from doorstep._native.library import PYTHON
from doorstep._native.tensor_names import CUDA, CUDA_MANAGED, Dtype

LEGACY_STREAM = 1
NO_ORDER = -1
READ_ONLY, IS_COPIED = 1, 2  # flags
ONLY_COPIES = "it exports copies only"


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


class Exported(NamedTuple):
    """Strides in elements."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Dtype
    device: tuple[int, int]
    read_only: bool


def read_dlpack(tensor: Any, stream: int) -> Exported:
    """What a tensor exports; its memory, not a copy.

    Args:
        tensor: any object with `__dlpack__`.
        stream: the CUstream that the caller will work on, before which the library orders its work; STREAM_OWN: none.

    Raises:
        BufferError: only a copy can be had, or DLPack has become another one. Whatever else `__dlpack__` raises.
    """
    device_type, _ = tensor.__dlpack_device__()
    options = {"stream": _consumer_stream(stream)} if device_type in (CUDA, CUDA_MANAGED) else {}
    try:
        capsule = tensor.__dlpack__(max_version=(1, 0), copy=False, **options)
    except TypeError:  # older than these arguments
        return _read_old_exporter(tensor, options)
    return _read_capsule(capsule)


def _read_old_exporter(tensor: Any, options: dict[str, int]) -> Exported:
    """It cannot say whether it copies; but two copies that live at once lie in different places."""
    capsules = [tensor.__dlpack__(**options) for _ in range(2)]
    exported, again = map(_read_capsule, capsules)
    if exported.pointer != again.pointer and 0 not in exported.shape:
        raise BufferError(ONLY_COPIES)
    return exported


def _consumer_stream(stream: int) -> int:
    return NO_ORDER if stream == STREAM_OWN else stream or LEGACY_STREAM


def _read_capsule(capsule: Any) -> Exported:
    """The capsule stays unconsumed: it deletes its tensor itself."""
    is_valid, get_pointer = PYTHON.PyCapsule_IsValid, PYTHON.PyCapsule_GetPointer
    is_valid.argtypes = get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    get_pointer.restype = ctypes.c_void_p
    if is_valid(capsule, b"dltensor"):
        managed = _Managed.from_address(get_pointer(capsule, b"dltensor"))
        return _describe(managed.tensor, 0)
    versioned = _ManagedVersioned.from_address(get_pointer(capsule, b"dltensor_versioned"))
    if versioned.major != 1:
        raise BufferError(f"it exports DLPack {versioned.major}.{versioned.minor}; doorstep knows 1")
    return _describe(versioned.tensor, versioned.flags)


def _describe(tensor: _Tensor, flags: int) -> Exported:
    if flags & IS_COPIED:
        raise BufferError(ONLY_COPIES)
    shape = tuple(tensor.shape[: tensor.rank]) if tensor.rank else ()
    strides = tuple(tensor.strides[: tensor.rank]) if tensor.rank and tensor.strides else _packed(shape)
    return Exported(
        tensor.data + tensor.byte_offset if tensor.data else 0,
        shape,
        strides,
        (tensor.code, tensor.bits, tensor.lanes),
        (tensor.device_type, tensor.device_index),
        bool(flags & READ_ONLY),
    )


def _packed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of row-major elements side by side."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return tuple(strides[: len(shape)])
