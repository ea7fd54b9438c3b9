"""doorstep in PyTorch programs: operators that compile, are differentiated where that makes sense, and run on CPU and
NVIDIA GPU with the same bits.

    import doorstep.torch
    advantages, targets = doorstep.torch.generalized_advantages(rewards, values, next_values, terminations, truncations)

The operators are `torch.ops.doorstep.*`; the functions here are what to call.
"""

from __future__ import annotations

from doorstep.torch.training import (
    generalized_advantages,
    multi_discrete_evaluate,
    multi_discrete_sample,
    v_trace,
)
from doorstep.torch.worlds import Batch, BatchState, make

__all__ = [
    "Batch",
    "BatchState",
    "generalized_advantages",
    "make",
    "multi_discrete_evaluate",
    "multi_discrete_sample",
    "v_trace",
]
