"""Multi-discrete actions against torch.distributions.Categorical in double precision, and by their statistics."""

from __future__ import annotations

from typing import Any

import pytest

import doorstep

torch = pytest.importorskip("torch")

from doorstep.torch import multi_discrete_evaluate, multi_discrete_sample  # noqa: E402

SIZES = doorstep.ACTIONS
DTYPES = [torch.float32, torch.float64]
TOLERANCES = {torch.float32: 3e-6, torch.float64: 1e-13}
MINUS_INFINITY = float("-inf")


def draw_logits(dtype: Any, rows: int = 333, scale: float = 3.0, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, sum(SIZES), generator=generator, dtype=dtype) * scale


def reference(logits: Any, actions: Any) -> tuple[Any, Any]:
    """Log-probabilities and entropies in double precision."""
    parts = [torch.distributions.Categorical(logits=part) for part in logits.double().split(SIZES, dim=1)]
    log_probabilities = [part.log_prob(actions[:, k].long()) for k, part in enumerate(parts)]
    return torch.stack(log_probabilities).sum(0), torch.stack([part.entropy() for part in parts]).sum(0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 31, 333])
@pytest.mark.parametrize("scale", [0.0, 3.0, 300.0])
def test_results_are_those_of_categorical_distributions(dtype: Any, rows: int, scale: float) -> None:
    logits = draw_logits(dtype, rows, scale)
    actions, *results = multi_discrete_sample(logits, SIZES)
    tolerance = TOLERANCES[dtype] * max(1.0, scale / 3)
    for found, expected in zip(results, reference(logits, actions), strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=0, atol=tolerance)
    for found, expected in zip(multi_discrete_evaluate(logits, actions, SIZES), results, strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_are_those_of_categorical_distributions(dtype: Any) -> None:
    logits = draw_logits(dtype).requires_grad_()
    actions, log_probabilities, entropies = multi_discrete_sample(logits, SIZES)
    weights = torch.linspace(-1, 2, len(logits), dtype=dtype)
    (found,) = torch.autograd.grad((log_probabilities * weights + entropies * weights.flip(0)).sum(), logits)
    expected_log, expected_entropy = reference(logits, actions)
    total = (expected_log * weights + expected_entropy * weights.flip(0)).sum()
    (expected,) = torch.autograd.grad(total, logits)
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCES[dtype])


def test_gradients_are_those_of_finite_differences() -> None:
    logits = draw_logits(torch.float64, rows=5).requires_grad_()
    actions = multi_discrete_sample(logits, SIZES)[0]
    assert torch.autograd.gradcheck(lambda given: multi_discrete_evaluate(given, actions, SIZES), (logits,))
    uniforms = torch.rand(5, 4, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda given: torch.ops.doorstep.multi_discrete_sample(given, uniforms, SIZES)[:2], (logits,)
    )


def test_one_of_two_gradients_may_be_missing() -> None:
    for index in range(2):
        logits = draw_logits(torch.float64).requires_grad_()
        actions = multi_discrete_sample(logits, SIZES)[0]
        (found,) = torch.autograd.grad(multi_discrete_evaluate(logits, actions, SIZES)[index].sum(), logits)
        (expected,) = torch.autograd.grad(reference(logits, actions)[index].sum(), logits)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)


def test_a_second_derivative_is_refused() -> None:
    logits = draw_logits(torch.float64).requires_grad_()
    actions = multi_discrete_sample(logits, SIZES)[0]
    log_probabilities, _ = multi_discrete_evaluate(logits, actions, SIZES)
    (gradients,) = torch.autograd.grad(log_probabilities.sum(), logits, create_graph=True)
    with pytest.raises(NotImplementedError, match="once"):
        gradients.square().sum().backward()


# ---- Drawing


@pytest.mark.parametrize("dtype", DTYPES)
def test_choices_are_drawn_as_often_as_they_are_probable(dtype: Any) -> None:
    torch.manual_seed(5)
    count = 40_000
    logits = draw_logits(dtype, rows=1, scale=1.0)
    actions = multi_discrete_sample(logits.expand(count, -1).contiguous(), SIZES)[0]
    for k, part in enumerate(logits.split(SIZES, dim=1)):
        found = torch.bincount(actions[:, k], minlength=SIZES[k]) / count
        expected = part.softmax(1)[0]
        deviations = (found - expected).abs() / (expected * (1 - expected) / count).sqrt()
        assert deviations.max() < 4.5


