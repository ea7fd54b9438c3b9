"""The policies that need no observation: "random" and "idle"."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.random import default_rng  # here: a first step would import it, and a Ctrl-C in an import may be lost
from numpy.typing import NDArray

from doorstep._native import ACTIONS, NEUTRAL_ACTION


@final
class RandomPolicy:
    """All legal actions are equally likely. seed: of the random numbers; None: of each policy its own."""

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed
        self._generator = default_rng(seed)

    def __call__(self, observations: Any) -> NDArray[np.int32]:
        return self._generator.integers(0, ACTIONS, (*observations.shape[:-1], len(ACTIONS)), np.int32)

    def seeded(self, seed: int) -> RandomPolicy:
        """A policy whose random numbers follow from a seed, unless this one's do."""
        return self if self.seed is not None else RandomPolicy(seed)


@final
class IdlePolicy:
    """Agents stand still."""

    def __call__(self, observations: Any) -> NDArray[np.int32]:
        return np.full((*observations.shape[:-1], len(ACTIONS)), NEUTRAL_ACTION, np.int32)
