"""Runs the command as a user does."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from doorstep.cli import main

Command = Callable[..., "subprocess.CompletedProcess[str]"]
Refused = Callable[..., str]


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


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs the command with a mistake, in an empty folder: it must exit with status 2, print one line to stderr, and
    leave no file. Returns the line."""

    def run(*arguments: str) -> str:
        monkeypatch.chdir(tmp_path)
        assert main(arguments) == 2
        output = capsys.readouterr()
        assert output.out == ""
        assert output.err.count("\n") == 1
        assert not list(tmp_path.iterdir())
        return output.err

    return run
