"""Pinned files come from the index, or only from the folder that the environment names."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

import pytest

import pinned_packages
from build_steps import BuildError

NAME = "doorstep_no_such_package-1.0-py3-none-any.whl"
METADATA = "doorstep_no_such_package-1.0.dist-info"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one small wheel."""
    path = tmp_path / "files"
    path.mkdir()
    files = {
        "doorstep_no_such_package.py": b"FOUND = True\n",
        f"{METADATA}/METADATA": b"Metadata-Version: 2.1\nName: doorstep-no-such-package\nVersion: 1.0\n",
        f"{METADATA}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    with zipfile.ZipFile(path / NAME, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
        archive.writestr(f"{METADATA}/RECORD", f"{record}{METADATA}/RECORD,,\n")
    return path


@pytest.fixture
def requirements(folder: Path, tmp_path: Path) -> Path:
    """The requirements file that pins it."""
    digest = hashlib.sha256((folder / NAME).read_bytes()).hexdigest()
    path = tmp_path / "requirements.txt"
    path.write_text(f"doorstep-no-such-package==1.0 --hash=sha256:{digest}\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that refuses connections, so that using it fails at once."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


def test_files_of_the_named_folder_are_taken_without_an_index(
    folder: Path, requirements: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(pinned_packages.FOLDER_VARIABLE, str(folder))
    pinned_packages.install(requirements, tmp_path / "installed")
    assert (tmp_path / "installed" / "doorstep_no_such_package.py").read_text(encoding="utf-8") == "FOUND = True\n"
    pinned_packages.download(requirements, tmp_path / "downloaded")
    assert (tmp_path / "downloaded" / NAME).read_bytes() == (folder / NAME).read_bytes()


def test_without_the_folder_the_index_is_used(requirements: Path, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"exit status 1 of: .* download"):
        pinned_packages.download(requirements, tmp_path / "downloaded")


def test_a_file_with_another_hash_is_refused(
    folder: Path, requirements: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(pinned_packages.FOLDER_VARIABLE, str(folder))
    with zipfile.ZipFile(folder / NAME, "a") as archive:
        archive.writestr("more.py", b"")
    with pytest.raises(BuildError, match=r"exit status 1 of: .* install"):
        pinned_packages.install(requirements, tmp_path / "installed")
    assert not (tmp_path / "installed" / "doorstep_no_such_package.py").exists()


def test_a_missing_folder_is_named(requirements: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(pinned_packages.FOLDER_VARIABLE, str(tmp_path / "missing"))
    with pytest.raises(BuildError, match=r"DOORSTEP_PINNED_FILES is '.*missing', which is not a folder; fill one"):
        pinned_packages.install(requirements, tmp_path / "installed")
