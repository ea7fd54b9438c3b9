"""Multi-discrete actions against torch.distributions.Categorical in double precision, and by their statistics."""

import pytest
from tests.refuses import refuses

import doorstep

torch = pytest.importorskip("torch")

from doorstep.torch import multi_discrete_evaluate, multi_discrete_sample  # noqa: E402

SIZES = doorstep.ACTIONS
TOLERANCES = {torch.float32: 3e-6, torch.float64: 1e-13}
MINUS_INFINITY = float("-inf")


def draw_logits(dtype=torch.float32, rows=333, scale=3.0):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(rows, sum(SIZES), generator=generator, dtype=dtype) * scale


def reference(logits, actions, sizes=SIZES):
    """Log-probabilities and entropies in double precision."""
    parts = [torch.distributions.Categorical(logits=part) for part in logits.double().split(list(sizes), dim=1)]
    log_probabilities = [part.log_prob(actions[:, k].long()) for k, part in enumerate(parts)]
    return torch.stack(log_probabilities).sum(0), torch.stack([part.entropy() for part in parts]).sum(0)


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_results_and_gradients_are_those_of_categorical_distributions(dtype):
    for rows, scale in ((1, 3.0), (31, 0.0), (333, 3.0), (333, 300.0)):
        logits = draw_logits(dtype, rows, scale).requires_grad_()
        actions, *results = multi_discrete_sample(logits, SIZES)
        tolerance = TOLERANCES[dtype] * max(1.0, scale / 3)
        expected = reference(logits, actions)
        for found, wanted in zip(results, expected, strict=True):
            torch.testing.assert_close(found.double(), wanted, rtol=0, atol=tolerance)
        again = multi_discrete_evaluate(logits, actions, SIZES)
        assert all(torch.equal(found, wanted) for found, wanted in zip(again, results, strict=True))
        weights = torch.linspace(-1, 2, rows, dtype=dtype)
        # of both, of one, of the other
        for of_log, of_entropy in ((1, 1), (1, 0), (0, 1)):
            totals = []
            for logs, entropies in (results, again, expected):
                parts = [(logs * weights).sum()] * of_log + [(entropies * weights.flip(0)).sum()] * of_entropy
                totals.append(sum(parts))
            found, evaluated, wanted = (torch.autograd.grad(total, logits, retain_graph=True)[0] for total in totals)
            torch.testing.assert_close(found, wanted, rtol=0, atol=tolerance)
            assert torch.equal(found, evaluated)


def test_a_second_derivative_is_refused():
    logits = draw_logits(torch.float64).requires_grad_()
    log_probabilities, _ = multi_discrete_evaluate(logits, torch.zeros(333, 4, dtype=torch.int32), SIZES)
    (gradients,) = torch.autograd.grad(log_probabilities.sum(), logits, create_graph=True)
    refuses("once", gradients.square().sum().backward, error=NotImplementedError)


# ---- Drawing


def test_a_uniform_number_gives_the_choice_whose_part_of_the_interval_holds_it():
    """Numbers outside of it give some choice; 0 gives none that is forbidden."""
    sample = torch.ops.doorstep.multi_discrete_sample
    for dtype, rounding in TOLERANCES.items():
        logits, uniforms = draw_logits(dtype), torch.rand(333, 4, dtype=dtype)
        actions = sample(logits, uniforms, SIZES)[2]
        for k, part in enumerate(logits.double().split(SIZES, dim=1)):
            ends = part.softmax(1).cumsum(1)
            uniform, chosen = uniforms[:, [k]].double(), actions[:, [k]].long()
            begins = torch.nn.functional.pad(ends, (1, 0))
            assert (begins.gather(1, chosen) - 10 * rounding <= uniform).all()
            assert (uniform <= ends.gather(1, chosen) + 10 * rounding).all()
    logits = torch.tensor([[MINUS_INFINITY, 1.0, 0.0]] * 3)
    assert sample(logits, torch.tensor([[0.0], [1e-9], [0.9999999]]), [3])[2].ravel().tolist() == [1, 1, 2]
    for uniform in (-1.0, 1.0, 2.0, float("nan"), float("inf")):
        actions = sample(draw_logits(), torch.full((333, 4), uniform), SIZES)[2]
        assert ((actions >= 0) & (actions < torch.tensor(SIZES))).all()


