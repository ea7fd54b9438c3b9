"""Random actions of bench, and the random numbers that they are made of.

A random number is a function of counters, so it does not depend on how many were drawn before it. SplitMix64 (Steele,
Lea, Flood: "Fast splittable pseudorandom number generators", 2014): its output function applied to each counter in
turn. The numbers are the same on every machine and with every numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doorstep import ACTIONS, Tensor, cuda

_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_ROWS = 1 << 20
_STRIDE = 618_033  # rows between one step and the next: odd, so all rows are visited before one is visited again


# ---- Random numbers


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


# ---- Actions


class ActionTable:
    """About a million actions, uniform in their legal ranges; a step takes as many consecutive rows as it has agents.

    The size of the table does not depend on the number of worlds. No agent gets the same row twice within 2**20 steps.
    """

    def __init__(self, seed: int) -> None:
        rows = np.arange(_ROWS, dtype=np.uint64)
        bits = random_bits(seed, rows)
        self._rows = np.empty((_ROWS, len(ACTIONS)), np.uint8)
        for column, choices in enumerate(ACTIONS):
            sixteen_bits = (bits >> np.uint64(16 * column)) & np.uint64(0xFFFF)
            self._rows[:, column] = (sixteen_bits * np.uint64(choices)) >> np.uint64(16)

    def copy_into(self, actions: NDArray[Any], step: int) -> None:
        """Writes the actions of a step; actions is C-contiguous, [N, A, 4]."""
        rows = actions.reshape(-1, len(ACTIONS))
        for begin, source, count in pieces(step, len(rows)):
            rows[begin : begin + count] = self._rows[source : source + count]


class DeviceActionTable:
    """The same table in the memory of a GPU. A step's actions are copied within the GPU; the host does not wait."""

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
        """Enqueues the copy of a step's actions."""
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
