"""The finished wheel, and programs that stand in for those of the system."""

from pathlib import Path

import pytest

from wheel_file import Wheel

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def finished():
    """The wheel that is being tested."""
    (path,) = (PROJECT / "dist").glob("doorstep-*.whl")  # make wheel puts exactly one there
    return Wheel(path, PROJECT)


@pytest.fixture
def add_program(tmp_path, monkeypatch):
    """Writes a shell script that precedes the system's programs on the path during the test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def add(name, script):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    return add
