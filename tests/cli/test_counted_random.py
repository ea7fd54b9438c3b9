"""Random numbers by counter: a published answer, and independence of everything but the counters."""

import numpy as np
import pytest

from doorstep.cli.random_actions import random_bits, random_uniform


def test_zero_gives_the_published_first_output_of_splitmix64() -> None:
    assert random_bits(0) == [0xE220A8397B1DCDAF]


def test_a_number_depends_on_its_counters_alone() -> None:
    together = random_bits(5, np.arange(100), 3)
    apart = [random_bits(5, counter, 3)[0] for counter in range(100)]
    assert together.tolist() == apart


def test_every_counter_and_its_place_matter() -> None:
    numbers = {int(random_bits(*counters)[0]) for counters in [(1, 2, 3), (3, 2, 1), (1, 2), (1, 2, 3, 0), (2, 2, 3)]}
    assert len(numbers) == 5


def test_uniform_numbers_fill_their_interval() -> None:
    numbers = random_uniform(-8.0, 8.0, 1, np.arange(100_000))
    assert numbers.min() >= -8.0
    assert numbers.max() < 8.0
    # five standard errors of the mean and of the variance of a uniform distribution
    assert numbers.mean() == pytest.approx(0.0, abs=5 * 16 / np.sqrt(12 * 100_000))
    assert numbers.var() == pytest.approx(16**2 / 12, rel=5 * np.sqrt(0.8 / 100_000))
