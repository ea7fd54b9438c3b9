"""Configs with a native twin: an immutable object of the library, which the library's other objects are made from."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from doorstep._arguments import check_device
from doorstep._configs.annotations import field_rules
from doorstep._configs.config import Config
from doorstep._configs.rules import Choice, Device, Integer, Items, Optional, Rule
from doorstep._native import DeviceKind
from doorstep._native._generated import DEVICE_INDEX_CURRENT, ConfigKind

if TYPE_CHECKING:
    from doorstep._native.configs import ConfigHandle


@dataclass(frozen=True)
class NativeConfig(Config):
    """A config with the fields of a struct of the C API, ds_<kind>_config. Fields that the struct lacks, such as
    `cameras`, are Python's alone."""

    kind: ClassVar[ConfigKind]
    native_type_of_others: ClassVar[str] = ""  # stands for type tags that the library does not know

    @property
    def native_handle(self) -> int:
        """The ds_config, which this config keeps alive."""
        return self._handle().value

    def _handle(self) -> ConfigHandle:
        from doorstep._native.configs import ConfigHandle  # loads nothing before it is needed

        state = self.__dict__
        if "_native" not in state:
            state.setdefault("_native", ConfigHandle.create(self.kind, self.native_fields()))
        handle: ConfigHandle = state["_native"]
        return handle

    def native_fields(self) -> dict[str, Any]:
        """The fields of the struct."""
        values: dict[str, Any] = {}
        if hasattr(self, "type"):
            values["type"] = self.type, self.native_type_of_others
        for name, (rule, _) in field_rules(type(self)).items():
            values.update(_native_values(name, rule, getattr(self, name)))
        return values

    def __getstate__(self) -> dict[str, Any]:
        """For copies and other processes: they make a twin of their own."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


def _native_values(name: str, rule: Rule, value: Any) -> dict[str, Any]:
    """The fields of the struct that a field is."""
    if isinstance(rule, Optional) and isinstance(rule.rule, Integer):
        return {name: rule.rule.low - 1 if value is None else value}
    if isinstance(rule, Optional) and isinstance(rule.rule, Items):
        return {f"num_{name}": len(value or ()), name: [_native_device(device) for device in value or ()]}
    if isinstance(rule, Device):
        kind, index = _native_device(value)
        return {f"{name}_kind": kind, f"{name}_index": index}
    if isinstance(rule, Choice):
        return {name: rule.names.index(value)}
    return {name: value._handle() if isinstance(value, NativeConfig) else value}


def _native_device(device: str) -> tuple[DeviceKind, int]:
    kind, index = check_device(device)
    if index is None:
        index = DEVICE_INDEX_CURRENT if kind == DeviceKind.CUDA else 0
    return kind, index
