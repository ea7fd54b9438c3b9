"""The training kernels as operators of PyTorch: `torch.ops.doorstep.*`, for eager and compiled programs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from operator import index
from typing import Any, NoReturn

import torch

from doorstep._arguments import refuse
from doorstep._native._generated import MAX_ACTION_COMPONENTS, OperatorFunction
from doorstep._native.training import TensorCall, advantages_struct, multi_discrete_struct, prepare_training
from doorstep.torch._library import define, prepare_once
from doorstep.torch._operands import Access, Operand, Operator

Pair = tuple[torch.Tensor, torch.Tensor]
Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

MAX_CHOICES = 2**31 - 1
STEPS = ("T", "N")
ESTIMATES = (
    Operand("rewards", "float", STEPS),
    Operand("values", "float", STEPS),
    Operand("next_values", "float", STEPS),
    Operand("terminations", "flag", STEPS),
    Operand("truncations", "flag", STEPS),
)
ESTIMATED = (Operand("advantages", "float", STEPS, Access.WRITE), Operand("targets", "float", STEPS, Access.WRITE))
GENERALIZED_ADVANTAGES = Operator("generalized_advantages", ESTIMATES, ESTIMATED, "float discount, float trace_decay")
V_TRACE = Operator(
    "v_trace",
    (Operand("log_ratios", "float", STEPS), *ESTIMATES),
    ESTIMATED,
    "float discount, float trace_decay, float rho_clip, float c_clip",
)

LOGITS = Operand("logits", "float", ("B", "S"))
ACTIONS = Operand("actions", "int32", ("B", "K"))
PER_ROW = (
    Operand("log_probabilities", "float", ("B",), Access.WRITE),
    Operand("entropies", "float", ("B",), Access.WRITE),
)
SIZES = "int[] sizes"
MULTI_DISCRETE_SAMPLE = Operator(
    "multi_discrete_sample",
    (LOGITS, Operand("uniforms", "float", ("B", "K"))),
    (*PER_ROW, Operand("actions", "int32", ("B", "K"), Access.WRITE)),
    SIZES,
)
MULTI_DISCRETE_EVALUATE = Operator("multi_discrete_evaluate", (LOGITS, ACTIONS), PER_ROW, SIZES)
MULTI_DISCRETE_BACKWARD = Operator(
    "multi_discrete_backward",
    (
        LOGITS,
        ACTIONS,
        Operand("log_probability_gradients", "float", ("B",)),
        Operand("entropy_gradients", "float", ("B",)),
    ),
    (Operand("logit_gradients", "float", ("B", "S"), Access.WRITE),),
    SIZES,
)


def _prepare(tensor: torch.Tensor) -> None:
    if tensor.is_cuda:
        prepare_once(prepare_training, tensor.get_device())


# ---- Advantages


@functools.lru_cache(maxsize=64)
def _estimate_call(operator: Operator, discount: float, decay: float, rho_clip: float, c_clip: float) -> TensorCall:
    call = advantages_struct(discount, decay, rho_clip, c_clip)
    function = OperatorFunction[operator.name.upper()]
    return TensorCall(function, call, operator.rows(), {}, {"T": "num_steps", "N": "num_columns"})


def _estimate(
    operator: Operator,
    tensors: Sequence[torch.Tensor],
    discount: float,
    decay: float,
    rho_clip: float = 0.0,
    c_clip: float = 0.0,
) -> Pair:
    results = torch.empty_like(tensors[0]), torch.empty_like(tensors[0])
    _prepare(tensors[0])
    operator.run(_estimate_call(operator, discount, decay, rho_clip, c_clip), (*tensors, *results))
    return results


def _generalized_advantages(
    rewards: torch.Tensor,
    values: torch.Tensor,
    next_values: torch.Tensor,
    terminations: torch.Tensor,
    truncations: torch.Tensor,
    discount: float,
    trace_decay: float,
) -> Pair:
    tensors = (rewards, values, next_values, terminations, truncations)
    return _estimate(GENERALIZED_ADVANTAGES, tensors, discount, trace_decay)


def _v_trace(
    log_ratios: torch.Tensor,
    rewards: torch.Tensor,
    values: torch.Tensor,
    next_values: torch.Tensor,
    terminations: torch.Tensor,
    truncations: torch.Tensor,
    discount: float,
    trace_decay: float,
    rho_clip: float,
    c_clip: float,
) -> Pair:
    tensors = (log_ratios, rewards, values, next_values, terminations, truncations)
    return _estimate(V_TRACE, tensors, discount, trace_decay, rho_clip, c_clip)


def _estimate_fake(operator: Operator, *arguments: Any) -> Pair:
    operator.check(arguments[: len(operator.operands)])
    return torch.empty_like(arguments[0]), torch.empty_like(arguments[0])


def _outputs_are_constants(ctx: Any, inputs: Any, output: Pair) -> None:
    ctx.mark_non_differentiable(*output)


def _no_gradients(ctx: Any, *gradients: Any) -> tuple[None, ...]:
    return (None,) * len(ctx.needs_input_grad)


# ---- Multi-discrete actions


def check_sizes(sizes: Sequence[int]) -> list[int]:
    """Numbers of choices."""
    requirement = f"a list of 1 to {MAX_ACTION_COMPONENTS} numbers of choices"
    try:
        numbers = [index(size) for size in sizes]
    except TypeError:
        refuse("sizes", requirement, sizes)
    if not 1 <= len(numbers) <= MAX_ACTION_COMPONENTS:
        refuse("sizes", requirement, sizes)
    if not 1 <= min(numbers) <= max(numbers) <= MAX_CHOICES:
        refuse("sizes", f"numbers of choices, 1 to {MAX_CHOICES}", sizes)
    return numbers


@functools.lru_cache(maxsize=64)
def _extents(sizes: tuple[int, ...]) -> dict[str, int]:
    check_sizes(sizes)
    return {"S": sum(sizes), "K": len(sizes)}


@functools.lru_cache(maxsize=64)
def _multi_discrete_call(operator: Operator, sizes: tuple[int, ...]) -> TensorCall:
    extents = _extents(sizes)
    call = multi_discrete_struct(sizes)
    return TensorCall(OperatorFunction[operator.name.upper()], call, operator.rows(), extents, {"B": "num_rows"})


def _run(operator: Operator, tensors: Sequence[torch.Tensor], sizes: Sequence[int]) -> None:
    _prepare(tensors[0])
    numbers = tuple(sizes)
    operator.run(_multi_discrete_call(operator, numbers), tensors, **_extents(numbers))


def _per_row(logits: torch.Tensor) -> Pair:
    rows = logits.shape[:1]
    return logits.new_empty(rows), logits.new_empty(rows)


def _multi_discrete_sample(logits: torch.Tensor, uniforms: torch.Tensor, sizes: Sequence[int]) -> Triple:
    results = (*_per_row(logits), torch.empty_like(uniforms, dtype=torch.int32))
    _run(MULTI_DISCRETE_SAMPLE, (logits, uniforms, *results), sizes)
    return results


def _multi_discrete_evaluate(logits: torch.Tensor, actions: torch.Tensor, sizes: Sequence[int]) -> Pair:
    results = _per_row(logits)
    _run(MULTI_DISCRETE_EVALUATE, (logits, actions, *results), sizes)
    return results


def _multi_discrete_backward(
    logits: torch.Tensor,
    actions: torch.Tensor,
    log_probability_gradients: torch.Tensor,
    entropy_gradients: torch.Tensor,
    sizes: Sequence[int],
) -> torch.Tensor:
    gradients = torch.empty_like(logits)
    tensors = (logits, actions, log_probability_gradients, entropy_gradients, gradients)
    _run(MULTI_DISCRETE_BACKWARD, tensors, sizes)
    return gradients


def _sample_fake(logits: torch.Tensor, uniforms: torch.Tensor, sizes: Sequence[int]) -> Triple:
    MULTI_DISCRETE_SAMPLE.check((logits, uniforms), **_extents(tuple(sizes)))
    return *_per_row(logits), torch.empty_like(uniforms, dtype=torch.int32)


def _evaluate_fake(logits: torch.Tensor, actions: torch.Tensor, sizes: Sequence[int]) -> Pair:
    MULTI_DISCRETE_EVALUATE.check((logits, actions), **_extents(tuple(sizes)))
    return _per_row(logits)


def _backward_fake(logits: torch.Tensor, *arguments: Any) -> torch.Tensor:
    MULTI_DISCRETE_BACKWARD.check((logits, *arguments[:3]), **_extents(tuple(arguments[3])))
    return torch.empty_like(logits)


def _keep_for_sample(ctx: Any, inputs: Any, output: Any) -> None:
    logits, _, ctx.sizes = inputs
    ctx.save_for_backward(logits, output[2])
    ctx.mark_non_differentiable(output[2])


def _keep_for_evaluate(ctx: Any, inputs: Any, output: Any) -> None:
    logits, actions, ctx.sizes = inputs
    ctx.save_for_backward(logits, actions)


def _logit_gradients(ctx: Any, log_probability: torch.Tensor, entropy: torch.Tensor) -> tuple[Any, ...]:
    logits, actions = ctx.saved_tensors
    gradients = torch.ops.doorstep.multi_discrete_backward(
        logits, actions, log_probability.contiguous(), entropy.contiguous(), ctx.sizes
    )
    return gradients, None, None


def _sample_gradients(ctx: Any, log_probability: torch.Tensor, entropy: torch.Tensor, _: Any) -> tuple[Any, ...]:
    return _logit_gradients(ctx, log_probability, entropy)


def _keep_nothing(ctx: Any, inputs: Any, output: Any) -> None:
    pass


def _no_second_derivative(ctx: Any, gradients: torch.Tensor) -> NoReturn:
    raise NotImplementedError(
        "multi-discrete log-probabilities and entropies can be differentiated once; for second derivatives use "
        "torch.distributions.Categorical"
    )


define(
    GENERALIZED_ADVANTAGES,
    _generalized_advantages,
    functools.partial(_estimate_fake, GENERALIZED_ADVANTAGES),
    _outputs_are_constants,
    _no_gradients,
)
define(V_TRACE, _v_trace, functools.partial(_estimate_fake, V_TRACE), _outputs_are_constants, _no_gradients)
define(MULTI_DISCRETE_SAMPLE, _multi_discrete_sample, _sample_fake, _keep_for_sample, _sample_gradients)
define(MULTI_DISCRETE_EVALUATE, _multi_discrete_evaluate, _evaluate_fake, _keep_for_evaluate, _logit_gradients)
define(MULTI_DISCRETE_BACKWARD, _multi_discrete_backward, _backward_fake, _keep_nothing, _no_second_derivative)
