"""Policies: `load_policy()` makes one of whatever can choose actions; networks are evaluated by the native library."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from doorstep._optional import missing
from doorstep.policy.loading import load_policy
from doorstep.policy.policy import Policy, PolicyLayer
from doorstep.policy.sampling import SamplingParams

if TYPE_CHECKING:
    from doorstep.policy.branch import Branch
    from doorstep.policy.heads import Heads

__all__ = ["Branch", "Heads", "Policy", "PolicyLayer", "SamplingParams", "load_policy"]


def __getattr__(name: str) -> Any:
    if name in ("Branch", "Heads"):  # modules of PyTorch, which nothing else here needs
        try:
            return getattr(import_module(f"doorstep.policy.{name.lower()}"), name)
        except ImportError as error:
            raise missing(f"doorstep.policy.{name} needs PyTorch", "torch", error) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
