"""`Branch`: a module that sees a part of the features, as convolutions that see the lidar."""

from __future__ import annotations

from typing import final

import torch

from doorstep._arguments import check_integer, is_integer, refuse


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
