"""Where episodes have begun, for what remembers something of an episode."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from doorstep.simulator import Simulator


@final
class Beginnings:
    """The worlds of a simulator in which a step or a reset has begun an episode since the last call. Call it once
    before each step: an episode that goes on has one step less than before."""

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim
        self._remaining = np.full(sim.num_worlds, -1)  # which no world has

    def __call__(self) -> NDArray[np.bool_]:
        """bool [N]; all in the first call."""
        before, self._remaining = self._remaining, self._sim.steps_remaining.copy_to_host()[:, 0, 0]
        differs: NDArray[np.bool_] = self._remaining != before - 1
        has_ended: NDArray[np.bool_] = self._sim.dones.copy_to_host()[:, 0, 0] != 0
        # Where worlds are not regenerated they stand still after their end.
        return differs | has_ended if self._sim.config.auto_reset else differs & ~has_ended
