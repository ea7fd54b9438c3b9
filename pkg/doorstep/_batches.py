"""What `doorstep.jax` and `doorstep.torch` share: worlds outside a simulator, in the framework's own tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from doorstep._arguments import refuse
from doorstep._level_table import room_for
from doorstep._native import TENSORS, ActionCheck, DeviceKind, batch_info
from doorstep._native._generated import Level as NativeLevel
from doorstep._observations import to_native
from doorstep.config import SimulatorConfig
from doorstep.errors import DeviceError
from doorstep.levels import Rewards, reference
from doorstep.levels.choice import table_levels
from doorstep.levels.files import AnyLevel
from doorstep.levels.native import to_native_array
from doorstep.levels.rules import check_reward
from doorstep.simulator import Simulator, choose_device

NAMES = tuple(row.name for row in TENSORS)
INPUTS = ("resets", "actions")  # which a step writes too
LEVEL_NAMES = tuple(row.name for row in TENSORS if row.levels)  # only with max_levels
FLAT = tuple(row.name for row in TENSORS if row.flat)  # which a step writes only if they exist
# Written where an episode ends or begins; but "level_weights", which no step writes
OUTLIVING = tuple(row.name for row in TENSORS if row.outlives_step)
LEVEL_WORDS = memoryview(NativeLevel()).nbytes // 4


class BatchRules(NamedTuple):
    """The rules of a step that are not stored in the worlds."""

    num_agents: int
    episode_length: int
    auto_reset: bool
    action_check: ActionCheck
    max_levels: int
    observations: tuple[float, ...]  # number and scale of each part of the flat observation, one after the other
    reward: tuple[float, ...]  # the numbers of Rewards in place of those of levels, if any

    def has(self, name: str) -> bool:
        """Whether worlds of these rules have a tensor."""
        if name in FLAT:
            return bool(self.observations)
        return self.max_levels > 0 or name not in LEVEL_NAMES

    @property
    def kind(self) -> tuple[int, int, tuple[float, ...]]:
        """What the sizes of tensors depend on, as `batch_info()` takes it."""
        return self.num_agents, self.max_levels, self.observations


def batch_rules(config: SimulatorConfig, reward: Rewards | None) -> BatchRules:
    """The rules of a config, and of rewards in place of the levels' own.

    Raises:
        ArgumentError: the config asks for what only a simulator does: steps that raise, or cameras; or `reward` is
            something else.
    """
    given = check_reward(reward)
    numbers = () if given is None else tuple(vars(given).values())
    if config.action_check == "raise":
        refuse("action_check", "'clamp' or 'off'", config.action_check, "a step within a program cannot raise")
    if config.strict:
        refuse("strict", "False", config.strict, "a step within a program cannot raise")
    if config.cameras is not None:
        refuse("cameras", "None", config.cameras, "only a Simulator draws what cameras see")
    action_check = ActionCheck[config.action_check.upper()]
    parts = to_native(config.observations)
    scaled = zip(parts.parts[: parts.num_parts], parts.scales, strict=False)
    return BatchRules(
        config.num_agents,
        config.episode_length,
        config.auto_reset,
        action_check,
        config.max_levels,
        tuple(float(number) for part in scaled for number in part),
        numbers,
    )


def with_levels(config: SimulatorConfig, levels: object) -> tuple[SimulatorConfig, list[AnyLevel]]:
    """The config with room for the levels of an argument, and these levels: none for worlds without a table.

    Raises:
        ArgumentError, OSError: as `Simulator` with these levels.
    """
    chosen = table_levels(levels)
    config = config.replace(max_levels=room_for(chosen, config.max_levels))
    return config, chosen or [reference()] * (config.max_levels > 0)


def level_table(config: SimulatorConfig, chosen: Sequence[AnyLevel]) -> bytes:
    """The `max_levels` levels that a batch draws from, as the native library takes them.

    Raises:
        ArgumentError: as `Simulator.set_levels()`.
    """
    # A simulator checks them: nothing else does before worlds read them
    with Simulator(1, num_agents=config.num_agents, max_levels=config.max_levels, num_threads=1) as sim:
        sim.set_levels(chosen)
    return bytes(to_native_array(chosen)) + bytes(to_native_array([reference()])) * (config.max_levels - len(chosen))


def check_no_levels(levels: object) -> None:
    """Refuses levels for a batch without room for them."""
    if levels is not None:
        refuse("max_levels", "at least 1 for levels", 0, "make the batch with levels, or with max_levels=8")


def usable_device(config: SimulatorConfig) -> tuple[DeviceKind, int]:
    """The device of a config, with "auto" decided.

    Raises:
        DeviceError: an explicit GPU cannot be used.
    """
    kind, index = choose_device(config.device)
    if kind == DeviceKind.CPU:
        return kind, index
    try:
        # Loads the kernels there
        batch_info(DeviceKind.CUDA, index, config.num_worlds, config.num_agents, config.max_levels)
    except DeviceError:
        if kind == DeviceKind.CUDA:
            raise
        return DeviceKind.CPU, 0
    return DeviceKind.CUDA, index
