"""Means and shares of samples, with 95% confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from doorstep._configs import Checked

CONFIDENCE = 0.95
RESAMPLES = 4000
MEAN_METHOD = f"percentile bootstrap over episodes, {RESAMPLES} resamples"
SHARE_METHOD = "Wilson score interval"

_NORMAL_QUANTILE = 1.959963984540054  # of (1 + CONFIDENCE) / 2
_MOST_DRAWN = 1 << 20  # at a time


@final
@dataclass(frozen=True)
class Estimate(Checked):
    """What a sample says of all episodes that could have been played.

    Attributes:
        value: the mean or the share of the sample.
        low, high: a 95% confidence interval.
    """

    value: float
    low: float
    high: float


def estimate_mean(values: NDArray[np.floating] | NDArray[np.integer], seed: int) -> Estimate:
    """The mean, with the interval of the percentile bootstrap.

    Args:
        values: [n], in an order that does not depend on how they came about.
        seed: of the resamples.
    """
    sample = np.asarray(values, np.float64)
    if (sample == sample[0]).all():  # all resamples have the same mean
        return Estimate(float(sample[0]), float(sample[0]), float(sample[0]))
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(_resampled_means(sample, seed), [tail, 100 - tail])
    return Estimate(float(sample.mean()), float(low), float(high))


def estimate_share(count: int, total: int) -> Estimate:
    """The share of successes, with Wilson's score interval (E. B. Wilson, "Probable inference", 1927)."""
    share, squared = count / total, _NORMAL_QUANTILE**2
    centre = (share + squared / (2 * total)) / (1 + squared / total)
    spread = math.sqrt(share * (1 - share) / total + squared / (4 * total**2))
    half = _NORMAL_QUANTILE * spread / (1 + squared / total)
    # At the ends the interval includes the share exactly; rounding must not leave it out
    return Estimate(share, min(max(centre - half, 0.0), share), max(min(centre + half, 1.0), share))


def _resampled_means(sample: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """float64 [RESAMPLES]: the means of samples of the same size, drawn with replacement."""
    generator, size = np.random.default_rng(seed), len(sample)
    rows = max(_MOST_DRAWN // size, 1)
    means = [
        sample[generator.integers(0, size, (min(rows, RESAMPLES - first), size))].mean(axis=1)
        for first in range(0, RESAMPLES, rows)
    ]
    return np.concatenate(means)
