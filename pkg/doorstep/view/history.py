"""What one agent got lately."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LONGEST = 300  # steps that are kept


@dataclass(frozen=True)
class Moment:
    """After one step."""

    reward: float
    total: float  # reward since the episode began, or since somebody looks at this agent


class History:
    """The last steps of an agent, one after the other."""

    def __init__(self) -> None:
        self._moments = np.zeros((LONGEST, 2))  # rewards and totals, the last step at the end
        self._count = 0
        self._total = 0.0

    def clear(self) -> None:
        """Somebody looks at another agent, or at another time."""
        self._moments[:] = 0
        self._count = 0
        self._total = 0.0

    def add(self, reward: float, done: bool) -> None:
        """One step more. done: the episode ended with it."""
        self._total += reward
        self._moments[:-1] = self._moments[1:]
        self._moments[-1] = reward, self._total
        self._count = min(self._count + 1, LONGEST)
        if done:
            self._total = 0.0

    @property
    def last(self) -> Moment | None:
        """The last step, if there was one."""
        return Moment(*self._moments[-1].tolist()) if self._count else None

    def curves(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Steps counted back from the last one (..., -1, 0), rewards, totals; one step of nothing without any."""
        count = max(self._count, 1)
        rewards, totals = self._moments[-count:].T.copy()
        return np.arange(1.0 - count, 1.0), rewards, totals
