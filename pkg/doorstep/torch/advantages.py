"""Advantages and targets of a value function, one fused kernel each, as operators of PyTorch."""

from __future__ import annotations

import functools
from typing import Any

import torch

from doorstep._native._generated import OperatorFunction
from doorstep._native.tensor_calls import OperandAccess, TensorCall, TensorSpec, advantages_struct, prepare_training
from doorstep._tensors.checks import refuse_tensor
from doorstep.torch._operators import OperatorSpec, check_contiguous, check_is_tensor, define, prepare_once

Pair = tuple[torch.Tensor, torch.Tensor]

STEPS = ("T", "N")
ESTIMATES = (
    TensorSpec("rewards", "float", STEPS),
    TensorSpec("values", "float", STEPS),
    TensorSpec("next_values", "float", STEPS),
    TensorSpec("terminations", "flag", STEPS),
    TensorSpec("truncations", "flag", STEPS),
)
ESTIMATED = (
    TensorSpec("advantages", "float", STEPS, OperandAccess.WRITE),
    TensorSpec("targets", "float", STEPS, OperandAccess.WRITE),
)
GENERALIZED_ADVANTAGES = OperatorSpec("generalized_advantages", ESTIMATES, ESTIMATED, "float gamma, float gae_lambda")
V_TRACE = OperatorSpec(
    "v_trace",
    (TensorSpec("log_ratios", "float", STEPS), *ESTIMATES),
    ESTIMATED,
    "float gamma, float gae_lambda, float rho_clip, float c_clip",
)


