"""The training kernels as operators of PyTorch: `torch.ops.doorstep.*`, for eager and compiled programs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NoReturn

import torch

from doorstep._arguments import refuse
from doorstep._native._generated import MAX_ACTION_COMPONENTS, DeviceKind
from doorstep._native.training import Place, estimate_advantages, prepare_training, run_multi_discrete
from doorstep.torch._library import define, prepare_once
from doorstep.torch._operands import NATIVE_DTYPES, Operand, Operator

Pair = tuple[torch.Tensor, torch.Tensor]

STEPS = ("T", "N")
ESTIMATES = (
    Operand("rewards", "float", STEPS),
    Operand("values", "float", STEPS),
    Operand("next_values", "float", STEPS),
    Operand("terminations", "flag", STEPS),
    Operand("truncations", "flag", STEPS),
)
GENERALIZED_ADVANTAGES = Operator(
    "generalized_advantages", ESTIMATES, "float discount, float trace_decay", "(Tensor, Tensor)"
)
V_TRACE = Operator(
    "v_trace",
    (Operand("log_ratios", "float", STEPS), *ESTIMATES),
    "float discount, float trace_decay, float rho_clip, float c_clip",
    "(Tensor, Tensor)",
)

LOGITS = Operand("logits", "float", ("B", "S"))
ACTIONS = Operand("actions", "int32", ("B", "K"))
MULTI_DISCRETE_SAMPLE = Operator(
    "multi_discrete_sample",
    (LOGITS, Operand("uniforms", "float", ("B", "K"))),
    "int[] sizes",
    "(Tensor, Tensor, Tensor)",
)
MULTI_DISCRETE_EVALUATE = Operator("multi_discrete_evaluate", (LOGITS, ACTIONS), "int[] sizes", "(Tensor, Tensor)")
MULTI_DISCRETE_BACKWARD = Operator(
    "multi_discrete_backward",
    (
        LOGITS,
        ACTIONS,
        Operand("log_probability_gradients", "float", ("B",)),
        Operand("entropy_gradients", "float", ("B",)),
    ),
    "int[] sizes",
    "Tensor",
)


def _prepared(place: Place) -> Place:
    if place.device_kind is DeviceKind.CUDA:
        prepare_once(prepare_training, place.device_index)
    return place


# ---- Advantages


def _estimate(operator: Operator, tensors: Sequence[torch.Tensor], **numbers: float) -> Pair:
    operands = operator.read(tensors)
    advantages, targets = torch.empty_like(tensors[0]), torch.empty_like(tensors[0])
    addresses = {**operands.addresses, "advantages": advantages.data_ptr(), "targets": targets.data_ptr()}
    extents = operands.extents["T"], operands.extents["N"]
    dtype = NATIVE_DTYPES[tensors[0].dtype]
    estimate_advantages(f"ds_{operator.name}", _prepared(operands.place), dtype, extents, addresses, numbers)
    return advantages, targets


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
    return _estimate(GENERALIZED_ADVANTAGES, tensors, discount=discount, **{"lambda": trace_decay})


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
    clips = {"rho_clip": rho_clip, "c_clip": c_clip, "lambda": trace_decay}
    return _estimate(V_TRACE, tensors, discount=discount, **clips)


def _estimate_fake(operator: Operator, *arguments: Any) -> Pair:
    operator.check(arguments[: len(operator.operands)])
    return torch.empty_like(arguments[0]), torch.empty_like(arguments[0])


def _outputs_are_constants(ctx: Any, inputs: Any, output: Pair) -> None:
    ctx.mark_non_differentiable(*output)


def _no_gradients(ctx: Any, *gradients: Any) -> tuple[None, ...]:
    return (None,) * len(ctx.needs_input_grad)


# ---- Multi-discrete actions


def _extents(sizes: Sequence[int]) -> dict[str, int]:
    if not 1 <= len(sizes) <= MAX_ACTION_COMPONENTS:
        refuse("sizes", f"a list of 1 to {MAX_ACTION_COMPONENTS} numbers of choices", sizes)
    if min(sizes) < 1:
        refuse("sizes", "numbers of choices, each at least 1", sizes)
    return {"S": sum(sizes), "K": len(sizes)}


def _run(
    operator: Operator, tensors: Sequence[torch.Tensor], sizes: Sequence[int], results: dict[str, torch.Tensor]
) -> None:
    operands = operator.read(tensors, **_extents(sizes))
    written = {name: result.data_ptr() for name, result in results.items()}
    run_multi_discrete(
        f"ds_{operator.name}",
        _prepared(operands.place),
        NATIVE_DTYPES[tensors[0].dtype],
        operands.extents["B"],
        sizes,
        operands.addresses | written,
    )


def _per_row(logits: torch.Tensor) -> Pair:
    return logits.new_empty(logits.shape[0]), logits.new_empty(logits.shape[0])


def _multi_discrete_sample(
    logits: torch.Tensor, uniforms: torch.Tensor, sizes: Sequence[int]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    MULTI_DISCRETE_SAMPLE.check((logits, uniforms), **_extents(sizes))
    actions = torch.empty_like(uniforms, dtype=torch.int32)
    log_probabilities, entropies = _per_row(logits)
    results = {"actions": actions, "log_probabilities": log_probabilities, "entropies": entropies}
    _run(MULTI_DISCRETE_SAMPLE, (logits, uniforms), sizes, results)
    return log_probabilities, entropies, actions


def _multi_discrete_evaluate(logits: torch.Tensor, actions: torch.Tensor, sizes: Sequence[int]) -> Pair:
    MULTI_DISCRETE_EVALUATE.check((logits, actions), **_extents(sizes))
    log_probabilities, entropies = _per_row(logits)
    results = {"log_probabilities": log_probabilities, "entropies": entropies}
    _run(MULTI_DISCRETE_EVALUATE, (logits, actions), sizes, results)
    return log_probabilities, entropies


def _multi_discrete_backward(
    logits: torch.Tensor,
    actions: torch.Tensor,
    log_probability_gradients: torch.Tensor,
    entropy_gradients: torch.Tensor,
    sizes: Sequence[int],
) -> torch.Tensor:
    tensors = (logits, actions, log_probability_gradients, entropy_gradients)
    MULTI_DISCRETE_BACKWARD.check(tensors, **_extents(sizes))
    gradients = torch.empty_like(logits)
    _run(MULTI_DISCRETE_BACKWARD, tensors, sizes, {"logit_gradients": gradients})
    return gradients


def _sample_fake(
    logits: torch.Tensor, uniforms: torch.Tensor, sizes: Sequence[int]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    MULTI_DISCRETE_SAMPLE.check((logits, uniforms), **_extents(sizes))
    return *_per_row(logits), torch.empty_like(uniforms, dtype=torch.int32)


def _evaluate_fake(logits: torch.Tensor, actions: torch.Tensor, sizes: Sequence[int]) -> Pair:
    MULTI_DISCRETE_EVALUATE.check((logits, actions), **_extents(sizes))
    return _per_row(logits)


def _backward_fake(logits: torch.Tensor, *arguments: Any) -> torch.Tensor:
    MULTI_DISCRETE_BACKWARD.check((logits, *arguments[:3]), **_extents(arguments[3]))
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
