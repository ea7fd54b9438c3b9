"""Who acts where nobody plays: agents that stand still, and agents that do anything."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from doorstep.simulator import Simulator

NUM_CHOICES = (4, 8, 5, 2)  # move amount, move angle, turn, grab
IDLE = (0, 0, 2, 0)

Actions = NDArray[np.int32]
Policy = Callable[[], Actions]
"""Returns the actions of one step, [N, A, 4]: an array of its own."""


def idle(sim: Simulator) -> Policy:
    """Nobody moves."""
    actions = np.broadcast_to(np.asarray(IDLE, np.int32), sim.actions.shape)
    return actions.copy


def random(sim: Simulator) -> Policy:
    """Every legal action is as likely as any other; the simulator's seed decides which are taken."""
    generator, shape = np.random.default_rng(sim.seed), sim.actions.shape

    def act() -> Actions:
        return generator.integers(0, NUM_CHOICES, shape, np.int32)

    return act


POLICIES: dict[str, Callable[[Simulator], Policy]] = {"random": random, "idle": idle}
