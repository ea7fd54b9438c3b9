"""Runs the command as a user does."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.forks import COMMAND, server

from doorstep.cli import main

Command = Callable[..., "subprocess.CompletedProcess[str]"]
Refused = Callable[..., str]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Runs the command in a process of its own and an empty folder."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        learns = any("train" in argument or ".safetensors" in argument for argument in arguments)
        return server(*["torch"] * learns).run(COMMAND, *arguments, folder=tmp_path, timeout=120)

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