def test_components_are_drawn_independently() -> None:
    torch.manual_seed(6)
    actions = multi_discrete_sample(torch.zeros(40_000, 4), [2, 2])[0]
    pairs = torch.bincount(actions[:, 0] * 2 + actions[:, 1], minlength=4) / 40_000
    assert (pairs - 0.25).abs().max() < 0.01


def test_a_uniform_number_gives_the_choice_whose_part_of_the_interval_holds_it() -> None:
    logits = torch.tensor([0.5, 0.25, 0.125, 0.125]).log().repeat(7, 1)
    uniforms = torch.tensor([[0.0], [0.49], [0.51], [0.74], [0.76], [0.88], [0.9999999]])
    actions = torch.ops.doorstep.multi_discrete_sample(logits, uniforms, [4])[2]
    assert actions.ravel().tolist() == [0, 0, 1, 1, 2, 3, 3]


@pytest.mark.parametrize("uniform", [-1.0, 1.0, 2.0, float("nan"), float("inf")])
def test_numbers_outside_the_interval_give_some_choice(uniform: float) -> None:
    actions = torch.ops.doorstep.multi_discrete_sample(
        draw_logits(torch.float32), torch.full((333, 4), uniform), SIZES
    )[2]
    assert (actions >= 0).all()
    assert (actions < torch.tensor(SIZES)).all()


