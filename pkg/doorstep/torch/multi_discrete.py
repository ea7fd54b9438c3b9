"""Actions of several independent components: drawn, evaluated and differentiated by one fused kernel each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, NoReturn

import torch

from doorstep._arguments import refuse
from doorstep._native._generated import MAX_ACTION_COMPONENTS, OperatorFunction
from doorstep._native.tensor_calls import (
    OperandAccess,
    TensorCall,
    TensorSpec,
    multi_discrete_struct,
    prepare_training,
)
from doorstep._tensors.checks import refuse_tensor
from doorstep.torch._operators import OperatorSpec, check_is_tensor, define, prepare_once

MakeResults = Callable[..., tuple[torch.Tensor, ...]]  # of the operator's inputs

MAX_CHOICES = 2**31 - 1

LOGITS = TensorSpec("logits", "float", ("B", "S"))
ACTIONS = TensorSpec("actions", "int32", ("B", "K"))
PER_ROW = (
    TensorSpec("log_probabilities", "float", ("B",), OperandAccess.WRITE),
    TensorSpec("entropies", "float", ("B",), OperandAccess.WRITE),
)
SIZES = "int[] sizes"
MULTI_DISCRETE_SAMPLE = OperatorSpec(
    "multi_discrete_sample",
    (LOGITS, TensorSpec("uniforms", "float", ("B", "K"))),
    (*PER_ROW, TensorSpec("actions", "int32", ("B", "K"), OperandAccess.WRITE)),
    SIZES,
)
MULTI_DISCRETE_EVALUATE = OperatorSpec("multi_discrete_evaluate", (LOGITS, ACTIONS), PER_ROW, SIZES)
MULTI_DISCRETE_BACKWARD = OperatorSpec(
    "multi_discrete_backward",
    (
        LOGITS,
        ACTIONS,
        TensorSpec("log_probability_gradients", "float", ("B",)),
        TensorSpec("entropy_gradients", "float", ("B",)),
    ),
    (TensorSpec("logit_gradients", "float", ("B", "S"), OperandAccess.WRITE),),
    SIZES,
)


def multi_discrete_sample(
    logits: torch.Tensor,
    sizes: Sequence[int],
    generator: torch.Generator | None = None,
    *,
    uniforms: torch.Tensor | None = None,
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
        logits: float32 or float64 [B, sum(sizes)], contiguous: the components side by side. Minus infinity excludes a
            choice.
        sizes: number of choices of each component, 1 to 16 of them.
        generator: of the logits' device; None: PyTorch's default generator.
        uniforms: random numbers [B, len(sizes)] in [0, 1), contiguous, of the logits' dtype and device. None: drawn
            from the generator.

    Returns:
        Actions, int32 [B, len(sizes)]; their log-probabilities and the entropies, both [B], summed over the components.
        The latter two can be differentiated once with respect to the logits, with the actions as constants. They are
        NaN where a row has a NaN, or a component all of whose choices are excluded.

    Raises:
        ArgumentError: logits or uniforms have a wrong shape or dtype, or are not contiguous; sizes are not 1 to 16
            positive integers; generator and uniforms are both given.
    """
    check_is_tensor("logits", logits)
    if logits.dim() != 2:
        refuse_tensor("logits", f"of shape {list(logits.shape)}", "of shape [B, S]")
    sizes = check_sizes(sizes)
    if not isinstance(generator, (torch.Generator, type(None))):
        refuse("generator", "None or a torch.Generator", generator)
    if uniforms is None:
        dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32  # others are refused below
        uniforms = torch.rand(logits.shape[0], len(sizes), generator=generator, dtype=dtype, device=logits.device)
    elif generator is not None:
        refuse("generator", "None where uniforms are given", generator)
    check_is_tensor("uniforms", uniforms)
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
        ArgumentError: a tensor has a wrong shape, dtype or device, or is not contiguous; on the CPU, an action is out
            of range. On a GPU actions are not validated: the log-probability of one out of range is NaN.
    """
    check_is_tensor("logits", logits)
    check_is_tensor("actions", actions)
    log_probabilities, entropies = torch.ops.doorstep.multi_discrete_evaluate(logits, actions, check_sizes(sizes))
    return log_probabilities, entropies


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


# ---- Operators ----


@functools.lru_cache(maxsize=64)
def _extents(sizes: tuple[int, ...]) -> dict[str, int]:
    check_sizes(sizes)
    return {"S": sum(sizes), "K": len(sizes)}


@functools.lru_cache(maxsize=64)
def _call(operator: OperatorSpec, sizes: tuple[int, ...]) -> TensorCall:
    function, extents = OperatorFunction[operator.name.upper()], _extents(sizes)
    return TensorCall(function, multi_discrete_struct(sizes), operator.tensors(), extents, {"B": "num_rows"})


def _run(operator: OperatorSpec, make_results: MakeResults, *arguments: Any) -> Any:
    tensors, (sizes,) = operator.split(arguments)
    numbers, results = tuple(sizes), make_results(*tensors)
    if tensors[0].is_cuda:
        prepare_once(prepare_training, tensors[0].get_device())
    operator.run(_call(operator, numbers), (*tensors, *results), **_extents(numbers))
    return results if len(results) > 1 else results[0]


def _run_fake(operator: OperatorSpec, make_results: MakeResults, *arguments: Any) -> Any:
    tensors, (sizes,) = operator.split(arguments)
    operator.check(tensors, **_extents(tuple(sizes)))
    results = make_results(*tensors)
    return results if len(results) > 1 else results[0]


def _sampled(logits: torch.Tensor, uniforms: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return *_evaluated(logits), torch.empty_like(uniforms, dtype=torch.int32)


def _evaluated(logits: torch.Tensor, *_: torch.Tensor) -> tuple[torch.Tensor, ...]:
    rows = logits.shape[:1]
    return logits.new_empty(rows), logits.new_empty(rows)


def _differentiated(logits: torch.Tensor, *_: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (torch.empty_like(logits),)


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


for spec, make, keep, backward in (
    (MULTI_DISCRETE_SAMPLE, _sampled, _keep_for_sample, _sample_gradients),
    (MULTI_DISCRETE_EVALUATE, _evaluated, _keep_for_evaluate, _logit_gradients),
    (MULTI_DISCRETE_BACKWARD, _differentiated, _keep_nothing, _no_second_derivative),
):
    define(spec, functools.partial(_run, spec, make), functools.partial(_run_fake, spec, make), keep, backward)
