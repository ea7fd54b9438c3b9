"""A reference to the memory of a simulator's tensors, and the objects that are exported over it. Arrays over memory."""

from __future__ import annotations

import ctypes
import functools
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep._copies import Owner
from doorstep._native._generated import TensorInfo
from doorstep._native.calls import check, fast_calls, read_value
from doorstep._native.finalizer import Finalizer
from doorstep._native.library import PYTHON, load
from doorstep._native.simulator_stream import SimulatorStream

if TYPE_CHECKING:
    from typing_extensions import CapsuleType  # known to type checkers; not needed to run


def array_at(
    address: int | None,
    dtype: Any,
    shape: tuple[int, ...],
    owner: object = None,
    strides: tuple[int, ...] | None = None,
) -> NDArray[Any]:
    """Memory of the host as an array, in place. strides: in bytes; None: elements lie side by side, in rows."""
    return np.asarray(_Place(address, dtype, shape, owner, strides))


class _Place:
    def __init__(
        self, address: int | None, dtype: Any, shape: tuple[int, ...], owner: object, strides: tuple[int, ...] | None
    ) -> None:
        data, self._owner = (address or 0, False), owner
        described = {"data": data, "shape": shape, "strides": strides, "typestr": np.dtype(dtype).str}
        self.__array_interface__ = {**described, "version": 3}


@final
class Memory(Owner):
    """Keeps the memory until the last tensor, array or capsule made from it is released.

    Args:
        handle: the reference in the C API.
        stream: the simulator's, for memory of a GPU; None on the CPU.
        may_move: whether its owner may give the elements other memory.
    """

    __slots__ = ("__weakref__", "_handle", "_may_move", "_stream", "_turn")

    def __init__(self, handle: int, stream: SimulatorStream | None, may_move: bool = False) -> None:
        self._handle = handle
        self._stream = stream
        self._may_move = may_move
        self._turn: AbstractContextManager[None] = stream or nullcontext()
        Finalizer(self, load().ds_memory_release, handle)

    def check(self) -> None:
        """Raises StateError if the memory is no longer there. The library does it itself where it uses the memory."""
        if self._may_move:
            check(load().ds_memory_check(self._handle))

    def stream(self) -> int | None:
        """The CUstream whose work writes the memory; None on the CPU, and when all work is done."""
        return self._stream.handle() if self._stream else None

    def order(self, stream: int) -> None:
        """Orders work begun on this CUstream from now on after all work begun on the simulator before."""
        with self._turn:
            check(load().ds_memory_order(self._handle, stream))

    def read(self, info: TensorInfo, array: NDArray[Any]) -> None:
        """Copies the elements into a C-contiguous array."""
        with self._turn:
            check(load().ds_memory_read(self._handle, ctypes.byref(info), array.ctypes.data, array.nbytes))

    def write(self, info: TensorInfo, array: NDArray[Any]) -> None:
        """Copies a C-contiguous array into the elements."""
        with self._turn:
            check(load().ds_memory_write(self._handle, ctypes.byref(info), array.ctypes.data, array.nbytes))

    def export_object(self, cls: type, info: TensorInfo) -> Any:
        """An object of a class with DLPack's exchange API over this memory; None if the class has no such API."""
        calls = fast_calls()
        return calls and calls["tensor_over"](cls, self._handle, ctypes.addressof(info))

    def export_dlpack(self, info: TensorInfo, versioned: bool) -> CapsuleType:
        """A PyCapsule with a DLPack tensor, which keeps the memory until it is consumed and released, or dropped."""
        functions = load()
        new_capsule, names, destructor = capsule_tools()
        export = functions.ds_dlpack_export
        managed = read_value(export, ctypes.c_void_p, self._handle, ctypes.byref(info), versioned)
        try:
            capsule: CapsuleType = new_capsule(managed, names[versioned], destructor)
        except BaseException:
            functions.ds_dlpack_delete(managed, versioned)
            raise
        return capsule


@functools.cache
def capsule_tools() -> tuple[Any, tuple[int, int], int]:
    """PyCapsule_New, the two capsule names, and the destructor."""
    destructor = ctypes.cast(load().ds_capsule_destructor, ctypes.c_void_p).value or 0
    return capsule_maker(), (permanent(b"dltensor"), permanent(b"dltensor_versioned")), destructor


@functools.cache
def capsule_maker() -> Any:
    """PyCapsule_New(pointer, name, destructor)."""
    new_capsule = PYTHON.PyCapsule_New
    new_capsule.restype = ctypes.py_object
    new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return new_capsule


def permanent(name: bytes) -> int:
    """The address of a copy that is never freed: a capsule may read its name after Python's strings are freed."""
    duplicate = PYTHON.strdup
    duplicate.restype = ctypes.c_void_p
    duplicate.argtypes = (ctypes.c_char_p,)
    address: int = duplicate(name)
    return address
