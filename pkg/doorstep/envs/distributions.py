"""The distribution of an agent's action, for trainers that take a class of torch.distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributions import Distribution
from torch.distributions.kl import register_kl

from doorstep._arguments import refuse
from doorstep._native import ACTIONS
from doorstep.torch import multi_discrete_evaluate, multi_discrete_sample
from doorstep.torch.multi_discrete import check_sizes


class MultiDiscrete(Distribution):  # type: ignore[misc]
    """Several independent choices, each with logits of its own: `doorstep.torch.multi_discrete_*` as a class.

    >>> import torch
    >>> from doorstep.envs import MultiDiscrete
    >>> distribution = MultiDiscrete(torch.zeros(3, 2, 19))
    >>> actions = distribution.sample()
    >>> actions.shape, actions.dtype
    (torch.Size([3, 2, 4]), torch.int64)
    >>> distribution.log_prob(actions).exp().mul(320).round()    # 4 * 8 * 5 * 2 actions
    tensor([[1., 1.],
            [1., 1.],
            [1., 1.]])

    Args:
        logits: [..., sum(sizes)], floating point: the components side by side. Minus infinity excludes a choice.
        sizes: number of choices of each component, 1 to 16 of them; None: those of one agent's action.

    Raises:
        ArgumentError: the last dimension of the logits is not the sum of the sizes, or these are no such numbers.
    """

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012

    def __init__(
        self, logits: torch.Tensor, sizes: Sequence[int] | None = None, validate_args: bool | None = None
    ) -> None:
        self.sizes = list(ACTIONS) if sizes is None else check_sizes(sizes)
        if not isinstance(logits, torch.Tensor) or not logits.ndim:
            refuse("logits", "a torch.Tensor of at least one dimension", logits)
        if logits.shape[-1] != sum(self.sizes):
            refuse("logits", f"of a last dimension of {sum(self.sizes)}", f"a tensor of the shape {list(logits.shape)}")
        self.logits = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
        super().__init__(logits.shape[:-1], torch.Size([len(self.sizes)]), validate_args=validate_args)

    def sample(self, sample_shape: Sequence[int] = ()) -> torch.Tensor:
        """int64 [*sample_shape, ..., components]."""
        with torch.no_grad():
            logits = self.logits.expand(*sample_shape, *self.logits.shape)
            actions, _, _ = multi_discrete_sample(self._rows(logits), self.sizes)
            return actions.long().reshape(*logits.shape[:-1], len(self.sizes))

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        """[...]: of actions [..., components] of any dtype, summed over the components."""
        logits = self.logits.expand(*value.shape[:-1], -1)
        actions = self._rows(value).to(torch.int32)
        return multi_discrete_evaluate(self._rows(logits), actions, self.sizes)[0].reshape(logits.shape[:-1])

    def entropy(self) -> torch.Tensor:
        """[...]: summed over the components."""
        rows = self._rows(self.logits)
        actions = torch.zeros(rows.shape[0], len(self.sizes), dtype=torch.int32, device=rows.device)
        return multi_discrete_evaluate(rows, actions, self.sizes)[1].reshape(self.logits.shape[:-1])

    @property
    def mode(self) -> torch.Tensor:
        """int64 [..., components]: the likeliest choices."""
        return torch.stack([logits.argmax(-1) for logits in self._components()], -1)

    @property
    def deterministic_sample(self) -> torch.Tensor:
        """As `mode`; TorchRL's name for it."""
        return self.mode

    @property
    def mean(self) -> torch.Tensor:
        """[..., components]: the mean of each component's number."""
        return torch.stack([self._moment(logits, 1) for logits in self._components()], -1)

    @property
    def variance(self) -> torch.Tensor:
        """[..., components]: the variance of each component's number."""
        return torch.stack([self._moment(logits, 2) for logits in self._components()], -1) - self.mean**2

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> MultiDiscrete:
        """The same distribution for more rows."""
        return MultiDiscrete(self.logits.expand(*batch_shape, -1), self.sizes)

    def _components(self) -> tuple[torch.Tensor, ...]:
        return tuple(self.logits.split(self.sizes, -1))

    def _rows(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.reshape(-1, tensor.shape[-1]).contiguous()

    @staticmethod
    def _moment(logits: torch.Tensor, power: int) -> torch.Tensor:
        numbers = torch.arange(logits.shape[-1], device=logits.device, dtype=logits.dtype)
        return (logits.softmax(-1) * numbers**power).sum(-1)


@register_kl(MultiDiscrete, MultiDiscrete)  # type: ignore[untyped-decorator]
def _kl(old: MultiDiscrete, new: MultiDiscrete) -> torch.Tensor:
    total = torch.zeros(old.batch_shape, device=old.logits.device, dtype=old.logits.dtype)
    for of_old, of_new in zip(old._components(), new._components(), strict=True):
        logarithms = of_old.log_softmax(-1)
        probabilities = logarithms.exp()
        differences = torch.where(probabilities > 0, logarithms - of_new.log_softmax(-1), 0)
        total = total + (probabilities * differences).sum(-1)
    return total