def test_generators_and_given_random_numbers_are_used():
    logits = draw_logits()
    generators = [torch.Generator().manual_seed(seed) for seed in (3, 3, 4)]
    first, second, other = (multi_discrete_sample(logits, SIZES, generator) for generator in generators)
    torch.manual_seed(3)
    uniforms = torch.rand(len(logits), len(SIZES), generator=torch.Generator().manual_seed(3))
    for same in (second, multi_discrete_sample(logits, SIZES), multi_discrete_sample(logits, SIZES, uniforms=uniforms)):
        assert all(torch.equal(one, two) for one, two in zip(same, first, strict=True))
    assert not torch.equal(first[0], other[0])
    with pytest.raises(doorstep.ArgumentError, match=r"generator is .*; it must be None where uniforms are given"):
        multi_discrete_sample(logits, SIZES, torch.Generator(), uniforms=uniforms)
    for wrong in (uniforms[:3], uniforms[:, :3], uniforms.double(), 0.5):
        refuses("uniforms", multi_discrete_sample, logits, SIZES, uniforms=wrong)


# ---- Forbidden choices and numbers that are none


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_forbidden_choices_are_never_drawn_and_have_no_gradient(dtype):
    logits = draw_logits(dtype, rows=2000)
    forbidden = torch.rand(logits.shape) < 0.4
    forbidden[:, [0, 5, 12, 18]] = False
    logits[forbidden] = MINUS_INFINITY
    logits.requires_grad_()
    actions, log_probabilities, entropies = multi_discrete_sample(logits, SIZES)
    assert not forbidden.gather(1, actions + torch.tensor([0, 4, 12, 17])).any()
    expected, _ = reference(logits.detach(), actions)
    torch.testing.assert_close(log_probabilities.detach().double(), expected, rtol=0, atol=TOLERANCES[dtype])
    assert entropies.isfinite().all()
    (log_probabilities + entropies).sum().backward()
    assert logits.grad.isfinite().all()
    assert (logits.grad[forbidden] == 0).all()
    pair, first = torch.tensor([[MINUS_INFINITY, 0.0]], dtype=dtype), torch.zeros(1, 1, dtype=torch.int32)
    assert multi_discrete_evaluate(pair, first, [2])[0] == MINUS_INFINITY


def test_a_number_that_is_none_spoils_its_row_alone():
    for spoiled, columns in ((float("nan"), 3), (float("inf"), 3), (MINUS_INFINITY, slice(4, 12))):
        logits = draw_logits()
        expected = multi_discrete_sample(logits, SIZES, torch.Generator().manual_seed(0))
        logits[7, columns] = spoiled
        found = multi_discrete_sample(logits, SIZES, torch.Generator().manual_seed(0))
        others = torch.arange(333) != 7
        for one, other in zip(found, expected, strict=True):
            assert torch.equal(one[others], other[others])
        assert found[1][7].isnan()
        assert found[2][7].isnan()
        assert ((found[0] >= 0) & (found[0] < torch.tensor(SIZES))).all()


# ---- Shapes and errors


def test_components_may_be_few_and_many():
    actions, log_probabilities, entropies = multi_discrete_sample(torch.randn(6, 3), [1, 1, 1])
    assert not any(one.any() for one in (actions, log_probabilities, entropies))
    actions, log_probabilities, entropies = multi_discrete_sample(torch.zeros(0, 19), SIZES)
    assert (actions.shape, log_probabilities.shape, entropies.shape) == ((0, 4), (0,), (0,))
    sizes = list(range(1, 32, 2))
    logits = torch.randn(40, sum(sizes), dtype=torch.float64)
    actions, *results = multi_discrete_sample(logits, sizes)
    for found, expected in zip(results, reference(logits, actions, sizes), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_what_cannot_be_is_refused_by_name():
    actions = torch.zeros(2, 2, dtype=torch.int32)
    for sizes in ([], [1] * 17, [0, 19], [20, -1], None, 19, [9.5, 9.5], [2**31], [2**70]):
        for logits in (torch.zeros(2, 19), torch.zeros(0, 2**31)):
            refuses("sizes is", multi_discrete_sample, logits, sizes)
            refuses("sizes is", multi_discrete_evaluate, logits, actions, sizes)
    for logits in (torch.zeros(()), torch.zeros(19), torch.zeros(1, 2, 19), [[0.0] * 19], None):
        refuses("logits is", multi_discrete_sample, logits, SIZES)
        refuses("logits is", multi_discrete_evaluate, logits, actions, SIZES)
    refuses("actions is list", multi_discrete_evaluate, torch.zeros(1, 19), [[0, 0, 0, 0]], SIZES)
    actions = torch.zeros(9, 4, dtype=torch.int32)
    for number in (5, -1):
        actions[7, 2] = number
        with pytest.raises(doorstep.ArgumentError, match=rf"actions\[7, 2\] is {number}; it must be 0 to 4"):
            multi_discrete_evaluate(torch.zeros(9, 19), actions, SIZES)
