"""Policies compared over all levels: interquartile means and probabilities of improvement.

Both follow Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice" (2021), with
their stratified bootstrap: episodes are drawn again within each level, so that every level keeps its share. The score
of an episode is its return.

A resample is not drawn as values but as counts: how often each distinct value of a level occurs in it is multinomial.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._configs import Checked
from doorstep.evaluation.statistics import CONFIDENCE, Estimate

RESAMPLES = 2000
METHOD = f"stratified percentile bootstrap over the episodes of each level, {RESAMPLES} resamples"

_TRIMMED = 0.25  # of the scores, at either end
_MOST_COUNTS = 1 << 20  # at a time

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]  # [..., K]: of each of K ascending values, which may differ between samples


@final
@dataclass(frozen=True)
class Aggregate(Checked):
    """A policy over all levels.

    Attributes:
        policy: its name.
        interquartile_mean: of the returns of the episodes of all levels: the mean of the middle half.
    """

    policy: str
    interquartile_mean: Estimate


@final
@dataclass(frozen=True)
class Improvement(Checked):
    """How likely one policy is to do better than another.

    Attributes:
        policy, over: their names.
        probability: that an episode of `policy` has a larger return than an episode of `over` in the same level, ties
            counted half; the mean over the levels.
    """

    policy: str
    over: str
    probability: Estimate


def aggregates(returns: Mapping[str, Sequence[Floats]], seed: int) -> tuple[Aggregate, ...]:
    """Of each policy.

    Args:
        returns: of each policy's episodes, an array for each level.
        seed: of the resamples.
    """
    return tuple(Aggregate(policy, estimate_interquartile_mean(levels, seed)) for policy, levels in returns.items())


def improvements(returns: Mapping[str, Sequence[Floats]], seed: int) -> tuple[Improvement, ...]:
    """Of every policy over each one that is named before it. Arguments as of `aggregates()`."""
    return tuple(
        Improvement(policy, over, estimate_improvement(returns[policy], returns[over], seed))
        for over, policy in itertools.combinations(returns, 2)
    )


def estimate_interquartile_mean(levels: Sequence[Floats], seed: int) -> Estimate:
    """The mean of the scores of all levels without the lowest and the highest quarter, each rounded down.

    Args:
        levels: the scores of each level.
        seed: of the resamples.
    """
    values = np.unique(np.concatenate(levels))
    counted = [np.unique(level, return_counts=True) for level in levels]
    places = [np.searchsorted(values, own) for own, _ in counted]

    def mean(drawn: Sequence[Counts]) -> Floats:
        pooled: Counts = np.zeros((*drawn[0].shape[:-1], len(values)), np.int64)
        for place, counts in zip(places, drawn, strict=True):
            pooled[..., place] += counts
        return _interquartile_mean(values, pooled)

    return _estimate(mean, [counts for _, counts in counted], seed)


def estimate_improvement(levels: Sequence[Floats], over: Sequence[Floats], seed: int) -> Estimate:
    """The probability that a score is larger than one of `over` in the same level, ties counted half, as the mean over
    the levels. The scores of both are drawn independently.

    Args:
        levels, over: the scores of each level.
        seed: of the resamples.
    """
    counts = [sample for pair in zip(levels, over, strict=True) for sample in _counted(pair)]

    def probability(drawn: Sequence[Counts]) -> Floats:
        of_levels = [_is_larger(one, other) for one, other in zip(drawn[::2], drawn[1::2], strict=True)]
        return np.mean(of_levels, axis=0)  # type: ignore[no-any-return]

    return _estimate(probability, counts, seed)


def _counted(samples: Sequence[Floats]) -> list[Counts]:
    """How often each of the distinct values of all samples, ascending, occurs in every sample."""
    values, index = np.unique(np.concatenate(samples), return_inverse=True)
    ends = np.cumsum([len(sample) for sample in samples])[:-1]
    return [np.bincount(part, minlength=len(values)) for part in np.split(index.reshape(-1), ends)]


def _interquartile_mean(values: Floats, counts: Counts) -> Floats:
    up_to = counts.cumsum(axis=-1)
    total = up_to[..., -1:]
    low = np.floor(_TRIMMED * total)
    kept = np.clip(np.minimum(up_to, total - low) - np.maximum(up_to - counts, low), 0, None)
    return (kept * values).sum(axis=-1) / kept.sum(axis=-1)  # type: ignore[no-any-return]


def _is_larger(one: Counts, other: Counts) -> Floats:
    """The share of pairs in which `one` has the larger value, ties counted half."""
    below = other.cumsum(axis=-1) - other / 2
    return (one * below).sum(axis=-1) / one.sum(axis=-1) / other.sum(axis=-1)  # type: ignore[no-any-return]


def _estimate(statistic: Callable[[Sequence[Counts]], Floats], counts: Sequence[Counts], seed: int) -> Estimate:
    value = float(statistic(counts))
    resampled = np.concatenate([np.atleast_1d(statistic(drawn)) for drawn in _resamples(counts, seed)])
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(resampled, [tail, 100 - tail])
    return Estimate(value, float(low), float(high))


def _resamples(counts: Sequence[Counts], seed: int) -> Iterator[list[Counts]]:
    """Counts [n, K] of every sample, in parts of up to `_MOST_COUNTS` numbers."""
    generator = np.random.default_rng(seed)
    rows = max(_MOST_COUNTS // sum(map(len, counts)), 1)
    for first in range(0, RESAMPLES, rows):
        size = min(rows, RESAMPLES - first)
        yield [generator.multinomial(sample.sum(), sample / sample.sum(), size) for sample in counts]
