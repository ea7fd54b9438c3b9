"""`SimulatorConfig`: every rule of a simulator as one value that can be compared, changed, stored and sent."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

from doorstep._arguments import check_choice, check_device, check_flag, check_integer, is_integer, nearest, refuse
from doorstep._native import (
    MAX_AGENTS,
    MAX_EPISODE_LENGTH,
    MAX_GLOBAL_WORLDS,
    MAX_LEVELS,
    MAX_SEED,
    MAX_THREADS,
    MAX_WORLDS,
    ActionCheck,
)
from doorstep.cameras import Cameras
from doorstep.errors import ArgumentError

ActionCheckName: TypeAlias = Literal["clamp", "raise", "off"]
ACTION_CHECKS = tuple(member.name.lower() for member in ActionCheck)


@final
@dataclass(frozen=True)
class SimulatorConfig:
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

    num_worlds: int
    _: KW_ONLY
    seed: int = 0
    device: str = "cpu"
    num_agents: int = 2
    episode_length: int = 200
    auto_reset: bool = True
    world_offset: int = 0
    num_threads: int | None = None
    action_check: ActionCheckName = "clamp"
    strict: bool = False
    flat_observations: bool = False
    max_levels: int = 0
    cameras: Cameras | None = None

    def __post_init__(self) -> None:
        if self.cameras is not None and not isinstance(self.cameras, Cameras):
            refuse("cameras", "a doorstep.Cameras or None", self.cameras)
        num_worlds = check_integer("num_worlds", self.num_worlds, 1, MAX_WORLDS)
        check_device(self.device)
        checked = {
            "num_worlds": num_worlds,
            "action_check": check_choice("action_check", self.action_check, ACTION_CHECKS),
            "seed": check_integer("seed", self.seed, 0, MAX_SEED),
            "world_offset": check_integer("world_offset", self.world_offset, 0, MAX_GLOBAL_WORLDS - num_worlds),
            "num_agents": check_integer("num_agents", self.num_agents, 1, MAX_AGENTS),
            "episode_length": check_integer("episode_length", self.episode_length, 1, MAX_EPISODE_LENGTH),
            "auto_reset": check_flag("auto_reset", self.auto_reset),
            "strict": check_flag("strict", self.strict),
            "flat_observations": check_flag("flat_observations", self.flat_observations),
            "max_levels": check_integer("max_levels", self.max_levels, 0, MAX_LEVELS),
        }
        if self.num_threads is not None:
            checked["num_threads"] = check_integer("num_threads", self.num_threads, 1, MAX_THREADS)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def replace(self, **changes: Any) -> SimulatorConfig:
        """A config with other values of some fields.

        Raises:
            ArgumentError: a name is not a field, or a value is out of range.
        """
        _check_names(SimulatorConfig, changes)
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, in values that JSON can hold; `cameras` is a dictionary of its fields, or None."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SimulatorConfig:
        """The config of a dictionary as `to_dict()` makes it. Absent fields have their defaults.

        Raises:
            ArgumentError: a name is not a field, `num_worlds` is absent, or a value is out of range.
        """
        fields = _checked_fields(cls, "values", values)
        if "num_worlds" not in fields:
            raise ArgumentError("num_worlds is absent; it must be given", argument="num_worlds")
        if isinstance(fields.get("cameras"), Mapping):
            fields["cameras"] = _cameras_from(fields["cameras"])
        return cls(**fields)

    def to_json(self) -> str:
        """`to_dict()` as JSON on one line."""
        import json  # here, as it would cost a tenth of the time that `import doorstep` takes

        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> SimulatorConfig:
        """The config of a JSON text as `to_json()` makes it.

        Raises:
            ArgumentError: as `from_dict()`, or the text is not a JSON object.
        """
        import json

        try:
            values = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise ArgumentError(f"text is not JSON: {error}", argument="text") from error
        return cls.from_dict(values)


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
    _check_names(SimulatorConfig, changes)
    return SimulatorConfig(int(config), **changes)


def _check_names(cls: Any, values: Mapping[str, Any]) -> None:
    known = [field.name for field in dataclasses.fields(cls)]
    for name in values:
        if name not in known:
            hint = nearest(str(name), known) or f"the fields are {', '.join(known)}"
            raise ArgumentError(f"{name!r} is not a field of {cls.__name__}", argument=str(name), hint=hint)


def _checked_fields(cls: Any, name: str, values: object) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        refuse(name, f"a dictionary of the fields of {cls.__name__}", values)
    _check_names(cls, values)
    return dict(values)


# ---- Values that JSON can hold ----


def _plain(value: Any) -> Any:
    if isinstance(value, Cameras):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, os.PathLike):
        return {"file": os.fsdecode(value)}
    return list(value) if isinstance(value, tuple) else value


def _cameras_from(values: Mapping[str, Any]) -> Cameras:
    fields = _checked_fields(Cameras, "cameras", values)
    material = fields.get("material")
    if isinstance(material, Mapping):
        if list(material) != ["file"] or not isinstance(material["file"], str):
            refuse("material", 'HLSL source, {"file": path} or None', material)
        fields["material"] = Path(material["file"])
    return Cameras(**fields)
