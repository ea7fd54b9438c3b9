"""Tests that run in a process of their own, in which lavapipe, Mesa's Vulkan driver for the CPU, is the only driver.

    @on_vulkan()
    def test_something() -> None: ...

The function's body runs in the child; at its end nothing native may be left alive.
"""

import functools
import gc
import importlib
import json
import os

import pytest
from tests.forks import end_process, server
from tests.system_packages import vulkan_environment

import doorstep

RUN_CHILD = "import sys; from tests.render.on_vulkan import child; child(*sys.argv[1:])"
TIMEOUT = 280  # seconds


def on_vulkan(**variables):
    """Makes a test run with lavapipe and these environment variables."""

    def decorate(test):
        @functools.wraps(test)
        def run_in_child(**arguments):
            run(RUN_CHILD, test.__module__, test.__name__, json.dumps(arguments, default=str), **variables)

        return run_in_child

    return decorate


def each_renderer(test):
    """Makes a test of `renderer` run with each of them, with Vulkan in a process of its own."""

    @pytest.mark.parametrize("renderer", ["raycast", "embree", "vulkan"])
    @functools.wraps(test)
    def run_with(renderer):
        on_vulkan()(test)(renderer=renderer) if renderer == "vulkan" else test(renderer)

    return run_with


def run(code, *arguments, **variables):
    """Runs code in a process with lavapipe; it must end with status 0 and nothing on stderr."""
    environment = {**os.environ, **vulkan_environment(), **variables}
    python = server(LD_LIBRARY_PATH=environment.get("LD_LIBRARY_PATH", ""))  # read when a process starts
    done = python.run(code, *arguments, environment=environment, timeout=TIMEOUT)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def child(module, test, arguments):
    """Runs the body of a test, then looks at what it leaves."""
    getattr(importlib.import_module(module), test).__wrapped__(**json.loads(arguments))
    gc.collect()
    assert not any(doorstep.live_counts().values()), doorstep.live_counts()
    end_process()
