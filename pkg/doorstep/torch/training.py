"""Advantages and multi-discrete actions, one fused kernel each."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from doorstep.torch._operands import refuse_tensor
from doorstep.torch._training import check_sizes


def generalized_advantages(
    rewards: torch.Tensor,
    values: torch.Tensor,
    next_values: torch.Tensor,
    terminations: torch.Tensor,
    truncations: torch.Tensor,
    *,
    discount: float = 0.99,
    trace_decay: float = 0.95,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Generalised advantage estimation (Schulman et al., 2016) over T steps of N agents.

        error[t] = rewards[t] + discount * next_values[t] * (1 - terminations[t]) - values[t]
        advantages[t] = error[t] + discount * trace_decay * (1 - ended[t]) * advantages[t + 1]

    where an episode has ended if it was terminated or truncated. Inputs are taken for constants: no gradient flows
    through them.

    >>> import torch
    >>> from doorstep.torch import generalized_advantages
    >>> rewards, values = torch.ones(3, 1), torch.zeros(3, 1)
    >>> terminations, truncations = torch.tensor([[False], [False], [True]]), torch.zeros(3, 1, dtype=torch.bool)
    >>> advantages, targets = generalized_advantages(
    ...     rewards, values, values, terminations, truncations, discount=1.0, trace_decay=1.0
    ... )
    >>> targets.ravel()
    tensor([3., 2., 1.])

    Args:
        rewards: float32 or float64 [T, ...], contiguous, as are all others. The entries of a step stay apart.
        values: of what was observed before each step.
        next_values: of what was observed after it. Where an episode ended: of its final observation, not of the first
            one of the next episode.
        terminations: bool or uint8 [T, ...]: the episode ended and nothing is worth anything after.
        truncations: bool or uint8 [T, ...]: the episode was cut, next_values say what might have followed.
        discount: gamma, 0 to 1.
        trace_decay: lambda, 0 to 1.

    Returns:
        The advantages, and the targets for the value function: advantages + values. Both like rewards.

    Raises:
        ArgumentError: a tensor has another shape, dtype or device than it must, or is not contiguous.
    """
    tensors = _by_step(
        rewards=rewards,
        values=values,
        next_values=next_values,
        terminations=terminations,
        truncations=truncations,
    )
    advantages, targets = torch.ops.doorstep.generalized_advantages(*tensors, discount, trace_decay)
    return advantages.reshape(rewards.shape), targets.reshape(rewards.shape)


