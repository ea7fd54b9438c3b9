"""Policies: `load_policy()` makes one of whatever can choose actions; networks are evaluated by the native library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doorstep._optional import Lazy, lazy_names
from doorstep.policy.loading import load_policy
from doorstep.policy.policy import Policy, PolicyLayer
from doorstep.policy.sampling import SamplingParams

if TYPE_CHECKING:
    from doorstep.policy.branch import Branch
    from doorstep.policy.heads import Heads

__all__ = ["Branch", "Heads", "Policy", "PolicyLayer", "SamplingParams", "load_policy"]

__getattr__, __dir__ = lazy_names(
    __name__,
    __all__,
    {
        "Branch": Lazy("doorstep.policy.branch", "torch", ("torch",)),
        "Heads": Lazy("doorstep.policy.heads", "torch", ("torch",)),
    },
)
