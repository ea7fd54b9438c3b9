"""Modules of PyTorch as policies whose weights lie in a GPU's memory, without PyTorch's CUDA."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from tests.cuda.users_memory import UsersArray, UsersArrays

from doorstep import Policy
from doorstep._native._generated import DeviceKind, WeightType
from doorstep._native.policies import LayerHandle, LayerWeights, PolicyHandle
from doorstep.policy import SamplingParams
from doorstep.policy.torch_modules import read_layers


class DeviceModule:
    """The weights of a module in a GPU's memory, and the policy that reads them there."""

    def __init__(self, module: Any, arrays: UsersArrays, sampling: SamplingParams | None = None) -> None:
        self.buffers: dict[int, UsersArray] = {}
        self.arrays = arrays
        layers = read_layers(module)
        handles = [self._layer(layer) for layer in layers]
        self.buffers_of_all = list(self.buffers.values())
        handle = PolicyHandle.create(handles, sum(layer.is_head for layer in layers))
        self.policy = Policy(handle, sampling or SamplingParams(), arrays)

    def _layer(self, layer: Any) -> LayerHandle:
        addresses, kind = {}, WeightType.FLOAT32
        for name, tensor in layer.tensors.items():
            buffer = self.buffers[id(tensor)] = self.arrays.upload(bits_of(tensor))
            addresses[name] = buffer.pointer
            kind = WeightType.BFLOAT16 if tensor.dtype == torch.bfloat16 else WeightType.FLOAT32
        weights = LayerWeights(kind, DeviceKind.CUDA, 0, **addresses, owner=list(self.buffers.values()))
        return LayerHandle.create(
            layer.kind, layer.num_inputs, layer.num_outputs, layer.parameter, layer.shape, weights
        )

    def update(self, tensor: torch.Tensor) -> None:
        """As an optimiser does, on the stream of the calls."""
        self.arrays.kept.append(bits_of(tensor))
        self.buffers[id(tensor)].fill(self.arrays.kept[-1])


def bits_of(tensor: torch.Tensor) -> NDArray[Any]:
    whole = tensor.detach().contiguous()
    bits: NDArray[Any] = (whole.view(torch.int16) if tensor.dtype == torch.bfloat16 else whole).numpy().copy()
    return bits
