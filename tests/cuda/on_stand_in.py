"""Tests that run in a process of their own, in which the stand-in is NVIDIA's driver.

    @on_stand_in(devices=2)
    def test_something() -> None: ...

The function's body runs in the child. At its end nothing may be left alive, and no rule of the driver may have been
broken. Tests of this folder need the decorator only for its settings.
"""

import functools
import gc
import importlib
import json
import os
import sys

import pytest
from tests.cuda import stand_in_driver
from tests.cuda.stand_in_driver import FOLDER, LIBRARY_NAME
from tests.cuda.users_memory import UsersArrays
from tests.forks import FRAMEWORKS, end_process, server

import doorstep

RUN_CHILD = "import sys; from tests.cuda.on_stand_in import child; child(*sys.argv[1:])"
TIMEOUT = 280  # seconds
# This driver is given PTX where the library has no machine code for the device. For newer ones the library compiles it,
# for seconds a module.
DEFAULTS = {"driver_version": 12090}


def on_stand_in(**settings):
    """Makes a test run on the stand-in; settings are those of tests/cuda/stand_in/driver.h."""

    def decorate(test):
        @functools.wraps(test)
        def run_in_child(**arguments):
            module = sys.modules[test.__module__]
            run([RUN_CHILD, test.__module__, test.__name__, json.dumps(arguments)], settings, vars(module))

        return run_in_child

    return decorate


def on_gpu(**settings):
    """The same, with a stream of the user and arrays on it, which end after the test has dropped its policies."""

    def decorate(test):
        return on_stand_in(**settings)(with_arrays(test))

    return decorate


def with_arrays(test):
    def run_with_arrays(*arguments):
        with stand_in_driver.users_stream() as stream:
            test(stream, UsersArrays(stream), *arguments)

    run_with_arrays.__name__, run_with_arrays.__module__ = test.__name__, test.__module__
    return run_with_arrays


def refused(argument, match=None, error=doorstep.ArgumentError):
    """A block that raises an error, which names the argument."""
    return pytest.raises(error, match=match, check=lambda caught: caught.argument == argument)


def all_raise(error, *calls):
    for call in calls:
        with pytest.raises(error):
            call()


def run(code_and_arguments, settings, modules=()):
    """Runs code in a process with the stand-in; what it prints. `modules` are those that it imports."""
    require_stand_in()
    code, *arguments = code_and_arguments
    # The variable with the folders of libraries was read when the server began; a loaded library is found by its name.
    code = f"import ctypes; ctypes.CDLL({str(FOLDER / LIBRARY_NAME)!r})\n{code}"
    frameworks = [name for name in FRAMEWORKS if name in modules]
    done = server(*frameworks).run(code, *arguments, environment=environment_of(settings), timeout=TIMEOUT)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def environment_of(settings, folder=FOLDER):
    """Variables for a process whose driver is the library in `folder`; this one's path of modules is kept."""
    chosen = {f"STAND_IN_{name.upper()}": str(value) for name, value in {**DEFAULTS, **settings}.items()}
    path = os.pathsep.join(filter(None, sys.path))
    return {**os.environ, **chosen, "LD_LIBRARY_PATH": str(folder), "PYTHONPATH": path}


def require_stand_in():
    """Skips where it is not built: `make test-native` builds it, a release does not."""
    if not (FOLDER / LIBRARY_NAME).exists():
        pytest.skip("the stand-in for the CUDA driver is not built; build it with: make test-native")


def child(module, test, arguments):
    """Runs the body of a test, then looks at what it leaves. test_lifetimes.py has tests of the interpreter's end."""
    function = getattr(importlib.import_module(module), test)
    getattr(function, "__wrapped__", function)(**json.loads(arguments))
    gc.collect()
    if not stand_in_driver.may_stay:
        stand_in_driver.finish()
    end = stand_in_driver.report()
    assert stand_in_driver.violations_expected or end.violations == [], "\n".join(end.violations)
    if not stand_in_driver.may_stay:
        assert end.live == {}
        # doorstep keeps the context of each device that it has used.
        assert end.contexts <= int(os.environ.get("STAND_IN_DEVICES", 1))
        assert not any(doorstep.live_counts().values()), doorstep.live_counts()
    end_process()
