"""Fixtures of all tests: a check that no native object stays alive; separate processes; a browser."""

import contextlib
import gc
import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.forks import FRAMEWORKS, server
from tests.live_objects import more_than
from tests.skips import refuse_skip
from tests.system_packages import chromium, chromium_environment, chromium_options

import doorstep
from doorstep.rollouts import ControllerConfig, SchedulerConfig

FAILED = pytest.StashKey[bool]()

PROCESS_SECONDS = 280  # less than the limit of a test, of which nothing is printed


def pytest_configure():
    """What the processes of the tests inherit."""
    # Several processes share the cores: threads of PyTorch would wait for each other, which takes processor time.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # A shell's background processes ignore SIGINT.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """Nothing that the modules of the tests hold ends before the process: collections of garbage leave it out, of which
    tests that raise errors need one each."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    refuse_skip(report)
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    report = yield
    refuse_skip(report)
    return report


@pytest.fixture(autouse=True)
def _nothing_native_is_left_alive(request):
    before = doorstep.live_counts()
    yield
    request.node.funcargs.clear()  # pytest keeps the values of fixtures after their teardown
    if request.node.stash.get(FAILED, False):  # a failed test's traceback keeps its objects alive
        return
    if more_than(before):
        gc.collect()
        gc.freeze()  # later collections leave out what survived this one, too
    assert more_than(before) == {}


@pytest.fixture
def undone_registrations():
    """Forgets the schedulers, controllers and curricula that a test registers, which other tests would find."""
    registries = [SchedulerConfig.registry, ControllerConfig.registry]
    with contextlib.suppress(ImportError):  # PyTorch is missing, and nobody registers curricula
        registries.append(importlib.import_module("doorstep.training").CurriculumConfig.registry)
    before = [dict(registry._classes) for registry in registries]
    yield
    for registry, classes in zip(registries, before, strict=True):
        registry._classes = classes


@pytest.fixture
def run_python():
    """Runs code in a process of its own; it must exit with status 0 and an empty stderr. Returns stdout."""

    def run(code, **environment):
        frameworks = [name for name in FRAMEWORKS if f"import {name}" in code]
        done = server(*frameworks).run(code, environment=environment or None, timeout=PROCESS_SECONDS)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


@pytest.fixture
def run_new_python():
    """The same in a new interpreter, which may have options, and which has imported nothing."""

    def run(code, *options, **environment):
        command, how = [sys.executable, "-W", "error", *options, "-c", code], {"env": environment or None}
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROCESS_SECONDS, check=False, **how)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium. While playwright runs, so does its event loop, beside which tests cannot run another."""
    api = pytest.importorskip("playwright.sync_api", reason="Chromium is driven with playwright")
    path, options, environment = chromium(), chromium_options(), {**os.environ, **chromium_environment()}
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=str(path), args=options, env=environment)
        yield launched
        launched.close()


@pytest.fixture(params=["device", "fifo", "folder"])
def irregular_file(request, tmp_path):
    """A path at which there is something else than a regular file."""
    path = Path("/dev/zero") if request.param == "device" else tmp_path / request.param
    if request.param == "fifo":
        os.mkfifo(path)  # without a writer: a plain open() would wait for one
    if request.param == "folder":
        path.mkdir()
    return path
