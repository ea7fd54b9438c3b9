"""The soak of the engine: each way to end one, or a minute and a half; `make soak-rollouts` runs it for longer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-m", "tests.soak_rollouts", "--requests-per-minute", "1000"]


LONG = pytest.param("--minutes 1.5", marks=pytest.mark.nightly)  # the first half-minute fills the allocator


@pytest.mark.parametrize("options", ["--minutes 0 --rounds 5 --round-seconds 0.3", LONG])
def test_nothing_is_lost_doubled_or_left_behind(options):
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    how = {"cwd": ROOT, "env": {**os.environ, "PYTHONPATH": path}, "capture_output": True, "text": True}
    done = subprocess.run([*COMMAND, *options.split()], **how, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "troubles: 0" in done.stdout