def test_the_same_generator_gives_the_same_actions() -> None:
    logits = draw_logits(torch.float32)
    first, second, other = (
        multi_discrete_sample(logits, SIZES, torch.Generator().manual_seed(seed))[0] for seed in (3, 3, 4)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    torch.manual_seed(3)
    assert torch.equal(multi_discrete_sample(logits, SIZES)[0], first)


def test_given_random_numbers_are_used() -> None:
    logits = draw_logits(torch.float32)
    uniforms = torch.rand(len(logits), len(SIZES), generator=torch.Generator().manual_seed(3))
    drawn = multi_discrete_sample(logits, SIZES, torch.Generator().manual_seed(3))
    for one, other in zip(drawn, multi_discrete_sample(logits, SIZES, uniforms=uniforms), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(doorstep.ArgumentError, match=r"generator is .*; it must be None where uniforms are given"):
        multi_discrete_sample(logits, SIZES, torch.Generator(), uniforms=uniforms)
    for wrong in (uniforms[:3], uniforms[:, :3], uniforms.double(), 0.5):
        with pytest.raises(doorstep.ArgumentError, match="uniforms"):
            multi_discrete_sample(logits, SIZES, uniforms=wrong)  # type: ignore[arg-type,unused-ignore]


def test_rows_do_not_depend_on_each_other() -> None:
    logits, uniforms = draw_logits(torch.float32), torch.rand(333, 4)
    whole = torch.ops.doorstep.multi_discrete_sample(logits, uniforms, SIZES)
    parts = [
        torch.ops.doorstep.multi_discrete_sample(logits[part], uniforms[part], SIZES)
        for part in (slice(0, 50), slice(50, 333))
    ]
    for index, expected in enumerate(whole):
        assert torch.equal(torch.cat([part[index] for part in parts]), expected)


# ---- Forbidden choices and numbers that are none


@pytest.mark.parametrize("dtype", DTYPES)
def test_forbidden_choices_are_never_drawn_and_have_no_gradient(dtype: Any) -> None:
    logits = draw_logits(dtype, rows=2000)
    forbidden = torch.rand(logits.shape) < 0.4
    forbidden[:, [0, 5, 12, 18]] = False
    logits[forbidden] = MINUS_INFINITY
    logits.requires_grad_()
    actions, log_probabilities, entropies = multi_discrete_sample(logits, SIZES)
    offsets = torch.tensor([0, 4, 12, 17])
    assert not forbidden.gather(1, actions + offsets).any()
    expected, _ = reference(logits.detach(), actions)
    torch.testing.assert_close(log_probabilities.detach().double(), expected, rtol=0, atol=TOLERANCES[dtype])
    assert entropies.isfinite().all()
    (log_probabilities + entropies).sum().backward()  # type: ignore[no-untyped-call,unused-ignore]
    assert logits.grad.isfinite().all()
    assert (logits.grad[forbidden] == 0).all()


def test_the_only_choice_left_is_drawn() -> None:
    logits = torch.full((50, 19), MINUS_INFINITY)
    logits[:, [3, 4, 14, 18]] = torch.tensor([-1e30, 0.0, 1e30, 5.0])
    actions, log_probabilities, entropies = multi_discrete_sample(logits, SIZES)
    assert (actions == torch.tensor([3, 0, 2, 1])).all()
    assert (log_probabilities == 0).all()
    assert (entropies == 0).all()


def test_the_log_probability_of_a_forbidden_choice_is_minus_infinity() -> None:
    log_probability, entropy = multi_discrete_evaluate(
        torch.tensor([[MINUS_INFINITY, 0.0]]), torch.tensor([[0]], dtype=torch.int32), [2]
    )
    assert log_probability.item() == MINUS_INFINITY
    assert entropy.item() == 0


@pytest.mark.parametrize("spoiled", [float("nan"), float("inf")])
def test_a_number_that_is_none_spoils_its_row_alone(spoiled: float) -> None:
    logits = draw_logits(torch.float32)
    expected = multi_discrete_sample(logits, SIZES, torch.Generator().manual_seed(0))
    logits[7, 3] = spoiled
    found = multi_discrete_sample(logits, SIZES, torch.Generator().manual_seed(0))
    others = torch.arange(333) != 7
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one[others], other[others])
    assert found[1][7].isnan()
    assert found[2][7].isnan()
    assert ((found[0] >= 0) & (found[0] < torch.tensor(SIZES))).all()


def test_a_component_without_a_choice_gives_no_number() -> None:
    logits = torch.zeros(1, 19)
    logits[0, 4:12] = MINUS_INFINITY
    actions, log_probability, entropy = multi_discrete_sample(logits, SIZES)
    assert log_probability.isnan()
    assert entropy.isnan()
    assert ((actions >= 0) & (actions < torch.tensor(SIZES))).all()


# ---- Shapes and errors


def test_one_choice_is_certain() -> None:
    actions, log_probabilities, entropies = multi_discrete_sample(torch.randn(6, 3), [1, 1, 1])
    assert not actions.any()
    assert not log_probabilities.any()
    assert not entropies.any()


def test_no_rows_give_no_results() -> None:
    actions, log_probabilities, entropies = multi_discrete_sample(torch.zeros(0, 19), SIZES)
    assert actions.shape == (0, 4)
    assert log_probabilities.shape == entropies.shape == (0,)


def test_sixteen_components_of_many_choices() -> None:
    sizes = list(range(1, 32, 2))
    logits = torch.randn(40, sum(sizes), dtype=torch.float64)
    actions, log_probabilities, _ = multi_discrete_sample(logits, sizes)
    parts = [part.log_softmax(1) for part in logits.split(sizes, dim=1)]
    expected = sum(part.gather(1, actions[:, k : k + 1].long()) for k, part in enumerate(parts))
    torch.testing.assert_close(log_probabilities, expected.ravel(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", [[], [1] * 17, [0, 19], [20, -1], None, 19, [9.5, 9.5], [2**31], [2**70]])
def test_sizes_that_cannot_be_are_refused(sizes: Any) -> None:
    for logits in (torch.zeros(2, 19), torch.zeros(0, 2**31)):
        with pytest.raises(doorstep.ArgumentError, match="sizes is"):
            multi_discrete_sample(logits, sizes)
        with pytest.raises(doorstep.ArgumentError, match="sizes is"):
            multi_discrete_evaluate(logits, torch.zeros(2, 2, dtype=torch.int32), sizes)


@pytest.mark.parametrize("logits", [torch.zeros(()), torch.zeros(19), torch.zeros(1, 2, 19), [[0.0] * 19], None])
def test_logits_that_are_no_matrix_are_refused(logits: Any) -> None:
    with pytest.raises(doorstep.ArgumentError, match="logits is"):
        multi_discrete_sample(logits, SIZES)
    with pytest.raises(doorstep.ArgumentError, match="logits is"):
        multi_discrete_evaluate(logits, torch.zeros(1, 4, dtype=torch.int32), SIZES)


def test_actions_that_are_no_tensor_are_refused() -> None:
    with pytest.raises(doorstep.ArgumentError, match="actions is list"):
        multi_discrete_evaluate(torch.zeros(1, 19), [[0, 0, 0, 0]], SIZES)  # type: ignore[arg-type,unused-ignore]


def test_actions_that_are_no_choice_are_refused_and_named() -> None:
    actions = torch.zeros(9, 4, dtype=torch.int32)
    actions[7, 2] = 5
    with pytest.raises(doorstep.ArgumentError, match=r"actions\[7, 2\] is 5; it must be 0 to 4"):
        multi_discrete_evaluate(torch.zeros(9, 19), actions, SIZES)
