"""Interquartile means and probabilities of improvement, against their definitions."""

import numpy as np
import pytest

import doorstep
from doorstep.evaluation.comparison import RESAMPLES, estimate_improvement, estimate_interquartile_mean


def middle_half(scores):
    """By sorting: as many are cut off at either end as a quarter has, rounded down."""
    cut = len(scores) // 4
    return float(np.mean(np.sort(scores)[cut : len(scores) - cut]))


def share_of_pairs(one, other):
    """By looking at all pairs."""
    return float(np.mean((one[:, None] > other) + 0.5 * (one[:, None] == other)))


def drawn(seed, *sizes, shift=0.0):
    """Scores of levels, with many equal ones."""
    generator = np.random.default_rng(seed)
    return [np.round(generator.normal(shift + level, 1, size), 1) for level, size in enumerate(sizes)]


def test_values_are_those_of_the_definitions_and_the_other_way_round_the_rest():
    for sizes in ((1,), (2,), (3,), (4,), (37,), (11, 11, 11), (40, 40), (9, 14)):
        levels, over = drawn(1, *sizes), drawn(2, *sizes, shift=0.5)
        assert estimate_interquartile_mean(levels, 0).value == pytest.approx(middle_half(np.concatenate(levels)))
        expected = np.mean([share_of_pairs(one, other) for one, other in zip(levels, over, strict=True)])
        there, back = estimate_improvement(levels, over, 0), estimate_improvement(over, levels, 0)
        assert there.value == pytest.approx(expected)
        assert there.value + back.value == pytest.approx(1)
        assert there.low <= there.value <= there.high
        assert there == estimate_improvement(levels, over, 0)
    assert there != estimate_improvement(levels, over, 1)


def test_intervals_are_those_of_a_bootstrap_that_draws_values_within_levels():
    levels, over = drawn(3, 30, 30), drawn(4, 30, 30, shift=0.4)
    generator = np.random.default_rng(5)
    means, shares = [], []
    for _ in range(RESAMPLES):
        again = [generator.choice(scores, len(scores)) for scores in levels]
        others = [generator.choice(scores, len(scores)) for scores in over]
        means.append(middle_half(np.concatenate(again)))
        shares.append(np.mean([share_of_pairs(one, other) for one, other in zip(again, others, strict=True)]))
    estimates = estimate_interquartile_mean(levels, 0), estimate_improvement(levels, over, 0)
    for estimate, resampled in zip(estimates, (means, shares), strict=True):
        low, high = np.percentile(resampled, [2.5, 97.5])
        assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=0.15 * (high - low))
    # unless resamples kept the share of each level, their middle half would jump from one level to the other
    near, far = np.linspace(0, 0.01, 20), np.linspace(100, 100.01, 20)
    estimate = estimate_interquartile_mean([near, far], 0)
    assert estimate.value == pytest.approx(50, abs=0.1)
    assert estimate.high - estimate.low < 0.02


def test_an_evaluation_compares_each_policy_with_those_before():
    policies = {"a": "random", "b": "random", "c": "idle"}
    evaluation = doorstep.evaluate(policies, levels="room_types", episodes=6, episode_length=20)
    assert [one.policy for one in evaluation.aggregates] == ["a", "b", "c"]
    assert [(one.policy, one.over) for one in evaluation.improvements] == [("b", "a"), ("c", "a"), ("c", "b")]
    same = evaluation.improvements[0].probability
    assert same.value == pytest.approx(0.5)
    assert same.low <= 0.5 <= same.high
    assert evaluation.aggregates[0].interquartile_mean == evaluation.aggregates[1].interquartile_mean
