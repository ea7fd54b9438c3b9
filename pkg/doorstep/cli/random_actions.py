"""A table of random actions, drawn once, for demo and bench."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep import Tensor, cuda
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
        for begin, source, count in pieces(step, len(rows)):
            rows[begin : begin + count] = self._rows[source : source + count]


class DeviceActionTable:
    """The same table in the memory of a GPU, from which a step's actions get into a tensor without the host waiting."""

    def __init__(self, table: ActionTable, actions: Tensor, stream: cuda.Stream) -> None:
        rows = table._rows.astype(np.int32)
        self._buffer = cuda.Buffer(rows.nbytes, stream=stream)
        self._buffer.copy_from_host(rows)
        self._stream = stream
        self._row_bytes = rows.strides[0]
        self._num_rows = actions.nbytes // self._row_bytes
        self._destination: int = actions.__cuda_array_interface__["data"][0]
        self._source = self._buffer.pointer

    def copy(self, step: int) -> None:
        """Begins to write the actions of a step."""
        for begin, source, count in pieces(step, self._num_rows):
            destination = self._destination + begin * self._row_bytes
            self._stream.copy(destination, self._source + source * self._row_bytes, count * self._row_bytes)


def pieces(step: int, num_rows: int) -> Iterator[tuple[int, int, int]]:
    """The rows of a step as runs: first row of the actions, first row of the table, number of rows."""
    source = step * _STRIDE % _ROWS
    begin = 0
    while begin < num_rows:
        count = min(num_rows - begin, _ROWS - source)
        yield begin, source, count
        begin, source = begin + count, 0
