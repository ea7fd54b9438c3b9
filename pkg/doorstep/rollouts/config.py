"""`RolloutConfig` and the parts of which it is made: the simulator, the scheduler, the controller and the
metrics of an engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, final

from doorstep._arguments import refuse
from doorstep._configs import Device, Integer, NativeConfig, Number, PolymorphicConfig, Registry, registered
from doorstep._native._generated import MAX_REPLICAS, ConfigKind
from doorstep.config import SimulatorConfig
from doorstep.levels.reward_terms import RewardTerms
from doorstep.levels.rules import Rewards, check_reward
from doorstep.metrics.config import MetricsConfig


@dataclass(frozen=True)
class SchedulerConfig(PolymorphicConfig, NativeConfig):
    """How replicas take requests that wait: `SchedulerConfig.of("priority")`, or a class of yours, see `register()`.

    >>> from doorstep.rollouts import SchedulerConfig
    >>> SchedulerConfig.of("priority", max_chunk=8)
    PriorityScheduler(max_chunk=8)
    """

    registry = Registry("scheduler")
    kind = ConfigKind.SCHEDULER
    native_type_of_others = "caller"

    # generated: ds_scheduler_config
    max_chunk: Annotated[
        int | None,
        Integer(1, 1073741824),
        "Most episodes that a replica begins between two steps; none: as many as it has free worlds.",
    ] = None
    # end


@registered
@final
@dataclass(frozen=True)
class FixedChunkScheduler(SchedulerConfig):
    """In order of arrival, at most `max_chunk` between two steps."""

    # generated: ds_scheduler_config FIXED_CHUNK
    type: ClassVar[str] = "fixed_chunk"
    # end


@registered
@final
@dataclass(frozen=True)
class DynamicChunkScheduler(SchedulerConfig):
    """In order of arrival, as many between two steps as keep the time to begin episodes below a part of a step's."""

    # generated: ds_scheduler_config DYNAMIC_CHUNK
    type: ClassVar[str] = "dynamic_chunk"
    begin_fraction: Annotated[
        float,
        Number(above=0, high=1),
        "Part of a step's time that the episodes begun between two steps may take.",
    ] = 1.0
    # end


@registered
@final
@dataclass(frozen=True)
class PriorityScheduler(SchedulerConfig):
    """The highest `priority` first."""

    # generated: ds_scheduler_config PRIORITY
    type: ClassVar[str] = "priority"
    # end


@registered
@final
@dataclass(frozen=True)
class EarliestDeadlineScheduler(SchedulerConfig):
    """The earliest deadline first; requests without one last."""

    # generated: ds_scheduler_config EARLIEST_DEADLINE
    type: ClassVar[str] = "earliest_deadline"
    # end


@registered
@final
@dataclass(frozen=True)
class LeastRemainingStepsScheduler(SchedulerConfig):
    """The smallest `max_steps` first; requests without a limit last."""

    # generated: ds_scheduler_config LEAST_REMAINING_STEPS
    type: ClassVar[str] = "least_remaining_steps"
    # end


@registered
@final
@dataclass(frozen=True)
class FairShareScheduler(SchedulerConfig):
    """Policies of agent 0 get equal numbers of steps, as far as their requests say how many they need (`max_steps`); in
    order of arrival for each policy."""

    # generated: ds_scheduler_config FAIR_SHARE
    type: ClassVar[str] = "fair_share"
    # end


@dataclass(frozen=True)
class ControllerConfig(PolymorphicConfig, NativeConfig):
    """Which replica plays a request: `ControllerConfig.of("round_robin")`, or a class of yours, see `register()`."""

    registry = Registry("controller")
    kind = ConfigKind.CONTROLLER
    native_type_of_others = "caller"

    # generated: ds_controller_config
    # end


@registered
@final
@dataclass(frozen=True)
class PullController(ControllerConfig):
    """The one that takes it first."""

    # generated: ds_controller_config PULL
    type: ClassVar[str] = "pull"
    # end


@registered
@final
@dataclass(frozen=True)
class RoundRobinController(ControllerConfig):
    """The one whose turn it was when the request was submitted, or any if that has ended."""

    # generated: ds_controller_config ROUND_ROBIN
    type: ClassVar[str] = "round_robin"
    # end


@final
@dataclass(frozen=True)
class RolloutConfig(NativeConfig):
    """The rules of a `RolloutEngine`.

    >>> import doorstep
    >>> config = doorstep.RolloutConfig(doorstep.SimulatorConfig(256), devices=("cpu", "cpu"))
    >>> config.scheduler
    DynamicChunkScheduler(max_chunk=None, begin_fraction=1.0)

    A scheduler and a controller may be given by their type tags: `scheduler="priority"`. Of the simulator `seed`,
    `world_offset` and `auto_reset` are not used, and it has no `cameras`. With `observations="by_name"` it has the
    default ones. In `devices` "cpu" may be there more than once.

    Raises:
        ArgumentError: a value is out of range; the message names the field, its value and the range.
    """

    kind = ConfigKind.ROLLOUT

    # generated: ds_rollout_config
    simulator: Annotated[SimulatorConfig, "Of every replica. Requests with levels need a positive max_levels."]
    devices: Annotated[
        tuple[str, ...] | None,
        Device(),
        "One replica is made on each; none: one, on the simulator's device.",
    ] = None
    scheduler: Annotated[SchedulerConfig, "How replicas take requests."] = field(default_factory=DynamicChunkScheduler)
    controller: Annotated[ControllerConfig, "Which replica plays a request."] = field(default_factory=PullController)
    metrics: Annotated[MetricsConfig, "What the engine measures."] = field(default_factory=MetricsConfig)
    queue_capacity: Annotated[int, Integer(1, 16777216), "Requests that wait at most."] = 1048576
    output_capacity: Annotated[
        int,
        Integer(1, 16777216),
        "Replicas begin no episode of submit() while so many outputs wait to be read.",
    ] = 1048576
    output_bytes: Annotated[
        int,
        Integer(1, 1099511627776),
        "Likewise, while what these outputs record takes so much memory.",
    ] = 268435456
    max_policies: Annotated[int, Integer(1, 1024), "Different policies that unanswered requests may have."] = 64
    max_restarts: Annotated[int, Integer(0, 1000000), "Times that a replica is made again after it has failed."] = 3
    # end
    reward: Annotated[
        Rewards | None, RewardTerms(), "What agents are rewarded for, in place of the rewards of the levels."
    ] = None

    def _check(self) -> None:
        if self.simulator.cameras is not None:
            refuse("simulator", "without cameras", self.simulator, "policies of an engine read flat observations")
        if len(self.replica_devices) > MAX_REPLICAS:
            refuse("devices", f"at most {MAX_REPLICAS} devices", self.devices)

    @property
    def replica_devices(self) -> tuple[str, ...]:
        """The device of each replica."""
        return self.devices or (self.simulator.device,)


def with_reward(config: RolloutConfig, reward: Rewards | None) -> RolloutConfig:
    """The config with a reward, if there is one.

    Raises:
        ArgumentError: it is something else than `Rewards`.
    """
    instead = "let requests record observations, and compute rewards of the results; train() takes functions"
    given = check_reward(reward, instead)
    return config if given is None else config.replace(reward=given)
