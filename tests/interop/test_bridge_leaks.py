"""Nothing is left behind by reading and making tensors; the full numbers are in tests.interop.soak_bridge."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_references_and_memory_are_as_before() -> None:
    command = [sys.executable, "-m", "tests.interop.soak_bridge", "--reads", "2e5", "--tensors", "2e4"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("bytes more") == 7
