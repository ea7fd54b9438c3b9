"""Where worlds stand in the picture: in rows, from left to right and from far to near."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doorstep.simulator import Simulator
from doorstep.view.reading import read

_GAP = 4.0  # metres between worlds


@dataclass(frozen=True)
class Layout:
    """A grid of cells, one per world that is shown. The first world stands where its own coordinates say."""

    low: NDArray[np.float32]  # [2], corner of a level, metres
    high: NDArray[np.float32]  # [2]
    offsets: NDArray[np.float32]  # [cells, 3]

    @staticmethod
    def of(sim: Simulator, cells: int) -> Layout:
        """Cells large enough for the levels of a simulator."""
        positions, sizes = read(sim.state.static_positions)[..., :2], read(sim.state.static_sizes)[..., :2]
        used = read(sim.state.static_kinds) != 0
        low = (positions - sizes / 2)[used].min(axis=0)
        high = (positions + sizes / 2)[used].max(axis=0)
        width, depth = high - low + _GAP
        columns = min(max(round(math.sqrt(cells * depth / width)), 1), cells)
        rows, column = np.divmod(np.arange(cells), columns)
        return Layout(low, high, np.stack([column * width, -rows * depth, 0 * rows], axis=1).astype(np.float32))

    @property
    def cells(self) -> int:
        """How many worlds there is room for."""
        return len(self.offsets)

    @property
    def corners(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Corners [2] of everything."""
        return self.low + self.offsets[:, :2].min(axis=0), self.high + self.offsets[:, :2].max(axis=0)
