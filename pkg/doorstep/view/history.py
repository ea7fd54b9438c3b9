"""What one agent got lately."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STEPS = 300


@dataclass(frozen=True)
class Moment:
    """After one step."""

    step: int
    reward: float
    total: float  # reward since the episode began, or since somebody looks at this agent


class History:
    """The last steps of an agent, oldest first."""

    def __init__(self) -> None:
        self._moments: deque[Moment] = deque(maxlen=_STEPS)
        self._total = 0.0

    def clear(self) -> None:
        """Somebody looks at another agent, or at another time."""
        self._moments.clear()
        self._total = 0.0

    def add(self, step: int, reward: float, done: bool) -> None:
        """done: the episode ended with this step."""
        self._total += reward
        self._moments.append(Moment(step, reward, self._total))
        if done:
            self._total = 0.0

    @property
    def last(self) -> Moment | None:
        """The last step, if there was one."""
        return self._moments[-1] if self._moments else None

    def curves(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Steps, rewards, totals; one step of nothing while there are none."""
        rows = [(moment.step, moment.reward, moment.total) for moment in self._moments] or [(0, 0.0, 0.0)]
        steps, rewards, totals = np.array(rows, np.float64).T
        return steps, rewards, totals
