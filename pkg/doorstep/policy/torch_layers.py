"""Layers of a policy that are read from modules of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NoReturn

import torch
from torch import nn

from doorstep._native._generated import DeviceKind, LayerKind, WeightType
from doorstep._native.policies import LayerHandle, LayerWeights
from doorstep.errors import ArgumentError
from doorstep.policy.shapes import ARRAYS

WEIGHT_TYPES = {torch.float32: WeightType.FLOAT32, torch.bfloat16: WeightType.BFLOAT16}


@dataclass(frozen=True)
class LayerSpec:
    """A layer: where it is in the module, its numbers, and the names of its tensors there, in the order of ARRAYS.
    shape: as `LayerHandle.create()` takes it."""

    path: str
    module: nn.Module
    kind: LayerKind
    num_inputs: int = 0
    num_outputs: int = 0
    parameter: float = 0.0
    names: tuple[str, ...] = ()
    shape: Mapping[str, int] = field(default_factory=dict)
    is_head: bool = False
    is_value: bool = False  # the last head

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Those that the module has, by their names in a layer."""
        found = {array: _tensor_at(self.module, name) for array, name in zip(ARRAYS, self.names, strict=False)}
        return {array: tensor for array, tensor in found.items() if tensor is not None}

    @property
    def weight_type(self) -> WeightType:
        return next((WEIGHT_TYPES[tensor.dtype] for tensor in self.tensors.values()), WeightType.FLOAT32)

    def create(self, device: torch.device) -> LayerHandle:
        """The native layer, which reads the tensors in place."""
        # Aliases: what replaces a parameter's tensor does not free the memory that the layer reads.
        own = {array: tensor.detach() for array, tensor in self.tensors.items()}
        addresses = {array: tensor.data_ptr() for array, tensor in own.items()}
        kind = DeviceKind.CUDA if device.type == "cuda" else DeviceKind.CPU
        weights = LayerWeights(self.weight_type, kind, device.index or 0, **addresses, owner=own)
        return LayerHandle.create(self.kind, self.num_inputs, self.num_outputs, self.parameter, self.shape, weights)


def _tensor_at(module: nn.Module, name: str) -> torch.Tensor | None:
    """The tensor of this name in the module, or, with dots, in one of its own."""
    try:
        found: torch.Tensor | None = attrgetter(name)(module)
    except AttributeError:
        return None
    return found


# ---- Reading a module ----

# Of the values of one row: None is a row of any width, as the first module gets it. A rank above 1: tokens or an image.
RowShape = tuple[int, ...] | None
# The layers of a module, and the shape of what it gives.
Read = tuple[list[LayerSpec], RowShape]
# Reads the module of this path, which gets values of this shape. The tensors are not checked.
Reader = Callable[[str, Any, RowShape], Read]


def refuse_module(path: str, problem: str, hint: str) -> NoReturn:
    raise ArgumentError(f"{path} {problem}", argument="module", hint=hint)
