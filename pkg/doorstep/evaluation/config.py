"""`EvaluationConfig`: an evaluation as one value, which files and the options of `doorstep evaluate` describe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, final

from doorstep._arguments import refuse
from doorstep._configs import Config, Device, Integer
from doorstep._configs.rules import PathText
from doorstep._native import MAX_SEED
from doorstep.config import SimulatorConfig
from doorstep.evaluation.episodes import MOST_EPISODES
from doorstep.levels import Rewards
from doorstep.levels.reward_terms import RewardTerms
from doorstep.policy import SamplingParams
from doorstep.rollouts import ControllerConfig, RolloutConfig, SchedulerConfig


@final
@dataclass(frozen=True)
class EvaluationConfig(Config):
    """What `evaluate()` plays: policies, levels, episodes, and how they are played.

    >>> from doorstep.evaluation.config import EvaluationConfig
    >>> config = EvaluationConfig.from_dict({
    ...     "policies": ["random", "idle"],
    ...     "episodes": 4,
    ...     "simulator": {"num_worlds": 8, "episode_length": 10},
    ...     "scheduler": {"type": "fair_share"},
    ... })
    >>> config.scheduler
    FairShareScheduler(max_chunk=None)

    Of the simulator `seed`, `world_offset`, `auto_reset` and `max_levels` are not used, and its `observations` only by
    policies that do not say what they read.

    Raises:
        ArgumentError: a value is out of range; the message names the field, its value and the range.
    """

    policies: Annotated[
        tuple[str, ...],
        PathText(),
        "What plays, as texts that doorstep.load_policy() takes; all play the same episodes.",
    ] = ("random",)
    sampling: Annotated[SamplingParams | None, "How networks choose actions; none: as their files say."] = None
    levels: Annotated[str, PathText(), "What is played: reference, curated, or the path of a file with levels."] = (
        "reference"
    )
    reward: Annotated[
        Rewards | None, RewardTerms(), "What agents are rewarded for, in place of the rewards of the levels."
    ] = None
    episodes: Annotated[int, Integer(1, MOST_EPISODES), "Episodes of each policy in each level."] = 100
    seed: Annotated[int, Integer(0, MAX_SEED), "Of the episodes."] = 0
    simulator: Annotated[SimulatorConfig, "Where episodes are played."] = field(
        default_factory=lambda: SimulatorConfig(256)
    )
    devices: Annotated[tuple[str, ...] | None, Device(), "As in a RolloutConfig."] = None
    scheduler: Annotated[SchedulerConfig, "As in a RolloutConfig."] = field(
        default_factory=lambda: SchedulerConfig.of("dynamic_chunk")
    )
    controller: Annotated[ControllerConfig, "As in a RolloutConfig."] = field(
        default_factory=lambda: ControllerConfig.of("pull")
    )

    def _check(self) -> None:
        if self.simulator.cameras is not None:
            refuse("simulator", "without cameras", self.simulator)

    @property
    def rollout(self) -> RolloutConfig:
        """The config of an engine that plays it."""
        return RolloutConfig(self.simulator, devices=self.devices, scheduler=self.scheduler, controller=self.controller)
