"""Registers operators with PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from doorstep._native.fast_calls import fast_calls
from doorstep.torch._operands import Operator


def _learn_how_tensors_lie() -> None:
    """The library finds out once how PyTorch's tensors lie in memory. Operators may first be called while PyTorch is
    told to pretend (fake tensors, checks of schemas), when that would not succeed."""
    calls = fast_calls()
    if calls:
        calls["is_tensor"](torch.empty(0))


_learn_how_tensors_lie()  # before anything is registered: this fails where the library cannot be loaded

# It is kept as long as the process: what it has defined would go with it.
LIBRARY = torch.library.Library("doorstep", "DEF")  # type: ignore[no-untyped-call,unused-ignore]


def define(
    operator: Operator,
    kernel: Callable[..., Any],
    fake: Callable[..., Any],
    keep: Callable[..., Any] | None = None,
    backward: Callable[..., Any] | None = None,
) -> None:
    """Makes `torch.ops.doorstep.<name>`, for memory of the CPU and of CUDA devices.

    Args:
        operator: its table.
        kernel: does the work on tensors.
        fake: the same for tensors without memory.
        keep: what autograd has to remember, see torch.library.register_autograd().
        backward: gradients of the inputs; without it, the operator has none.
    """
    name = f"doorstep::{operator.name}"
    tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
    LIBRARY.define(operator.schema(), tags=tags)  # type: ignore[no-untyped-call,unused-ignore]
    for device in ("CPU", "CUDA"):
        LIBRARY.impl(operator.name, kernel, device)  # type: ignore[no-untyped-call,unused-ignore]
    torch.library.register_fake(name, fake, lib=LIBRARY)
    if backward is not None:
        torch.library.register_autograd(name, backward, setup_context=keep, lib=LIBRARY)


@functools.cache
def prepare_once(prepare: Callable[..., None], *arguments: int) -> None:
    """Loads what a device needs, once for the process: until then nothing can be recorded into a graph."""
    prepare(*arguments)
