"""Tests that run in a process of their own, in which the stand-in is NVIDIA's driver.

    @on_stand_in(devices=2)
    def test_something() -> None: ...

The function's body runs in the child. At its end nothing may be left alive, and no rule of the driver may have been
broken. What it prints is returned, for a test of another process to look at.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.cuda import stand_in_driver
from tests.cuda.stand_in_driver import FOLDER, LIBRARY_NAME
from tests.forks import FRAMEWORKS, end_process, server

import doorstep

Test = TypeVar("Test", bound=Callable[..., None])

RUN_CHILD = "import sys; from tests.cuda.on_stand_in import child; child(*sys.argv[1:])"
TIMEOUT = 280  # seconds
# This driver is given PTX where the library has no machine code for the device. For newer ones the library compiles it,
# for seconds a module.
DEFAULTS: dict[str, int | str] = {"driver_version": 12090}


def on_stand_in(**settings: int | str) -> Callable[[Test], Test]:
    """Makes a test run on the stand-in; settings are those of tests/cuda/stand_in/driver.h."""

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run_in_child(**arguments: Any) -> None:
            run([RUN_CHILD, test.__module__, test.__name__, json.dumps(arguments)], settings, test.__globals__)

        return run_in_child  # type: ignore[return-value]

    return decorate


def run(code_and_arguments: list[str], settings: dict[str, int | str], modules: Collection[str] = ()) -> str:
    """Runs code in a process with the stand-in; what it prints. `modules` are those that it imports."""
    require_stand_in()
    code, *arguments = code_and_arguments
    # The variable with the folders of libraries was read when the server began; a loaded library is found by its name.
    code = f"import ctypes; ctypes.CDLL({str(FOLDER / LIBRARY_NAME)!r})\n{code}"
    frameworks = [name for name in FRAMEWORKS if name in modules]
    done = server(*frameworks).run(code, *arguments, environment=environment_of(settings), timeout=TIMEOUT)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def environment_of(settings: dict[str, int | str], folder: Path = FOLDER) -> dict[str, str]:
    """Variables for a process whose driver is the library in `folder`; this one's path of modules is kept."""
    chosen = {f"STAND_IN_{name.upper()}": str(value) for name, value in {**DEFAULTS, **settings}.items()}
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, **chosen, "LD_LIBRARY_PATH": str(folder), "PYTHONPATH": path}


def require_stand_in() -> None:
    """Skips where it is not built: `make test-native` builds it, a release does not."""
    if not (FOLDER / LIBRARY_NAME).exists():
        pytest.skip("the stand-in for the CUDA driver is not built; build it with: make test-native")


def child(module: str, test: str, arguments: str) -> None:
    """Runs the body of a test, then looks at what it leaves. test_lifetimes.py has tests of the interpreter's end."""
    getattr(importlib.import_module(module), test).__wrapped__(**json.loads(arguments))
    check_nothing_is_left()
    end_process()


def check_nothing_is_left() -> None:
    """No rule of the driver was broken, and everything made was given back."""
    gc.collect()
    if not stand_in_driver.may_stay:
        stand_in_driver.finish()
    end = stand_in_driver.report()
    assert stand_in_driver.violations_expected or end.violations == [], "\n".join(end.violations)
    assert stand_in_driver.may_stay or end.live == {}, end.live
    devices = int(os.environ.get("STAND_IN_DEVICES", 1))  # doorstep keeps the context of each one that it has used
    assert stand_in_driver.may_stay or end.contexts <= devices, end.contexts
    assert stand_in_driver.may_stay or not any(doorstep.live_counts().values()), doorstep.live_counts()
