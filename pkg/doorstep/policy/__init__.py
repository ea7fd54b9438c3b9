"""Policies: `load_policy()` makes one of whatever can choose actions; networks are evaluated by the native library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from doorstep._optional import missing
from doorstep.policy.loading import load_policy
from doorstep.policy.policy import Policy, PolicyLayer
from doorstep.policy.sampling import SamplingParams

if TYPE_CHECKING:
    from doorstep.policy.heads import Heads

__all__ = ["Heads", "Policy", "PolicyLayer", "SamplingParams", "load_policy"]


def __getattr__(name: str) -> Any:
    if name == "Heads":  # it is a module of PyTorch, which nothing else here needs
        try:
            from doorstep.policy.heads import Heads
        except ImportError as error:
            raise missing("doorstep.policy.Heads needs PyTorch", "torch", error) from error
        return Heads
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
