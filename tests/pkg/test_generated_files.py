"""What repeats the headers elsewhere is current: declarations in Python and C, tables of the documentation."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("script", ["native/generate_bindings.py", "docs/generate.py"])
def test_generated_files_are_current(script: str) -> None:
    command = [sys.executable, str(REPOSITORY / script), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
