"""`SimulatorConfig`: every rule of a simulator as one value that can be compared, changed, stored and sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, final

from doorstep._arguments import is_integer, refuse
from doorstep._configs import Device, Integer, NativeConfig, Rule
from doorstep._native import MAX_GLOBAL_WORLDS
from doorstep._native._generated import ActionCheckName, ConfigKind
from doorstep._observations import (
    OBSERVATIONS,
    AnyObservations,
    ObservationsRule,
    flat_size,
    part_names,
    to_native,
)
from doorstep.cameras import Cameras


@final
@dataclass(frozen=True)
class SimulatorConfig(NativeConfig):
    """The rules of a simulator: the arguments of `Simulator`, except `stream`, with the same names and defaults.

    Two configs with equal fields are equal. Values are checked when the config is made.

    >>> import doorstep
    >>> config = doorstep.SimulatorConfig(1024, seed=7)
    >>> config.replace(seed=8).seed
    8
    >>> doorstep.SimulatorConfig.from_json(config.to_json()) == config
    True
    >>> sim = doorstep.Simulator.from_config(config)
    >>> sim.config == config
    True

    Raises:
        ArgumentError: a value is out of range; the message names the field, its value and the range.
    """

    kind = ConfigKind.SIMULATOR

    # generated: ds_simulator_config
    num_worlds: Annotated[int, Integer(1, 1073741824), "Worlds that are stepped at once."]
    _: KW_ONLY
    device: Annotated[str, Device(), "Where the worlds are: cpu, cuda, cuda:K or auto."] = "cpu"
    seed: Annotated[int, Integer(0, 4294967295), "The same seed gives the same levels."] = 0
    world_offset: Annotated[
        int,
        Integer(0, 4294967296),
        "World i is global world world_offset + i; world_offset + num_worlds is at most 2**32.",
    ] = 0
    num_agents: Annotated[int, Integer(1, 8), "Agents in each world."] = 2
    episode_length: Annotated[int, Integer(1, 1000000), "Steps of an episode."] = 200
    num_threads: Annotated[
        int | None,
        Integer(1, 1024),
        "Threads that step; none: as many as the process may use.",
    ] = None
    auto_reset: Annotated[bool, "A step regenerates the worlds whose episode it ends."] = True
    action_check: Annotated[ActionCheckName, "Handling of actions out of range."] = "clamp"
    strict: Annotated[bool, "Trouble in a world makes the next call fail."] = False
    observations: Annotated[
        AnyObservations,
        ObservationsRule(),
        "Parts of the flat observation, in order, with their scales.",
    ] = OBSERVATIONS
    max_levels: Annotated[int, Integer(0, 1048576), "Room for this many levels; 0: the reference's levels only."] = 0
    # end
    cameras: Annotated[Cameras | None, "Tensors with what every agent sees; none: no cameras."] = None

    def _rule_here(self, name: str, rule: Rule) -> Rule:
        return Integer(0, MAX_GLOBAL_WORLDS - self.num_worlds) if name == "world_offset" else rule

    def _check(self) -> None:
        if part_names(self.observations) and not flat_size(self.observations, self.num_agents):
            hint = "agents without partners have none of it to observe"
            refuse("observations", "parts that have values with num_agents=1", self.observations, hint)

    @property
    def has_flat_observations(self) -> bool:
        """Whether there are the tensors `observations` and `final_observations`."""
        return bool(part_names(self.observations))

    def native_fields(self) -> dict[str, Any]:
        return {**super().native_fields(), "observations": to_native(self.observations)}


def as_config(config: SimulatorConfig | int, changes: Mapping[str, Any]) -> SimulatorConfig:
    """The config that a function was given as a SimulatorConfig, or as a number of worlds, and keywords.

    Raises:
        ArgumentError: a keyword is not a field, or a value is out of range.
    """
    if isinstance(config, SimulatorConfig):
        return config.replace(**changes) if changes else config
    if not is_integer(config):
        hint = "pass sim.config" if isinstance(getattr(config, "config", None), SimulatorConfig) else ""
        refuse("config", "a doorstep.SimulatorConfig, or the number of worlds", config, hint)
    SimulatorConfig.check_names(changes)
    return SimulatorConfig(int(config), **changes)
