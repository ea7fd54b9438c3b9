"""Modules of PyTorch as policies whose weights lie in a GPU's memory, without PyTorch's CUDA."""

import torch

from doorstep import Policy
from doorstep._native._generated import DeviceKind, WeightType
from doorstep._native.policies import LayerHandle, LayerWeights, PolicyHandle
from doorstep.policy import SamplingParams
from doorstep.policy.torch_modules import read_layers


class DeviceModule:
    """The weights of a module in a GPU's memory, and the policy that reads them there."""

    def __init__(self, module, arrays, sampling=None):
        self.buffers, self.arrays = {}, arrays
        layers = read_layers(module)
        handle = PolicyHandle.create(list(map(self._layer, layers)), sum(layer.is_head for layer in layers))
        self.policy = Policy(handle, sampling or SamplingParams(), arrays)

    def _layer(self, layer):
        addresses, kind = {}, WeightType.FLOAT32
        for name, tensor in layer.tensors.items():
            buffer = self.buffers[id(tensor)] = self.arrays.upload(bits_of(tensor))
            addresses[name] = buffer.pointer
            kind = WeightType.BFLOAT16 if tensor.dtype == torch.bfloat16 else WeightType.FLOAT32
        weights = LayerWeights(kind, DeviceKind.CUDA, 0, **addresses, owner=list(self.buffers.values()))
        sizes = layer.num_inputs, layer.num_outputs
        return LayerHandle.create(layer.kind, *sizes, layer.parameter, layer.shape, weights)

    def update(self, tensor):
        """As an optimiser does, on the stream of the calls."""
        self.buffers[id(tensor)].fill(bits_of(tensor))


def bits_of(tensor):
    whole = tensor.detach().contiguous()
    return (whole.view(torch.int16) if tensor.dtype == torch.bfloat16 else whole).numpy()
