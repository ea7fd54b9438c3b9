"""The soak of the engine: each way to end one, or a minute and a half; `make soak-rollouts` runs it for longer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-m", "tests.soak_rollouts", "--requests-per-minute", "1000"]


@pytest.mark.parametrize(
    "options",
    [
        ["--minutes", "0", "--rounds", "5", "--round-seconds", "0.3"],
        pytest.param(["--minutes", "1.5"], marks=pytest.mark.slow),  # the first half-minute fills the allocator
    ],
    ids=["short", "long"],
)
def test_nothing_is_lost_doubled_or_left_behind(options: list[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))}
    done = subprocess.run(
        [*COMMAND, *options], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "troubles: 0" in done.stdout