def generalized_advantages(
    rewards: torch.Tensor,
    values: torch.Tensor,
    next_values: torch.Tensor,
    terminations: torch.Tensor,
    truncations: torch.Tensor,
    *,
    gamma: float = 0.99,
    gae_lambda: float = 0.95,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Generalised advantage estimation (Schulman et al., 2016) over T steps of N agents.

        error[t] = rewards[t] + gamma * next_values[t] * (1 - terminations[t]) - values[t]
        advantages[t] = error[t] + gamma * gae_lambda * (1 - ended[t]) * advantages[t + 1]

    where an episode has ended if it was terminated or truncated. Inputs are treated as constants: no gradient flows
    through them.

    >>> import torch
    >>> from doorstep.torch import generalized_advantages
    >>> rewards, values = torch.ones(3, 1), torch.zeros(3, 1)
    >>> terminations, truncations = torch.tensor([[False], [False], [True]]), torch.zeros(3, 1, dtype=torch.bool)
    >>> advantages, targets = generalized_advantages(
    ...     rewards, values, values, terminations, truncations, gamma=1.0, gae_lambda=1.0
    ... )
    >>> targets.ravel()
    tensor([3., 2., 1.])

    Args:
        rewards: float32 or float64 [T, ...], contiguous, as are all others. The entries of a step are independent.
        values: of the observations before each step.
        next_values: of the observations after it. Where an episode ended: of its final observation, not of the first
            one of the next episode.
        terminations: bool or uint8 [T, ...]: the episode ended, and the value of what follows is 0.
        truncations: bool or uint8 [T, ...]: the episode was cut off; next_values estimate what would have followed.
        gamma: what a reward is worth a step earlier, 0 to 1.
        gae_lambda: how much later errors count, 0 to 1: 0, only the next one; 1, all alike.

    Returns:
        The advantages, and the targets for the value function: advantages + values. Both like rewards.

    Raises:
        ArgumentError: a tensor has a wrong shape, dtype or device, or is not contiguous.
    """
    tensors = _by_step(
        rewards=rewards,
        values=values,
        next_values=next_values,
        terminations=terminations,
        truncations=truncations,
    )
    advantages, targets = torch.ops.doorstep.generalized_advantages(*tensors, gamma, gae_lambda)
    return advantages.reshape(rewards.shape), targets.reshape(rewards.shape)


def v_trace(
    log_ratios: torch.Tensor,
    rewards: torch.Tensor,
    values: torch.Tensor,
    next_values: torch.Tensor,
    terminations: torch.Tensor,
    truncations: torch.Tensor,
    *,
    gamma: float = 0.99,
    gae_lambda: float = 1.0,
    rho_clip: float = 1.0,
    c_clip: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """V-trace (Espeholt et al., 2018, equation 1) over T steps of N agents.

        error[t] = rho[t] * (rewards[t] + gamma * next_values[t] * (1 - terminations[t]) - values[t])
        targets[t] = values[t] + error[t] + gamma * c[t] * (1 - ended[t]) * (targets[t + 1] - values[t + 1])

    with rho = min(rho_clip, ratio) and c = gae_lambda * min(c_clip, ratio). With ratios of 1 the targets
    are those of `generalized_advantages()`. Inputs are treated as constants: no gradient flows through them.

    >>> import torch
    >>> from doorstep.torch import v_trace
    >>> zeros, flags = torch.zeros(2, 1), torch.tensor([[False], [True]])
    >>> advantages, targets = v_trace(zeros, zeros + 1, zeros, zeros, flags, flags, gamma=0.5)
    >>> targets.ravel()
    tensor([1.5000, 1.0000])

    Args:
        log_ratios: float32 or float64 [T, ...]: log-probability of the action under the policy that learns, minus that
            under the policy that acted.
        rewards: this and the others as in `generalized_advantages()`.
        gae_lambda: the lambda of V-trace, 0 to 1.
        rho_clip: limit of the ratios that scale errors, at least 0; it decides which value function is the fixed point.
        c_clip: limit of the ratios that scale later errors, at least 0; it decides the speed of convergence.

    Returns:
        The advantages for the policy gradient: rho[t] * (rewards[t] + gamma * target of what followed - values[t]).
        And the targets for the value function.

    Raises:
        ArgumentError: a tensor has a wrong shape, dtype or device, or is not contiguous.
    """
    tensors = _by_step(
        log_ratios=log_ratios,
        rewards=rewards,
        values=values,
        next_values=next_values,
        terminations=terminations,
        truncations=truncations,
    )
    advantages, targets = torch.ops.doorstep.v_trace(*tensors, gamma, gae_lambda, rho_clip, c_clip)
    return advantages.reshape(rewards.shape), targets.reshape(rewards.shape)


def _by_step(**tensors: torch.Tensor) -> list[torch.Tensor]:
    """[T, ...] as [T, N], in place. Refuses shapes that differ now and would be equal after."""
    shape = None
    for name, tensor in tensors.items():
        check_is_tensor(name, tensor)
        shape = tensor.shape if shape is None else shape
        if tensor.dim() == 0:
            refuse_tensor(name, "of shape []", "of shape [T, ...]")
        if tensor.shape != shape:
            refuse_tensor(name, f"of shape {list(tensor.shape)}", f"of shape {list(shape)}, as the others are")
        check_contiguous(name, tensor)
    if len(shape or ()) == 2:
        return list(tensors.values())
    return [tensor.unsqueeze(1) if tensor.dim() == 1 else tensor.flatten(1) for tensor in tensors.values()]


# ---- Operators ----


@functools.lru_cache(maxsize=64)
def _call(operator: OperatorSpec, *numbers: float) -> TensorCall:
    function = OperatorFunction[operator.name.upper()]
    extent_fields = {"T": "num_steps", "N": "num_columns"}
    return TensorCall(function, advantages_struct(*numbers), operator.tensors(), {}, extent_fields)


def _estimate(operator: OperatorSpec, *arguments: Any) -> Pair:
    tensors, numbers = operator.split(arguments)
    results = torch.empty_like(tensors[0]), torch.empty_like(tensors[0])
    if tensors[0].is_cuda:
        prepare_once(prepare_training, tensors[0].get_device())
    operator.run(_call(operator, *numbers), (*tensors, *results))
    return results


def _estimate_fake(operator: OperatorSpec, *arguments: Any) -> Pair:
    tensors, _ = operator.split(arguments)
    operator.check(tensors)
    return torch.empty_like(tensors[0]), torch.empty_like(tensors[0])


def _outputs_are_constants(ctx: Any, inputs: Any, output: Pair) -> None:
    ctx.mark_non_differentiable(*output)


def _no_gradients(ctx: Any, *gradients: Any) -> tuple[None, ...]:
    return (None,) * len(ctx.needs_input_grad)


for spec in (GENERALIZED_ADVANTAGES, V_TRACE):
    kernel, fake = functools.partial(_estimate, spec), functools.partial(_estimate_fake, spec)
    define(spec, kernel, fake, _outputs_are_constants, _no_gradients)
