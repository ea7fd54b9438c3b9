"""Episodes as requests: submit them from any thread, and get their results when they have been played.

with doorstep.RolloutEngine(doorstep.SimulatorConfig(1024)) as engine:
    results = engine.run(doorstep.EpisodeRequest(seed=seed, policy="random") for seed in range(10_000))
    print(results.returns.mean(axis=0), results[17].request.seed)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from doorstep._optional import Lazy, lazy_names
from doorstep.rollouts.config import ControllerConfig, RolloutConfig, SchedulerConfig
from doorstep.rollouts.engine import RolloutEngine
from doorstep.rollouts.minari import write_minari
from doorstep.rollouts.padding import pad_trajectories
from doorstep.rollouts.registry import register
from doorstep.rollouts.request import EpisodeColumns, EpisodeRequest
from doorstep.rollouts.results import EpisodeResult

if TYPE_CHECKING:
    from doorstep.rollouts.dataset import TrajectoryDataset

__all__ = [
    "ControllerConfig",
    "EpisodeColumns",
    "EpisodeRequest",
    "EpisodeResult",
    "RolloutConfig",
    "RolloutEngine",
    "SchedulerConfig",
    "TrajectoryDataset",
    "pad_trajectories",
    "register",
    "write_minari",
]

__getattr__, __dir__ = lazy_names(
    __name__, __all__, {"TrajectoryDataset": Lazy("doorstep.rollouts.dataset", "torch", ("torch",))}
)
