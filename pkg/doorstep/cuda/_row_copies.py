"""Tensors with gaps between their elements, as few copies of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from doorstep._native.foreign_tensor import ForeignTensor
from doorstep._native.resources import PitchedRows

MAX_PITCH = 2**31 - 1  # of the driver's copies of rows


class TensorRows(NamedTuple):
    """Rows of a tensor, and the byte at which they begin when all elements lie side by side."""

    rows: PitchedRows
    offset: int
    row_bytes: int
    num_rows: int


def row_copies(tensor: ForeignTensor) -> Iterator[TensorRows]:
    """Splits a tensor into as few copies of rows as possible."""
    if 0 in tensor.shape:
        return
    extents, strides, run = _merged(tensor)
    pitched = bool(extents) and run <= strides[-1] <= MAX_PITCH
    num_rows, pitch = (extents.pop(), strides.pop()) if pitched else (1, run)
    for number, index in enumerate(np.ndindex(*extents)):
        first = tensor.pointer + sum(i * stride for i, stride in zip(index, strides, strict=True))
        yield TensorRows(PitchedRows(first, pitch), number * num_rows * run, run, num_rows)


def _merged(tensor: ForeignTensor) -> tuple[list[int], list[int], int]:
    """Extents and strides that remain when neighbouring dimensions are merged, and the bytes of an unbroken run."""
    extents: list[int] = []
    strides: list[int] = []
    itemsize = tensor.dtype.itemsize
    for extent, stride in zip(tensor.shape, tensor.strides, strict=True):
        if extent == 1:
            continue
        if extents and strides[-1] == extent * stride:
            extents[-1] *= extent
            strides[-1] = stride
        else:
            extents.append(extent)
            strides.append(stride)
    if strides and strides[-1] == itemsize:
        return extents[:-1], strides[:-1], itemsize * extents[-1]
    return extents, strides, itemsize
