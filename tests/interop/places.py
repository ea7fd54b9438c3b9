"""Simulators whose tensors lie in memory of the test, and the two ways to read tensors."""

import numpy as np
import pytest

import doorstep
from doorstep import interop

WORLDS = 6
WAYS = ("native", "python")


def aligned(shape, dtype):
    """Zeros at an address that JAX takes without a copy."""
    dtype = np.dtype(dtype)
    raw = np.zeros(int(np.prod(shape)) * dtype.itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : raw.size - 64 + start].view(dtype).reshape(shape)


def make(**options):
    return doorstep.Simulator(WORLDS, **{"seed": 3, **options})


def places_of(sim):
    """Memory for every tensor, in the tensor's own shape."""
    return {name: aligned(tensor.shape, tensor.dtype) for name, tensor in sim.tensors.items()}


def take_way(way, monkeypatch):
    """doorstep.interop, going through the native library or through Python alone."""
    if way == "python":
        monkeypatch.setattr(interop, "_calls", None)
        for name, function in interop.__test__.items():
            monkeypatch.setattr(interop, name, function)
    elif interop._calls is None:
        pytest.skip("fast calls are off")
    return interop
