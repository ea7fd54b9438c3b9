"""What tests of environments with tensors of PyTorch share."""

import dataclasses

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from doorstep.envs._arrays import torch_arrays

# Operators whose result's shape or value the host has to know: on a GPU it waits for them.
WAITING = ("_local_scalar_dense", "nonzero", "is_nonzero", "masked_select", "repeat_interleave.Tensor", "unique")


class NoWaits(TorchDispatchMode):
    """Within it, an operator that would wait for a GPU raises."""

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        name = str(function).removeprefix("aten.")
        masks = [index for index in _flat(arguments[1:2]) if getattr(index, "dtype", None) == torch.bool]
        if name.startswith(WAITING) or (name.startswith(("index.", "index_put")) and masks):
            raise AssertionError(f"{name} waits for a GPU")
        return function(*arguments, **(keywords or {}))


def arrays_of_a_gpu(device):
    """What environments do with tensors on a GPU, done with tensors on the CPU."""
    assert device == "cpu"
    return dataclasses.replace(torch_arrays("cuda:0"), from_caller=torch.as_tensor)


def _flat(value):
    return [part for item in value for part in _flat(item)] if isinstance(value, (list, tuple)) else [value]
