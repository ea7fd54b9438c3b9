"""Policies: `load_policy()` makes one of whatever can choose actions; networks are evaluated by the native library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doorstep._optional import Lazy, lazy_names
from doorstep.policy.loading import load_policy
from doorstep.policy.policy import Policy, PolicyLayer
from doorstep.policy.sampling import SamplingParams

if TYPE_CHECKING:
    from doorstep.policy.modules import Branch, Heads

__all__ = ["Branch", "Heads", "Policy", "PolicyLayer", "SamplingParams", "load_policy"]

_MODULES = dict.fromkeys(("Branch", "Heads"), Lazy("doorstep.policy.modules", "torch", ("torch",)))
__getattr__, __dir__ = lazy_names(__name__, __all__, _MODULES)
