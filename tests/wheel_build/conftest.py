"""The finished wheel, and deliberately broken copies of it."""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

import check_wheel

PROJECT = Path(__file__).resolve().parent.parent.parent

ChangeWheel = Callable[..., Path]
AddProgram = Callable[[str, str], None]


@pytest.fixture(scope="session")
def finished_wheel() -> Path:
    """The wheel that is being tested."""
    wheels = list((PROJECT / "dist").glob("doorstep-*.whl"))
    assert len(wheels) == 1, "make wheel puts exactly one wheel into dist/"
    return wheels[0]


@pytest.fixture(scope="session")
def finished_files(finished_wheel: Path) -> dict[str, bytes]:
    """The contents of its files, by name."""
    with zipfile.ZipFile(finished_wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


@pytest.fixture(scope="session")
def finished_record(finished_files: dict[str, bytes]) -> dict[str, str]:
    """Lines of its RECORD, by name."""
    return {name: _record_line(name, content) for name, content in finished_files.items()}


@pytest.fixture
def change_wheel(
    finished_wheel: Path,
    finished_files: dict[str, bytes],
    finished_record: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[ChangeWheel]:
    """Writes a copy of the finished wheel with other contents (None removes a file) and a matching RECORD.

    The copy is not compressed, may have any size, and is removed after the test.
    """
    monkeypatch.setattr(check_wheel, "SIZE_LIMIT", sys.maxsize)

    def change(changes: Mapping[str, bytes | None], *, file_name: str = finished_wheel.name) -> Path:
        files = {name: content for name, content in {**finished_files, **changes}.items() if content is not None}
        (record,) = (name for name in finished_files if name.endswith("/RECORD"))
        if record not in changes:
            changed = {name: _record_line(name, files[name]) for name in changes if name in files}
            lines = {**finished_record, **changed, record: f"{record},,\n"}
            files[record] = "".join(lines[name] for name in files).encode()
        copy = tmp_path / file_name
        with zipfile.ZipFile(copy, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return copy

    yield change
    for copy in tmp_path.glob("*.whl"):
        copy.unlink()


@pytest.fixture
def add_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AddProgram:
    """Writes a shell script that precedes the system's programs on the path during the test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def add(name: str, script: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    return add


def _record_line(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"
