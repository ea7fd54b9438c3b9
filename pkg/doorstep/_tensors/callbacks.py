"""Functions that native code calls for tensors that it does not read itself (interop/python/tensor_bridge.cpp)."""

from __future__ import annotations

import sys
from typing import Any

from doorstep._native._generated import PythonTensor
from doorstep._native.object_layout import find_type_offset
from doorstep._tensors.checks import ReadRules
from doorstep._tensors.libraries import current_stream, make_like
from doorstep._tensors.reader import read_tensor
from doorstep._tensors.types import find_tensor_type

__all__ = ["current_stream", "examine_type", "make_like", "read"]


def examine_type(cls: type) -> tuple[int, ...]:
    """The numbers of find_tensor_type() and find_type_offset(), in one row."""
    *numbers, layout = find_tensor_type(cls)
    return (*numbers, *layout, find_type_offset())


def read(tensor: object, address: int, name: str, requires_grad_allowed: bool, written: bool, stream: int) -> bool:
    """Fills in the PythonTensor at an address. True if all tensors of PyTorch with the same dispatch keys are plain."""
    found = read_tensor(tensor, ReadRules(name, requires_grad_allowed, written, stream))
    found.write_struct(PythonTensor.from_address(address))
    return 0 not in found.shape and _has_plain_keys(tensor)  # without elements the memory was not checked


def _has_plain_keys(tensor: Any) -> bool:
    tensor_class = getattr(sys.modules.get("torch"), "Tensor", None)  # None: not imported yet
    if tensor_class is None or not isinstance(tensor, tensor_class):
        return False
    return type(tensor).__torch_dispatch__ is tensor_class.__torch_dispatch__
