"""Episodes as requests: submit them from any thread, and get their results when they have been played.

with doorstep.RolloutEngine(doorstep.RolloutConfig(doorstep.SimulatorConfig(1024))) as engine:
    engine.submit([doorstep.EpisodeRequest(seed=seed, policy="random") for seed in range(10_000)])
    for result in engine:
        print(result.request.seed, result.returns)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from doorstep._optional import Lazy, lazy_names
from doorstep.rollouts.asynchronous import AsyncEpisodes
from doorstep.rollouts.config import (
    ControllerConfig,
    DynamicChunkScheduler,
    EarliestDeadlineScheduler,
    FairShareScheduler,
    FixedChunkScheduler,
    LeastRemainingStepsScheduler,
    PriorityScheduler,
    PullController,
    RolloutConfig,
    RoundRobinController,
    SchedulerConfig,
)
from doorstep.rollouts.controllers import register_controller
from doorstep.rollouts.engine import RolloutEngine
from doorstep.rollouts.minari import write_minari
from doorstep.rollouts.padding import pad_trajectories
from doorstep.rollouts.request import EpisodeRequest
from doorstep.rollouts.result import EpisodeResult
from doorstep.rollouts.schedulers import register_scheduler

if TYPE_CHECKING:
    from doorstep.rollouts.dataset import TrajectoryDataset

__all__ = [
    "AsyncEpisodes",
    "ControllerConfig",
    "DynamicChunkScheduler",
    "EarliestDeadlineScheduler",
    "EpisodeRequest",
    "EpisodeResult",
    "FairShareScheduler",
    "FixedChunkScheduler",
    "LeastRemainingStepsScheduler",
    "PriorityScheduler",
    "PullController",
    "RolloutConfig",
    "RolloutEngine",
    "RoundRobinController",
    "SchedulerConfig",
    "TrajectoryDataset",
    "pad_trajectories",
    "register_controller",
    "register_scheduler",
    "write_minari",
]

__getattr__, __dir__ = lazy_names(
    __name__, __all__, {"TrajectoryDataset": Lazy("doorstep.rollouts.dataset", "torch", ("torch",))}
)
