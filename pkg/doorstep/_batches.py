"""What `doorstep.jax` and `doorstep.torch` share: worlds outside a simulator, in the framework's own tensors."""

from __future__ import annotations

from typing import NamedTuple

from doorstep._native import TENSORS, ActionCheck, DeviceKind, batch_info
from doorstep.config import SimulatorConfig
from doorstep.errors import ArgumentError, DeviceError
from doorstep.simulator import choose_device

WORLD_TENSORS = tuple(row for row in TENSORS if not row.levels)  # batches play the reference's levels
NAMES = tuple(row.name for row in WORLD_TENSORS)
INPUTS = tuple(row.name for row in WORLD_TENSORS if row.writable)  # which a step writes too
OUTLIVING = tuple(row.name for row in WORLD_TENSORS if row.outlives_step)
FLAT = tuple(row.name for row in WORLD_TENSORS if row.flat)  # which a step writes only if they exist


class BatchRules(NamedTuple):
    """The rules of a step that are not stored in the worlds."""

    num_agents: int
    episode_length: int
    auto_reset: bool
    action_check: ActionCheck


def batch_rules(config: SimulatorConfig) -> BatchRules:
    """The rules of a config.

    Raises:
        ArgumentError: the config asks for what only a simulator does: steps that raise, or cameras.
    """
    if config.action_check == "raise":
        _refuse("action_check", config.action_check, "'clamp' or 'off'", "a step within a program cannot raise")
    if config.strict:
        _refuse("strict", config.strict, "False", "a step within a program cannot raise")
    if config.max_levels:
        _refuse("max_levels", config.max_levels, "0", "only a Simulator plays other levels than the reference's")
    if config.cameras is not None:
        _refuse("cameras", config.cameras, "None", "only a Simulator draws what cameras see")
    return BatchRules(
        config.num_agents, config.episode_length, config.auto_reset, ActionCheck[config.action_check.upper()]
    )


def usable_device(config: SimulatorConfig) -> tuple[DeviceKind, int]:
    """The device of a config, with "auto" decided.

    Raises:
        DeviceError: an explicit GPU cannot be used.
    """
    kind, index = choose_device(config.device)
    if kind == DeviceKind.CPU:
        return kind, index
    try:
        batch_info(DeviceKind.CUDA, index, config.num_worlds, config.num_agents)  # loads the kernels there
    except DeviceError:
        if kind == DeviceKind.CUDA:
            raise
        return DeviceKind.CPU, 0
    return DeviceKind.CUDA, index


def _refuse(name: str, value: object, requirement: str, reason: str) -> None:
    raise ArgumentError(f"{name} is {value!r}; it must be {requirement}", argument=name, hint=reason)
