"""A table of random actions, drawn once, for demo and bench."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep.cli.counted_random import random_bits

NUM_CHOICES = (4, 8, 5, 2)  # move amount, move angle, turn, grab
_ROWS = 1 << 20
_STRIDE = 618_033  # rows between one step and the next: odd, so that it visits all of them before it comes around


class ActionTable:
    """About a million actions, uniform in their legal ranges; a step takes as many consecutive rows as it has agents.

    The table has one size whatever the number of worlds, and no agent meets the same row twice within 2**20 steps.
    """

    def __init__(self, seed: int) -> None:
        rows = np.arange(_ROWS, dtype=np.uint64)
        bits = random_bits(seed, rows)
        self._rows = np.empty((_ROWS, len(NUM_CHOICES)), np.uint8)
        for column, choices in enumerate(NUM_CHOICES):
            sixteen_bits = (bits >> np.uint64(16 * column)) & np.uint64(0xFFFF)
            self._rows[:, column] = (sixteen_bits * np.uint64(choices)) >> np.uint64(16)

    def copy_into(self, actions: NDArray[Any], step: int) -> None:
        """Writes the actions of a step; actions is C-contiguous, [N, A, 4]."""
        rows = actions.reshape(-1, len(NUM_CHOICES))
        source = step * _STRIDE % _ROWS
        begin = 0
        while begin < len(rows):
            count = min(len(rows) - begin, _ROWS - source)
            rows[begin : begin + count] = self._rows[source : source + count]
            begin, source = begin + count, 0
