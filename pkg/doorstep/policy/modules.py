"""Modules of PyTorch for policies: `Branch` sees a part of the features, `Heads` are the output layers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import torch

from doorstep._arguments import check_integer, is_integer, listed, refuse
from doorstep._native import ACTIONS


@final
class Branch(torch.nn.Module):  # type: ignore[misc]
    """A module that gets a part of the features; what it gives is put before all of them.

    The lidar is 30 rays of 2 values each, which begin at 32 in the flat observation of two agents:

    >>> import torch
    >>> from torch import nn
    >>> from doorstep.policy import Branch
    >>> lidar = nn.Sequential(nn.Unflatten(1, (1, 30, 2)), nn.Conv2d(1, 8, (5, 2)), nn.ReLU(), nn.Flatten())
    >>> net = nn.Sequential(Branch(94, slice(32, 92), lidar), nn.Linear(8 * 26 + 94, 19))
    >>> net(torch.zeros(3, 2, 94)).shape
    torch.Size([3, 2, 19])

    Args:
        num_features: of a row.
        part: which of them the module gets, without a step.
        module: takes rows [R, values of the part] and gives rows.

    Raises:
        ArgumentError: num_features or part is anything else.
    """

    def __init__(self, num_features: int, part: slice, module: torch.nn.Module) -> None:
        super().__init__()
        num_features = check_integer("num_features", num_features, 1, 2**31 - 1)
        bounds = (part.start, part.stop) if isinstance(part, slice) and part.step is None else ()
        if not all(map(is_integer, bounds)) or not bounds or not 0 <= bounds[0] < bounds[1] <= num_features:
            refuse("part", f"a slice(first, end) of 0 to {num_features}", part)
        self.num_features, self.part = num_features, part
        self.module = module

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """float32 [..., values of the module + num_features] of float32 [..., num_features]."""
        rows = features.reshape(-1, self.num_features)
        found = torch.cat([self.module(rows[:, self.part]), rows], dim=1)
        return found.reshape(*features.shape[:-1], -1)


@final
class Heads(torch.nn.Module):  # type: ignore[misc]
    """A linear layer for each component of an action, side by side, or one for all: the last module of a policy.

    >>> import torch
    >>> from doorstep import ACTIONS
    >>> from doorstep.policy import Heads
    >>> heads = Heads([torch.nn.Linear(64, size) for size in ACTIONS], value=torch.nn.Linear(64, 1))
    >>> heads(torch.zeros(2, 64)).shape
    torch.Size([2, 19])

    Args:
        heads: a list of `torch.nn.Linear` modules with 4, 8, 5 and 2 outputs, in the order of `doorstep.ACTIONS`; or of
            one with 19.
        value: estimates the value, for training: `heads.value(features)`. `heads(features)` does not evaluate it. A
            `torch.nn.Linear` with one output becomes the value head of a policy, `Policy.has_value`; others are for
            you alone.

    Raises:
        ArgumentError: the heads are not such modules, or the value is no module.
    """

    def __init__(self, heads: Iterable[torch.nn.Module], value: torch.nn.Module | None = None) -> None:
        super().__init__()
        modules = listed(heads)
        sizes = [getattr(head, "out_features", None) for head in modules if isinstance(head, torch.nn.Module)]
        if sizes not in (list(ACTIONS), [sum(ACTIONS)]):
            sizes_of_all = f"{', '.join(map(str, ACTIONS))} outputs, or of one with {sum(ACTIONS)}"
            refuse("heads", f"a list of torch.nn.Linear modules with {sizes_of_all}", heads)
        if not isinstance(value, (torch.nn.Module, type(None))):
            refuse("value", "None or a module", value)
        self.heads = torch.nn.ModuleList(modules)
        self.value = value

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """The logits of all components, [..., 19]."""
        return torch.cat([head(features) for head in self.heads], dim=-1)
