"""The suites whose calls are fast calls hold without them too."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.cuda.stand_in_driver import PROJECT
from tests.interop.modes import environment

SUITES = (
    "tests/pkg/test_simulator.py",
    "tests/pkg/test_tensor.py",
    "tests/pkg/test_threads.py",
    "tests/interop/test_bind.py",
    "tests/interop/test_c_api.py",
    "tests/interop/test_set.py",
)


@pytest.mark.slow
def test_suites_hold_with_ctypes_alone() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SUITES]
    done = subprocess.run(command, cwd=PROJECT, env=environment("0"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
