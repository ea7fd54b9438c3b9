"""Calls of the C API: statuses become exceptions, Ctrl-C ends waits, and frequent functions are builtins of Python."""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from doorstep._environment import environment_integer
from doorstep._native._generated import Error
from doorstep._native.library import LIBRARY_PATH, load
from doorstep.errors import ERROR_CLASSES, DoorstepError, LibraryError, Status

# Arguments that have other names in C than in Python.
PYTHON_ARGUMENTS = {"count": "worlds", "bytes": "data", "device_index": "device"}
# Remedies in the words of the C API, and as one writes them in Python.
PYTHON_REMEDIES = {"use the CPU": 'use device="cpu"', "an action_check that clamps": 'action_check="clamp"'}

# A wait without limit is cut into slices, because signals (Ctrl-C) are handled only between two calls.
SLICE_NANOSECONDS = 50_000_000

# 0 calls everything through ctypes.
SWITCH = "DOORSTEP_FAST_CALLS"

_Struct = TypeVar("_Struct", bound=ctypes.Structure)


# ---- Statuses ----


def check(status: int) -> None:
    """Raises the exception of a status, unless it is OK."""
    if status:
        raise_last_error(status)


def raise_last_error(status: int) -> NoReturn:
    """Raises what this thread's latest failing call reported."""
    error = sized(Error)
    load().ds_last_error(ctypes.byref(error))
    argument = _text(error.argument)
    raise ERROR_CLASSES.get(status, DoorstepError)(
        _text(error.message) or f"the native library returned status {status}",
        argument=PYTHON_ARGUMENTS.get(argument, argument),
        hint=_in_python(_text(error.hint)),
        driver_code=error.driver_code,
    )


def _in_python(hint: str) -> str:
    for remedy, words in PYTHON_REMEDIES.items():
        hint = hint.replace(remedy, words)
    return hint


def _text(value: bytes | None) -> str:
    return value.decode("utf-8", "replace") if value else ""


# ---- Results ----


def sized(struct: type[_Struct], **fields: Any) -> _Struct:
    """A struct that says its size, with these fields; the others are zero."""
    return struct(struct_size=ctypes.sizeof(struct), **fields)


def read_struct(function: Callable[..., int], struct: type[_Struct], *arguments: Any) -> _Struct:
    """The struct that a function fills in through its last parameter."""
    result = sized(struct)
    check(function(*arguments, ctypes.byref(result)))
    return result


def read_value(function: Callable[..., int], kind: Any, *arguments: Any) -> Any:
    """The number or address, of a simple type of ctypes, that a function returns through its last parameter."""
    result = kind()
    check(function(*arguments, ctypes.byref(result)))
    return result.value


# ---- Waits ----


def wait(function: Callable[[int, int], int], handle: int, timeout: float | None) -> bool:
    """Calls a waiting function of the C API until it is done (True) or the timeout in seconds has passed (False)."""
    remaining = None if timeout is None else int(timeout * 1e9)
    while True:
        nanoseconds = SLICE_NANOSECONDS if remaining is None else min(remaining, SLICE_NANOSECONDS)
        status = function(handle, nanoseconds)
        if status != Status.PENDING:
            check(status)
            return True
        if remaining is not None:
            remaining -= nanoseconds
            if remaining <= 0:
                return False


# ---- Fast calls ----


@functools.cache
def fast_calls() -> Mapping[str, Callable[..., Any]] | None:
    """Functions of the library as builtins, by name. ctypes does the same at ten times the cost.

    None if they are switched off; also, with a warning, if Python's functions are not visible to libraries, as in a
    program that loaded libpython for itself alone.
    """
    load()
    if not environment_integer(SWITCH, 1, 0, 1):
        return None
    bind = ctypes.PyDLL(LIBRARY_PATH).ds_python_bind  # keeps the GIL
    bind.argtypes = (ctypes.py_object, ctypes.c_void_p)
    calls = ctypes.py_object()
    status = bind(raise_last_error, ctypes.byref(calls))
    if status == Status.LIBRARY:
        _warn()
        return None
    check(status)
    made: dict[str, Callable[..., Any]] = calls.value
    return made


def _warn() -> None:
    try:
        raise_last_error(Status.LIBRARY)
    except LibraryError as error:
        warnings.warn(
            f"calls of doorstep go through ctypes, which is slower: {error}; {error.hint}, or set {SWITCH}=0",
            RuntimeWarning,
            stacklevel=2,
        )
