"""Runs the command as a user does."""

import subprocess
import sys
from collections.abc import Callable

import pytest

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(tmp_path: object) -> Command:
    """Runs `python -m doorstep ...` in an empty folder."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "doorstep", *arguments],
            cwd=str(tmp_path),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run
