"""Random numbers that are functions of counters, so that a draw never depends on how many were drawn before it.

SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): its output function applied
to each counter in turn. The numbers are the same on every machine and with every numpy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def random_bits(*counters: ArrayLike) -> NDArray[np.uint64]:
    """64 random bits per combination of counters, which are non-negative and broadcast against each other."""
    bits: NDArray[np.uint64] = np.zeros(1, np.uint64)
    for counter in counters:
        bits = _mix((bits ^ np.asarray(counter).astype(np.uint64)) + _GOLDEN_GAMMA)
    return bits


def random_uniform(low: float, high: float, *counters: ArrayLike) -> NDArray[np.float64]:
    """Uniform in [low, high), from the upper 53 bits."""
    uniform = (random_bits(*counters) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return np.asarray(low + (high - low) * uniform, np.float64)


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = bits ^ (bits >> np.uint64(31))
    return mixed
