"""doorstep in PyTorch programs: operators that compile, have gradients where these are defined, and give the same bits
on CPU and NVIDIA GPU.

    import doorstep.torch
    advantages, targets = doorstep.torch.generalized_advantages(rewards, values, next_values, terminations, truncations)

The functions here call the operators, `torch.ops.doorstep.*`.
"""

from __future__ import annotations

from doorstep._optional import missing

try:
    import torch  # noqa: F401  what follows imports it
except ImportError as error:
    raise missing("doorstep.torch needs PyTorch", "torch", error) from error

from doorstep.torch.advantages import generalized_advantages, v_trace
from doorstep.torch.batch import make
from doorstep.torch.multi_discrete import multi_discrete_evaluate, multi_discrete_sample

__all__ = [
    "generalized_advantages",
    "make",
    "multi_discrete_evaluate",
    "multi_discrete_sample",
    "v_trace",
]
