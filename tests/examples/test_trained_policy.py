"""The script that trains the policy that comes with doorstep runs, stage after stage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from doorstep import load_policy

SCRIPT = Path(__file__).parents[2] / "examples" / "trained_policy.py"


@pytest.mark.slow
def test_a_shortened_run_writes_a_policy(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, "--run-dir", tmp_path, "--shorten", "10000"], check=True)
    assert len(list(tmp_path.glob("stage_*.safetensors"))) == 3
    assert load_policy(tmp_path / "policy.safetensors").num_inputs == 94
