"""The soak of the engine for half a minute; `make soak-rollouts` runs it for longer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-m", "tests.soak_rollouts", "--minutes", "0.5", "--requests-per-minute", "1000"]


def test_nothing_is_lost_doubled_or_left_behind() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))}
    done = subprocess.run(
        COMMAND, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "troubles: 0" in done.stdout
