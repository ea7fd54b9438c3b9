"""Memory described by `__cuda_array_interface__`, `__array_interface__` or the buffer protocol."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from doorstep._arguments import refuse
from doorstep._native._generated import PythonLibrary
from doorstep._native.foreign_tensor import (
    BOOL,
    COMPLEX,
    CUDA,
    DTYPE_NAMES,
    ELEMENT_TYPES,
    FLOAT,
    SIGNED,
    UNNAMED,
    UNSIGNED,
    ElementType,
    ForeignTensor,
    element_type,
    is_contiguous,
    packed_strides,
)
from doorstep._streams import check_stream
from doorstep._tensors.checks import ReadRules, check_rules
from doorstep.errors import ArgumentError

NUMPY_KINDS = {"i": SIGNED, "u": UNSIGNED, "f": FLOAT, "c": COMPLEX, "b": BOOL}


def read_cuda_interface(value: Any, rules: ReadRules) -> ForeignTensor:
    """Reads `value.__cuda_array_interface__`, with the stream that it names.

    Raises:
        ArgumentError: the interface cannot be read, has a mask, is without memory, or is against the rules.
    """
    name = rules.name
    try:
        interface = value.__cuda_array_interface__
        address, read_only = interface["data"]
        pointer = operator.index(address or 0)
        dtype = _element_type(np.dtype(interface["typestr"]))
        shape = tuple(map(operator.index, interface["shape"]))
        strides = _strides(shape, interface.get("strides"), dtype.itemsize)
        mask, stream = interface.get("mask"), interface.get("stream")
    except Exception as error:  # other libraries may raise anything
        text = f"a {type(value).__name__} whose __cuda_array_interface__ cannot be read"
        raise ArgumentError(f"{name} is {text} ({type(error).__name__}: {error})", argument=name) from error
    if mask is not None:
        refuse(name, "without a mask", value)
    tensor = ForeignTensor(
        value,
        PythonLibrary.OTHER,
        pointer,
        dtype,
        shape,
        strides,
        CUDA,
        _device_index_of(value),
        is_contiguous(shape, strides, dtype.itemsize),
        read_only=bool(read_only),
        stream=None if stream is None else check_stream(name, stream).handle,
    )
    check_rules(tensor, rules)
    return tensor


def as_array(name: str, value: Any) -> Any:
    """A numpy array over the memory of any object that numpy reads in place, which a list of numbers is not."""
    requirement = "a tensor of numpy, PyTorch, JAX or another library"
    hint = "from a list, make one with its dtype: numpy.asarray(value, numpy.int32)"
    if not hasattr(value, "__array_interface__"):
        try:
            value = memoryview(value)
        except TypeError:
            refuse(name, requirement, value, hint)
    try:
        return np.asarray(value)
    except Exception:  # other libraries may raise anything
        refuse(name, requirement, value, hint)


def numpy_element_type(dtype: np.dtype[Any]) -> ElementType | None:
    """The element type of a numpy dtype; None unless it is of plain numbers in this machine's byte order."""
    bits = dtype.itemsize * 8
    if dtype.type.__module__ == "ml_dtypes":  # what JAX adds to numpy
        known = ELEMENT_TYPES.get(dtype.name)
        return known if known is not None and known.bits == bits else None
    code = NUMPY_KINDS.get(dtype.kind)
    known_kind = code is not None and dtype.isnative and (code, bits) in DTYPE_NAMES
    return element_type(code, bits) if known_kind and code is not None else None


def _element_type(dtype: np.dtype[Any]) -> ElementType:
    """Also of structs, text and foreign byte orders, which are copied as bytes."""
    unnamed = ElementType(str(dtype), dtype.itemsize, UNNAMED, 8 * dtype.itemsize, 1)
    return numpy_element_type(dtype) or unnamed


def _strides(shape: tuple[int, ...], strides: Any, itemsize: int) -> tuple[int, ...]:
    """In bytes; None means side by side."""
    if strides is None:
        return packed_strides(shape, itemsize)
    if len(strides) != len(shape):
        raise ValueError(f"{len(shape)} dimensions, {len(strides)} strides")
    return tuple(map(operator.index, strides))


def _device_index_of(value: Any) -> int:
    """The interface does not tell; most objects do."""
    device = getattr(value, "device", 0)
    if isinstance(device, str):
        return int(device.partition(":")[2] or 0)
    index = next((getattr(device, key) for key in ("index", "id", "ordinal") if hasattr(device, key)), device)
    return index if isinstance(index, int) else 0
