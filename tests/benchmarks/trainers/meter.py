"""What is measured of a trainer while it trains, in the same way for all, and the end of its time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

from doorstep.training import TrainingConfig


class Point(NamedTuple):
    """The state of a run after an update. Times are in seconds since its beginning, CPU time that of all threads."""

    world_steps: int
    seconds: float
    cpu_seconds: float


class TimeIsUpError(Exception):
    """Ends a trainer's loop."""


@dataclass
class Meter:
    """Gathers the points of a run, and ends it after the first update that reaches the limit of CPU time."""

    config: TrainingConfig
    most_cpu_seconds: float

    def __post_init__(self) -> None:
        self.points: list[Point] = []
        self._steps = 0
        self._begin = time.perf_counter(), time.process_time()

    def before_step(self) -> None:
        """Called before each step of an environment; the first step after an update adds a point.

        Raises:
            TimeIsUpError: the limit is reached.
        """
        if self._steps and self._steps % self.config.experience.num_steps == 0:
            self.add(self._steps * self.config.simulator.num_worlds)
            if self.is_time_up():
                raise TimeIsUpError
        self._steps += 1

    def add(self, world_steps: int) -> None:
        seconds, cpu_seconds = time.perf_counter() - self._begin[0], time.process_time() - self._begin[1]
        self.points.append(Point(world_steps, seconds, cpu_seconds))

    def is_time_up(self) -> bool:
        return self.points[-1].cpu_seconds >= self.most_cpu_seconds
