"""GAE and V-trace against sums over whole episodes in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.pkg.torch import references

import doorstep

torch = pytest.importorskip("torch")

from doorstep.torch import generalized_advantages, v_trace  # noqa: E402

DTYPES = [torch.float32, torch.float64]
TOLERANCES = {torch.float32: 2e-5, torch.float64: 1e-13}


def steps(dtype: Any, num_steps: int = 23, num_columns: int = 37, seed: int = 0) -> list[Any]:
    """Rewards, values, next values, terminations, truncations, log-ratios; a tenth of the steps end an episode."""
    generator = torch.Generator().manual_seed(seed)
    numbers = [torch.randn(num_steps, num_columns, generator=generator, dtype=dtype) for _ in range(4)]
    flags = [torch.rand(num_steps, num_columns, generator=generator) < 0.05 for _ in range(2)]
    return [*numbers[:3], *flags, numbers[3]]


def numpy_of(tensors: list[Any]) -> list[Any]:
    return [tensor.numpy().astype(bool if tensor.dtype == torch.bool else np.float64) for tensor in tensors]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (23, 37), (7, 600)])
def test_generalized_advantages_are_the_sums_of_the_paper(dtype: Any, shape: tuple[int, int]) -> None:
    inputs = steps(dtype, *shape)[:5]
    advantages, targets = generalized_advantages(*inputs, gamma=0.97, gae_lambda=0.9)
    expected = references.generalized_advantages(*numpy_of(inputs), gamma=0.97, lam=0.9)
    np.testing.assert_allclose(advantages.numpy(), expected, rtol=0, atol=TOLERANCES[dtype])
    assert torch.equal(targets, advantages + inputs[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rho_clip", "c_clip"), [(1.0, 1.0), (2.0, 0.7), (0.0, 0.0)])
def test_v_trace_is_the_sum_of_the_paper(dtype: Any, rho_clip: float, c_clip: float) -> None:
    *inputs, log_ratios = steps(dtype)
    found = v_trace(log_ratios, *inputs, gamma=0.97, gae_lambda=0.9, rho_clip=rho_clip, c_clip=c_clip)
    expected = references.v_trace(
        *numpy_of([log_ratios, *inputs]), gamma=0.97, lam=0.9, rho_clip=rho_clip, c_clip=c_clip
    )
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), wanted, rtol=0, atol=TOLERANCES[dtype])


def test_v_trace_of_the_acting_policy_has_the_targets_of_generalized_advantages() -> None:
    inputs = steps(torch.float64)[:5]
    _, targets = v_trace(torch.zeros_like(inputs[0]), *inputs, gae_lambda=0.95)
    _, expected = generalized_advantages(*inputs, gae_lambda=0.95)
    torch.testing.assert_close(targets, expected, rtol=0, atol=1e-13)


def test_a_termination_hides_what_follows_whatever_it_is() -> None:
    rewards, values, next_values, terminations, truncations, log_ratios = steps(torch.float32)
    terminations[5], truncations[:] = True, False
    before = generalized_advantages(rewards, values, next_values, terminations, truncations)
    next_values[5], rewards[6:], values[6:] = float("nan"), float("inf"), float("nan")
    after = generalized_advantages(rewards, values, next_values, terminations, truncations)
    corrected = v_trace(log_ratios, rewards, values, next_values, terminations, truncations)
    for found, expected in zip(after, before, strict=True):
        assert torch.equal(found[:6], expected[:6])
    assert all(found[:6].isfinite().all() for found in corrected)


def test_a_truncation_keeps_the_value_of_what_might_have_followed() -> None:
    zeros, flags = torch.zeros(3, 1), torch.zeros(3, 1, dtype=torch.bool)
    truncations = torch.tensor([[False], [True], [False]])
    next_values = torch.tensor([[0.0], [8.0], [0.0]])
    advantages, _ = generalized_advantages(zeros, zeros, next_values, flags, truncations, gamma=0.5, gae_lambda=1.0)
    assert advantages.ravel().tolist() == [2.0, 4.0, 0.0]


@pytest.mark.parametrize("shape", [(23,), (23, 5, 2), (23, 4, 2, 1)])
def test_steps_may_have_any_shape(shape: tuple[int, ...]) -> None:
    inputs = [tensor[:, : int(np.prod(shape[1:]))].contiguous() for tensor in steps(torch.float32)[:5]]
    expected = generalized_advantages(*inputs)
    found = generalized_advantages(*(tensor.reshape(shape) for tensor in inputs))
    for one, other in zip(found, expected, strict=True):
        assert one.shape == shape
        assert torch.equal(one.reshape(other.shape), other)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_nothing_gives_nothing(shape: tuple[int, int]) -> None:
    numbers, flags = torch.zeros(shape), torch.zeros(shape, dtype=torch.bool)
    for result in generalized_advantages(numbers, numbers, numbers, flags, flags):
        assert result.shape == shape


def test_flags_may_be_bytes_of_a_simulator() -> None:
    inputs = steps(torch.float32)[:5]
    expected = generalized_advantages(*inputs)
    bytes_ = [flags.to(torch.uint8) * 3 for flags in inputs[3:]]
    for found, wanted in zip(generalized_advantages(*inputs[:3], *bytes_), expected, strict=True):
        assert torch.equal(found, wanted)


def test_columns_do_not_depend_on_each_other() -> None:
    *inputs, log_ratios = steps(torch.float32, num_columns=700)
    whole = v_trace(log_ratios, *inputs)
    parts = [v_trace(*(t[:, part].contiguous() for t in (log_ratios, *inputs))) for part in (slice(99), slice(99, 700))]
    for index, expected in enumerate(whole):
        assert torch.equal(torch.cat([part[index] for part in parts], dim=1), expected)


def test_inputs_are_constants() -> None:
    inputs = steps(torch.float32)[:5]
    inputs[1].requires_grad_()
    for result in generalized_advantages(*inputs):
        assert not result.requires_grad


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda tensor: tensor.transpose(1, 2).contiguous(), r"of shape \[4, 2, 3\]"),
        (lambda tensor: tensor.flatten(1), r"of shape \[4, 6\]"),
        (lambda tensor: tensor.transpose(1, 2).contiguous().transpose(1, 2), "not contiguous"),
        (lambda tensor: tensor[0, 0, 0], r"of shape \[\]"),
        (lambda tensor: tensor.tolist(), "list"),
    ],
)
def test_tensors_that_do_not_lie_alike_are_refused(place: int, spoil: Any, found: str) -> None:
    names = ("rewards", "values", "next_values", "terminations", "truncations")
    inputs = [tensor.reshape(4, 3, 2) for tensor in steps(torch.float32, 4, 6)[:5]]
    inputs[place] = spoil(inputs[place])
    expected = f"{names[place]} is {found}"
    if place == 0 and found.startswith("of shape") and inputs[0].dim():
        expected = "values is of shape"  # the first one says what the others must be
    with pytest.raises(doorstep.ArgumentError, match=expected):
        generalized_advantages(*inputs)
    with pytest.raises(doorstep.ArgumentError, match=f"{names[place]} is {found}"):
        v_trace(torch.zeros(4, 3, 2), *inputs)
