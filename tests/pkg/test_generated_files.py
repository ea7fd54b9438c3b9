"""What repeats the header in another language is current."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_generated_files_are_current() -> None:
    script = REPOSITORY / "native" / "generate_bindings.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
