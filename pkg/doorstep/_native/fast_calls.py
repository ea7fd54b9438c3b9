"""Functions of the library as builtins of Python. ctypes does the same at ten times the cost where there are none."""

from __future__ import annotations

import ctypes
import functools
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from doorstep._native.library import LIBRARY_PATH, load
from doorstep._native.status import check, raise_last_error
from doorstep.errors import LibraryError, Status

# "0" leaves everything to ctypes.
SWITCH = "DOORSTEP_FAST_CALLS"


@functools.cache
def fast_calls() -> Mapping[str, Callable[..., Any]] | None:
    """The builtins by name; None if they are switched off.

    Also None, with a warning, if Python's functions are not visible to libraries, as in a program that loaded libpython
    for itself alone.
    """
    load()
    if os.environ.get(SWITCH) == "0":
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
