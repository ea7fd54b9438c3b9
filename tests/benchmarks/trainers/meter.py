"""What is measured of a trainer while it trains, in the same way for all."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

from doorstep.training import TrainingConfig, preset


class Point(NamedTuple):
    """The state of a run after an update. Times are in seconds since its beginning, CPU time that of all threads.

    mean_return: mean over worlds and agents of the returns of their latest ended episodes.
    """

    world_steps: int
    seconds: float
    cpu_seconds: float
    mean_return: float


@dataclass
class Meter:
    """Gathers the points of a run."""

    config: TrainingConfig

    def __post_init__(self) -> None:
        self.points: list[Point] = []
        self._steps = 0
        self._begin = time.perf_counter(), time.process_time()

    def before_step(self, rooms: Any) -> None:
        """Called before each step of an environment whose `Rooms` these are; the first step after an update adds a
        point. `Rooms` are asked, and not the environment's simulator, because steps are slower once that was asked for.
        """
        if self._steps and self._steps % self.config.experience.num_steps == 0:
            self.add(self._steps * self.config.simulator.num_worlds, rooms.final_returns())
        self._steps += 1

    def add(self, world_steps: int, returns: Any) -> None:
        seconds, cpu_seconds = time.perf_counter() - self._begin[0], time.process_time() - self._begin[1]
        self.points.append(Point(world_steps, seconds, cpu_seconds, float(returns.mean())))


def make_config(worlds: int, world_steps: int, seed: int) -> TrainingConfig:
    """The default preset on one thread, without what others lack. One update more than that: most trainers are seen
    only before a step."""
    config = preset("default").changed(
        f"simulator.num_worlds={worlds}", f"simulator.seed={seed}", f"seed={seed}", "simulator.num_threads=1",
        levels="reference", reward=None, retries=0,
    )  # fmt: skip
    return config.changed(f"num_updates={max(2, round(world_steps / config.steps_per_update)) + 1}")


def rules(config: TrainingConfig) -> dict[str, Any]:
    """Of the simulator, for environments that make one."""
    return {"seed": config.simulator.seed, "num_threads": config.simulator.num_threads}


def num_rows(config: TrainingConfig) -> int:
    """Agents of all worlds."""
    return config.simulator.num_worlds * config.simulator.num_agents
