"""`__cuda_array_interface__`, as other libraries fill it in: read whole, or refused by name."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from doorstep._arguments import refuse
from doorstep._native.tensor_reader import is_contiguous
from doorstep._streams import check_stream
from doorstep.errors import ArgumentError


class CudaInterface(NamedTuple):
    """Memory of a GPU.

    Attributes:
        strides: in bytes.
        stream: the CUstream on which its owner uses it; None: the interface does not tell.
    """

    pointer: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    contiguous: bool
    device_index: int
    stream: int | None


def read_cuda_interface(name: str, value: Any, *, written: bool) -> CudaInterface:
    """What the interface of `value` says.

    Args:
        name: of the argument, for messages.
        value: an object with the interface.
        written: refuses read-only memory.

    Raises:
        ArgumentError: the interface is broken, has a mask, names no memory, or read-only memory.
    """
    try:
        interface = value.__cuda_array_interface__
        address, read_only = interface["data"]
        pointer = operator.index(address or 0)
        dtype = np.dtype(interface["typestr"])
        shape = tuple(map(operator.index, interface["shape"]))
        strides = _strides(shape, interface.get("strides"), dtype.itemsize)
        contiguous = _is_packed(shape, strides, dtype.itemsize)
        mask, stream = interface.get("mask"), interface.get("stream")
    except Exception as error:  # whatever an interface raises, or reading what it says
        text = f"a {type(value).__name__} whose __cuda_array_interface__ cannot be read"
        raise ArgumentError(f"{name} is {text} ({type(error).__name__}: {error})", argument=name) from error
    if mask is not None:
        refuse(name, "without a mask", value)
    if read_only and written:
        refuse(name, "writable", value)
    if not pointer and 0 not in shape:
        raise ArgumentError(
            f"{name} is a {type(value).__name__} whose address is null; it must be one with memory",
            argument=name,
            hint="pass one that holds data",
        )
    handle = None if stream is None else check_stream(name, stream).handle
    return CudaInterface(pointer, dtype, shape, strides, contiguous, _device_index_of(value), handle)


def _strides(shape: tuple[int, ...], strides: Any, itemsize: int) -> tuple[int, ...]:
    """In bytes; what is None lies side by side."""
    if strides is None:
        return tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    if len(strides) != len(shape):
        raise ValueError(f"{len(shape)} dimensions, {len(strides)} strides")
    return tuple(map(operator.index, strides))


def _is_packed(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    whole = not any(stride % itemsize for stride in strides)
    return whole and is_contiguous(shape, [stride // itemsize for stride in strides])


def _device_index_of(value: Any) -> int:
    """The interface does not tell; most objects do."""
    device = getattr(value, "device", 0)
    if isinstance(device, str):
        return int(device.partition(":")[2] or 0)
    index = next((getattr(device, key) for key in ("index", "id", "ordinal") if hasattr(device, key)), device)
    return index if isinstance(index, int) else 0
