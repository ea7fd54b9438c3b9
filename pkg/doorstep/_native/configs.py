"""Handles of configurations."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any, final

from doorstep._native import _generated as native
from doorstep._native.calls import read_struct, read_value
from doorstep._native.handle import Handle, new_handle
from doorstep._native.library import load

_STRUCTS: dict[int, type[ctypes.Structure]] = {
    kind: getattr(native, f"{kind.name.title()}Config") for kind in native.ConfigKind
}
_TYPES: dict[int, type[IntEnum]] = {
    native.ConfigKind.SCHEDULER: native.Scheduler,
    native.ConfigKind.CONTROLLER: native.Controller,
}


@final
class ConfigHandle(Handle):
    """A configuration. Other native objects that are made from it share it."""

    def __init__(self, value: int) -> None:
        super().__init__(value, load().ds_config_release)

    @classmethod
    def create(cls, kind: int, values: dict[str, Any]) -> ConfigHandle:
        """values: of the fields of its struct; others are ignored, absent ones have their defaults."""
        struct = read_struct(_function(kind, "default"), _STRUCTS[kind])
        for name, *_ in struct._fields_:
            if name in values:
                _set(struct, kind, name, values[name])
        return cls(new_handle(_function(kind, "create"), ctypes.byref(struct)))

    def kind(self) -> native.ConfigKind:
        return native.ConfigKind(read_value(load().ds_config_get_kind, ctypes.c_int32, self.value))

    def struct(self) -> Any:
        """Its fields, read back; parts are 0."""
        kind = self.kind()
        return read_struct(_function(kind, "get"), _STRUCTS[kind], self.value)

    def part(self, kind: int) -> ConfigHandle:
        return ConfigHandle(new_handle(load().ds_config_get_part, self.value, kind))


def _function(kind: int, name: str) -> Any:
    """That of the configurations of a kind."""
    return getattr(load(), f"ds_{native.ConfigKind(kind).name.lower()}_config_{name}")


def _set(struct: ctypes.Structure, kind: int, name: str, value: Any) -> None:
    if name == "type" and kind in _TYPES:
        tag, other = value
        numbers = _TYPES[kind].__members__
        value = numbers.get(tag.upper(), numbers.get(other.upper()))
    elif isinstance(value, list):
        for device, (device_kind, index) in zip(getattr(struct, name), value, strict=False):
            device.kind, device.index = device_kind, index
        return
    elif isinstance(value, Handle):
        value = value.value
    setattr(struct, name, value)
