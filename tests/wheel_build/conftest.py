"""The finished wheel, and copies of it that are broken on purpose."""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import check_wheel

PROJECT = Path(__file__).resolve().parent.parent.parent

ChangeWheel = Callable[..., Path]


@pytest.fixture(scope="session")
def finished_wheel() -> Path:
    """The wheel that is being tested."""
    wheels = list((PROJECT / "dist").glob("doorstep-*.whl"))
    assert len(wheels) == 1, "make wheel puts exactly one wheel into dist/"
    return wheels[0]


@pytest.fixture
def change_wheel(finished_wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChangeWheel:
    """Writes a copy of the finished wheel with other contents (None removes a file) and a RECORD that fits them.

    The copy is not compressed, and may have any size.
    """
    monkeypatch.setattr(check_wheel, "SIZE_LIMIT", sys.maxsize)

    def change(changes: Mapping[str, bytes | None], *, file_name: str = finished_wheel.name) -> Path:
        with zipfile.ZipFile(finished_wheel) as archive:
            original = {name: archive.read(name) for name in archive.namelist()}
        files = {name: content for name, content in {**original, **changes}.items() if content is not None}
        record = next(name for name in original if name.endswith("/RECORD"))
        if record not in changes:
            files[record] = "".join(_record_line(name, files[name], record) for name in files).encode()
        copy = tmp_path / file_name
        with zipfile.ZipFile(copy, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return copy

    return change


def _record_line(name: str, content: bytes, record: str) -> str:
    if name == record:
        return f"{name},,\n"
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"
