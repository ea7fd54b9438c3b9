"""Runs the command as a user does."""

import io

import pytest
from tests.forks import COMMAND, server

from doorstep.cli import main


class Terminal(io.StringIO):
    """Collects what is drawn, and says that it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def command(tmp_path):
    """Runs the command in a process of its own and an empty folder."""

    def run(*arguments):
        learns = any("train" in argument or ".safetensors" in argument for argument in arguments)
        return server(*["torch"] * learns).run(COMMAND, *arguments, folder=tmp_path, timeout=120)

    return run


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs the command in this process and an empty folder; it must end with the code. Returns what it printed, or the
    bytes of a file that it wrote."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0, wrote=None):
        capsys.readouterr()
        found, said = main(arguments), capsys.readouterr()
        assert found == code, said.err
        return (tmp_path / wrote).read_bytes() if wrote else said.out

    return run


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Runs the command with a mistake, in an empty folder: it must exit with status 2, print one line to stderr, and
    leave no file. Returns the line."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        assert main(arguments) == 2, arguments
        output = capsys.readouterr()
        assert output.out == ""
        assert output.err.count("\n") == 1
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
        return output.err

    return run