def v_trace(
    log_ratios: torch.Tensor,
    rewards: torch.Tensor,
    values: torch.Tensor,
    next_values: torch.Tensor,
    terminations: torch.Tensor,
    truncations: torch.Tensor,
    *,
    discount: float = 0.99,
    trace_decay: float = 1.0,
    rho_clip: float = 1.0,
    c_clip: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """V-trace (Espeholt et al., 2018, equation 1) over T steps of N agents.

        error[t] = rho[t] * (rewards[t] + discount * next_values[t] * (1 - terminations[t]) - values[t])
        targets[t] = values[t] + error[t] + discount * c[t] * (1 - ended[t]) * (targets[t + 1] - values[t + 1])

    with rho = min(rho_clip, ratio) and c = trace_decay * min(c_clip, ratio). With ratios of 1 it is
    `generalized_advantages()`'s target. Inputs are taken for constants: no gradient flows through them.

    >>> import torch
    >>> from doorstep.torch import v_trace
    >>> zeros, flags = torch.zeros(2, 1), torch.tensor([[False], [True]])
    >>> advantages, targets = v_trace(zeros, zeros + 1, zeros, zeros, flags, flags, discount=0.5)
    >>> targets.ravel()
    tensor([1.5000, 1.0000])

    Args:
        log_ratios: float32 or float64 [T, ...]: log-probability of the action by the policy that learns, minus that by
            the one that acted.
        rewards: this and the others as in `generalized_advantages()`.
        rho_clip: ratios are clipped here where they scale errors, at least 0; it decides what is converged to.
        c_clip: and here where they scale what follows; it decides how fast.

    Returns:
        The advantages for the policy gradient: rho[t] * (rewards[t] + discount * target of what followed - values[t]).
        And the targets for the value function.

    Raises:
        ArgumentError: a tensor has another shape, dtype or device than it must, or is not contiguous.
    """
    tensors = _by_step(
        log_ratios=log_ratios,
        rewards=rewards,
        values=values,
        next_values=next_values,
        terminations=terminations,
        truncations=truncations,
    )
    advantages, targets = torch.ops.doorstep.v_trace(*tensors, discount, trace_decay, rho_clip, c_clip)
    return advantages.reshape(rewards.shape), targets.reshape(rewards.shape)


def multi_discrete_sample(
    logits: torch.Tensor, sizes: Sequence[int], generator: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draws actions of several independent components.

    >>> import torch
    >>> from doorstep.torch import multi_discrete_sample
    >>> actions, log_probabilities, entropies = multi_discrete_sample(torch.zeros(3, 19), [4, 8, 5, 2])
    >>> actions.shape, actions.dtype
    (torch.Size([3, 4]), torch.int32)
    >>> entropies.exp().round()
    tensor([320., 320., 320.])

    Args:
        logits: float32 or float64 [B, sum(sizes)], contiguous: the components side by side. Minus infinity forbids a
            choice.
        sizes: number of choices of each component, 1 to 16 of them.
        generator: of the logits' device; None: PyTorch's own.

    Returns:
        Actions, int32 [B, len(sizes)]; their log-probabilities and the entropies, both [B], summed over the components.
        The latter two can be differentiated (once) with respect to the logits, with the actions as constants. Where a
        row has a NaN, or a component without a choice, they are NaN.

    Raises:
        ArgumentError: logits have another shape or dtype than they must, or are not contiguous; sizes are no such
            numbers.
    """
    if not isinstance(logits, torch.Tensor):
        refuse_tensor("logits", type(logits).__name__, "a torch.Tensor")
    if logits.dim() != 2:
        refuse_tensor("logits", f"of shape {list(logits.shape)}", "of shape [B, S]")
    sizes = check_sizes(sizes)
    dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32  # others are refused below
    uniforms = torch.rand(logits.shape[0], len(sizes), generator=generator, dtype=dtype, device=logits.device)
    log_probabilities, entropies, actions = torch.ops.doorstep.multi_discrete_sample(logits, uniforms, sizes)
    return actions, log_probabilities, entropies


def multi_discrete_evaluate(
    logits: torch.Tensor, actions: torch.Tensor, sizes: Sequence[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of given actions, and entropies.

    >>> import torch
    >>> from doorstep.torch import multi_discrete_evaluate
    >>> logits = torch.zeros(1, 5, requires_grad=True)
    >>> log_probability, entropy = multi_discrete_evaluate(logits, torch.tensor([[0, 1]], dtype=torch.int32), [2, 3])
    >>> torch.allclose(log_probability.exp(), torch.tensor([1 / 6]))
    True
    >>> log_probability.sum().backward()
    >>> logits.grad
    tensor([[ 0.5000, -0.5000, -0.3333,  0.6667, -0.3333]])

    Args:
        logits: as in `multi_discrete_sample()`, as are the results.
        actions: int32 [B, len(sizes)], contiguous; counted from 0.
        sizes: number of choices of each component, 1 to 16 of them.

    Raises:
        ArgumentError: a tensor has another shape, dtype or device than it must, or is not contiguous; an action that is
            no choice, on the CPU. On a GPU, where looking would be waiting, it makes the log-probability NaN.
    """
    for name, tensor in (("logits", logits), ("actions", actions)):
        if not isinstance(tensor, torch.Tensor):
            refuse_tensor(name, type(tensor).__name__, "a torch.Tensor")
    log_probabilities, entropies = torch.ops.doorstep.multi_discrete_evaluate(logits, actions, check_sizes(sizes))
    return log_probabilities, entropies


def _by_step(**tensors: torch.Tensor) -> list[torch.Tensor]:
    """[T, ...] as [T, N], in place. What may differ in shape before it does not after is refused here."""
    shape = None
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            refuse_tensor(name, type(tensor).__name__, "a torch.Tensor")
        shape = tensor.shape if shape is None else shape
        if tensor.dim() == 0:
            refuse_tensor(name, "of shape []", "of shape [T, ...]")
        if tensor.shape != shape:
            refuse_tensor(name, f"of shape {list(tensor.shape)}", f"of shape {list(shape)}, as the others are")
        if not tensor.is_contiguous():
            refuse_tensor(name, "not contiguous", "contiguous", "make it so with .contiguous()")
    if len(shape or ()) == 2:
        return list(tensors.values())
    return [tensor.unsqueeze(1) if tensor.dim() == 1 else tensor.flatten(1) for tensor in tensors.values()]
