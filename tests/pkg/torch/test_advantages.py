"""GAE and V-trace against sums over whole episodes in double precision."""

import numpy as np
import pytest
from tests.pkg.torch import references
from tests.refuses import refuses

torch = pytest.importorskip("torch")

from doorstep.torch import generalized_advantages, v_trace  # noqa: E402

TOLERANCES = {torch.float32: 2e-5, torch.float64: 1e-13}


def steps(dtype=torch.float32, num_steps=23, num_columns=37):
    """Rewards, values, next values, terminations, truncations, log-ratios; a tenth of the steps end an episode."""
    generator = torch.Generator().manual_seed(0)
    numbers = [torch.randn(num_steps, num_columns, generator=generator, dtype=dtype) for _ in range(4)]
    flags = [torch.rand(num_steps, num_columns, generator=generator) < 0.05 for _ in range(2)]
    return [*numbers[:3], *flags, numbers[3]]


def numpy_of(tensors):
    return [tensor.numpy().astype(bool if tensor.dtype == torch.bool else np.float64) for tensor in tensors]


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_advantages_and_targets_are_the_sums_of_the_papers(dtype):
    """Also where a column is one of many, and a step has other dimensions."""
    for shape in ((1, 1), (23, 37), (7, 600)):
        *inputs, log_ratios = steps(dtype, *shape)
        advantages, targets = generalized_advantages(*inputs, gamma=0.97, gae_lambda=0.9)
        expected = references.generalized_advantages(*numpy_of(inputs), gamma=0.97, lam=0.9)
        np.testing.assert_allclose(advantages.numpy(), expected, rtol=0, atol=TOLERANCES[dtype])
        assert torch.equal(targets, advantages + inputs[1])
        if shape[1] == 600:
            continue
        for rho, c in ((1.0, 1.0), (2.0, 0.7), (0.0, 0.0)):
            found = v_trace(log_ratios, *inputs, gamma=0.97, gae_lambda=0.9, rho_clip=rho, c_clip=c)
            arrays = numpy_of([log_ratios, *inputs])
            expected = references.v_trace(*arrays, gamma=0.97, lam=0.9, rho_clip=rho, c_clip=c)
            for one, wanted in zip(found, expected, strict=True):
                np.testing.assert_allclose(one.numpy(), wanted, rtol=0, atol=TOLERANCES[dtype])


def test_an_end_hides_what_follows_and_a_termination_also_the_value_of_what_might_have_followed():
    """What follows may be numbers that are none: nothing of it is multiplied by 0."""
    for is_termination in (True, False):
        *inputs, log_ratios = steps()
        rewards, values, next_values, terminations, truncations = inputs
        terminations[:], truncations[:] = False, False
        (terminations if is_termination else truncations)[5] = True
        before = *generalized_advantages(*inputs), *v_trace(log_ratios, *inputs)
        rewards[6:], values[6:], next_values[6:] = float("inf"), float("nan"), float("nan")
        if is_termination:
            next_values[5] = float("nan")
        after = *generalized_advantages(*inputs), *v_trace(log_ratios, *inputs)
        assert all(torch.equal(found[:6], expected[:6]) for found, expected in zip(after, before, strict=True))


def test_steps_may_have_any_shape():
    inputs = steps()[:5]
    for shape in ((23,), (23, 4, 2, 1)):
        few = [tensor[:, : int(np.prod(shape[1:]))].contiguous() for tensor in inputs]
        found = generalized_advantages(*(tensor.reshape(shape) for tensor in few))
        for one, other in zip(found, generalized_advantages(*few), strict=True):
            assert one.shape == shape
            assert torch.equal(one.reshape(other.shape), other)
    for shape in ((0, 5), (5, 0)):
        numbers, flags = torch.zeros(shape), torch.zeros(shape, dtype=torch.bool)
        assert all(one.shape == shape for one in generalized_advantages(numbers, numbers, numbers, flags, flags))


def test_flags_may_be_bytes_of_a_simulator_and_inputs_are_constants():
    inputs = steps()[:5]
    expected = generalized_advantages(*inputs)
    inputs[1].requires_grad_()
    bytes_ = [flags.to(torch.uint8) * 3 for flags in inputs[3:]]
    for found, wanted in zip(generalized_advantages(*inputs[:3], *bytes_), expected, strict=True):
        assert torch.equal(found, wanted)
        assert not found.requires_grad


SPOILT = [
    (lambda tensor: tensor.flatten(1), r"of shape \[4, 6\]"),
    (lambda tensor: tensor.transpose(1, 2).contiguous().transpose(1, 2), r"not contiguous.*\.contiguous\(\)"),
    (lambda tensor: tensor.tolist(), "list"),
    (lambda tensor: tensor.to(torch.complex64), "torch.complex64"),
    (lambda tensor: tensor.to(torch.float16), r"torch.float16.*\.float\(\).*autocast"),
    (lambda tensor: tensor.to(torch.int64), r"torch.int64; it must be .* \(convert it with \.to\(torch\."),
]


def test_tensors_that_do_not_lie_alike_are_refused():
    for place, name in enumerate(("rewards", "values", "next_values", "terminations", "truncations")):
        for spoil, found in SPOILT:
            inputs = [tensor.reshape(4, 3, 2) for tensor in steps(num_steps=4, num_columns=6)[:5]]
            inputs[place] = spoil(inputs[place])
            # of shapes the first one says what the others must be
            expected = "values is of shape" if place == 0 and found.startswith("of shape") else f"{name} is {found}"
            refuses(expected, generalized_advantages, *inputs)
            refuses(f"{name} is {found}", v_trace, torch.zeros(4, 3, 2), *inputs)
    inputs = steps()[:5]
    of_doubles = [inputs[0], inputs[1].double(), *inputs[2:]]
    refuses("values is torch.float64; it must be torch.float32", generalized_advantages, *of_doubles)
    for name, value in (("gamma", 1.5), ("gamma", float("nan")), ("gae_lambda", -0.1)):
        refuses(f"{name} is", generalized_advantages, *inputs, **{name: value})
