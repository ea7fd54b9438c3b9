"""Tensors as arrays, wherever they lie."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from doorstep.tensor import Tensor


def read(tensor: Tensor) -> NDArray[Any]:
    """What a tensor holds now: on the CPU the memory itself, to be left alone; of a GPU's, a copy."""
    return tensor.to_numpy() if tensor.device == "cpu" else tensor.copy_to_host()
