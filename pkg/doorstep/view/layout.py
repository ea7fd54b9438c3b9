"""Where worlds stand in the picture: in a square of rows, from left to right and from far to near."""

from __future__ import annotations

import itertools
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
    height: float  # metres, of a level above its floor
    offsets: NDArray[np.float32]  # [cells, 3]

    @staticmethod
    def of(sim: Simulator, cells: int) -> Layout:
        """Cells large enough for the levels of a simulator."""
        used = read(sim.state.static_kinds) != 0
        positions, sizes = read(sim.state.static_positions)[used], read(sim.state.static_sizes)[used]
        low = (positions - sizes / 2)[:, :2].min(axis=0)
        high = (positions + sizes / 2)[:, :2].max(axis=0)
        height = float((positions + sizes)[:, 2].max())  # positions are at the bottom
        width, depth = high - low + _GAP
        rows, column = np.divmod(np.arange(cells), math.ceil(math.sqrt(cells)))
        offsets = np.stack([column * width, -rows * depth, 0 * rows], axis=1).astype(np.float32)
        return Layout(low, high, height, offsets)

    @property
    def cells(self) -> int:
        """How many worlds there is room for."""
        return len(self.offsets)

    def box(self, cell: int) -> NDArray[np.float32]:
        """Corners [8, 3] of the level in a cell."""
        return self._corners(self.offsets[cell], self.offsets[cell])

    def whole(self) -> NDArray[np.float32]:
        """Corners [8, 3] of a box around all levels."""
        return self._corners(self.offsets.min(axis=0), self.offsets.max(axis=0))

    def _corners(self, least: NDArray[np.float32], most: NDArray[np.float32]) -> NDArray[np.float32]:
        """Of a box around the levels with these offsets."""
        low, high = np.append(self.low, 0) + least, np.append(self.high, self.height) + most
        return np.array(list(itertools.product(*zip(low, high, strict=True))), np.float32)
