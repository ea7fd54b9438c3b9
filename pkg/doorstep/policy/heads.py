"""`Heads`: the output layers of a policy, one per component of an action."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import torch

from doorstep._arguments import listed, refuse
from doorstep._native import ACTIONS


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
