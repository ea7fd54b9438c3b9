"""The one place where a status of the C API becomes a Python exception."""

from __future__ import annotations

import ctypes
from typing import NoReturn

from doorstep._native._generated import Error
from doorstep._native.library import load
from doorstep.errors import ERROR_CLASSES, DoorstepError

# Where Python passes one object for what are two arguments in C.
PYTHON_ARGUMENTS = {"count": "worlds", "bytes": "data", "device_index": "device"}


def check(status: int) -> None:
    """Raises the exception of a status, unless it is OK."""
    if status:
        raise_last_error(status)


def raise_last_error(status: int) -> NoReturn:
    """Raises what this thread's latest failing call reported."""
    error = Error(struct_size=ctypes.sizeof(Error))
    load().ds_last_error(ctypes.byref(error))
    argument = _text(error.argument)
    raise ERROR_CLASSES.get(status, DoorstepError)(
        _text(error.message) or f"the native library returned status {status}",
        argument=PYTHON_ARGUMENTS.get(argument, argument),
        hint=_text(error.hint),
        driver_code=error.driver_code,
    )


def _text(value: bytes | None) -> str:
    return value.decode("utf-8", "replace") if value else ""
