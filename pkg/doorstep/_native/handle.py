"""`Handle`: the owner of a handle of the C API."""

from __future__ import annotations

import ctypes
from typing import Any

from doorstep._copies import Owner
from doorstep._native.calls import read_value
from doorstep._native.finalizer import Finalizer


class Handle(Owner):
    """Owns a handle of the C API; what it stands for lives while the library uses it."""

    def __init__(self, value: int, release: Any) -> None:
        self.value = value
        self._finalizer = Finalizer(self, release, value)

    def release(self) -> None:
        self._finalizer()


def new_handle(function: Any, *arguments: Any) -> int:
    """The handle that a function of the C API returns through its last parameter."""
    handle: int = read_value(function, ctypes.c_uint64, *arguments)
    return handle
