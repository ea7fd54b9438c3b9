"""Simulators whose tensors lie in memory of the test."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import doorstep

WORLDS = 6
Array = npt.NDArray[Any]


def aligned(shape: tuple[int, ...], dtype: Any) -> Array:
    """Zeros at an address that JAX takes without a copy."""
    dtype = np.dtype(dtype)
    raw = np.zeros(int(np.prod(shape)) * dtype.itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    array: Array = raw[start : raw.size - 64 + start].view(dtype).reshape(shape)
    return array


def make(**options: Any) -> doorstep.Simulator:
    return doorstep.Simulator(WORLDS, **{"seed": 3, **options})


def places_of(sim: doorstep.Simulator) -> dict[str, Array]:
    """Memory for every tensor, in the tensor's own shape."""
    return {name: aligned(tensor.shape, tensor.dtype) for name, tensor in sim.tensors.items()}
