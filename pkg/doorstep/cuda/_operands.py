"""Tensors of any library as copies see them: where their elements lie, and on which stream their owner works."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from doorstep._arguments import refuse
from doorstep._cuda_interface import read_cuda_interface
from doorstep._native._generated import PythonLibrary, PythonTensor
from doorstep._native.resources import Rows
from doorstep._native.tensor_names import CPU, CUDA, device_name
from doorstep._native.tensor_reader import Rules, read_into, stream_of_owner
from doorstep._native.tensor_types import find_library

REQUIREMENT = "a tensor of PyTorch, numpy or another library with DLPack, or memory with a __cuda_array_interface__"
MAX_PITCH = 2**31 - 1  # of the driver's copies of rows


class Operand(NamedTuple):
    """Strides in bytes. device_index: None for the host. stream: the CUstream of its owner, where one is known."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    device_index: int | None
    stream: int | None

    @property
    def nbytes(self) -> int:
        """Bytes of all elements side by side."""
        return self.itemsize * math.prod(self.shape)


class Copied(NamedTuple):
    """Rows of a tensor, and where they lie among its elements side by side."""

    rows: Rows
    offset: int
    row_bytes: int
    num_rows: int


def read_operand(name: str, value: Any, *, written: bool, stream: int) -> Operand:
    """Whatever lies in memory.

    Args:
        name: of the argument, for messages.
        value: the tensor.
        written: refuses read-only memory and elements that overlap.
        stream: the CUstream of the copy, before which libraries without a stream of their own order their work.
    """
    if find_library(type(value)) in (PythonLibrary.OTHER, PythonLibrary.DOORSTEP):
        if hasattr(value, "__cuda_array_interface__"):
            operand = _read_interface(name, value, written)
        else:
            operand = _read_tensor(name, _as_array(name, value), written, stream)
    else:
        operand = _read_tensor(name, value, written, stream)
    if written and _overlaps(operand):
        refuse(name, "a tensor whose elements do not overlap", value)
    return operand


def rows_of(operand: Operand) -> Iterator[Copied]:
    """As few copies of rows as may be that make up a tensor of a device."""
    if 0 in operand.shape:
        return
    extents, strides, run = _merged(operand)
    pitched = bool(extents) and run <= strides[-1] <= MAX_PITCH
    num_rows, pitch = (extents.pop(), strides.pop()) if pitched else (1, run)
    for number, index in enumerate(np.ndindex(*extents)):
        first = operand.pointer + sum(i * stride for i, stride in zip(index, strides, strict=True))
        yield Copied(Rows(first, pitch), number * num_rows * run, run, num_rows)


def _merged(operand: Operand) -> tuple[list[int], list[int], int]:
    """Extents and strides of what is left when neighbouring dimensions are one, and the bytes of an unbroken run."""
    extents: list[int] = []
    strides: list[int] = []
    for extent, stride in zip(operand.shape, operand.strides, strict=True):
        if extent == 1:
            continue
        if extents and strides[-1] == extent * stride:
            extents[-1] *= extent
            strides[-1] = stride
        else:
            extents.append(extent)
            strides.append(stride)
    if strides and strides[-1] == operand.itemsize:
        return extents[:-1], strides[:-1], operand.itemsize * extents[-1]
    return extents, strides, operand.itemsize


def _overlaps(operand: Operand) -> bool:
    """Whether an element may be written twice: sorted by stride, no dimension may reach into the next."""
    reach = operand.itemsize
    dimensions = zip(map(abs, operand.strides), operand.shape, strict=True)
    for stride, extent in sorted(dimensions):
        if extent > 1 and stride < reach:
            return True
        reach += stride * (extent - 1)
    return False


def _read_tensor(name: str, value: Any, written: bool, stream: int) -> Operand:
    view = PythonTensor()
    read_into(view, value, Rules(name, written=written, stream=stream))
    if view.device_type not in (CPU, CUDA):
        refuse(name, "on the CPU or on a CUDA device", device_name(view.device_type, view.device_index))
    itemsize = view.dtype_bits * view.dtype_lanes // 8
    on_device = view.device_type == CUDA
    return Operand(
        view.data or 0,
        tuple(view.shape[: view.rank]),
        tuple(stride * itemsize for stride in view.strides[: view.rank]),
        itemsize,
        view.device_index if on_device else None,
        stream_of_owner(value, view),
    )


def _read_interface(name: str, value: Any, written: bool) -> Operand:
    found = read_cuda_interface(name, value, written=written)
    itemsize = found.dtype.itemsize
    return Operand(found.pointer, found.shape, found.strides, itemsize, found.device_index, found.stream)


def _as_array(name: str, value: Any) -> Any:
    """An array over the memory of anything that numpy reads in place; a list of numbers has no such memory."""
    if hasattr(type(value), "__dlpack__"):
        return value
    if not hasattr(value, "__array_interface__"):
        refuse(name, REQUIREMENT, value)
    return np.asarray(value)
