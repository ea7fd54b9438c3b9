"""Only the pinned files are accepted as third-party libraries."""

from __future__ import annotations

import hashlib
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from tests.wheel_build.conftest import PROJECT

import native_build
import pinned_packages
import third_party
from build_steps import BuildError
from wheel_file import SharedLibrary

LIBRARIES = {library.file: library for library in third_party.LIBRARIES}


@pytest.fixture(scope="module")
def fetched() -> Path:
    """The folder that the wheel was built with."""
    return third_party.install(PROJECT / native_build.THIRD_PARTY_FOLDER)


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_fetched_files_are_the_pinned_ones(fetched: Path, name: str) -> None:
    content = (fetched / name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == LIBRARIES[name].sha256
    assert SharedLibrary(name, content).loaded_content_hash() == LIBRARIES[name].loaded_content_sha256


@pytest.mark.parametrize("section_name", [".text", ".rodata", ".data", ".rela.dyn", ".init_array", ".gnu.version_r"])
def test_the_hash_of_loaded_content_depends_on_every_relevant_section(fetched: Path, section_name: str) -> None:
    library = LIBRARIES["libembree4.so.4"]
    content = bytearray((fetched / library.file).read_bytes())
    section = ELFFile(BytesIO(bytes(content))).get_section_by_name(section_name)
    assert section is not None
    content[section["sh_offset"]] ^= 1
    assert SharedLibrary(library.file, bytes(content)).loaded_content_hash() != library.loaded_content_sha256


def test_a_file_with_other_content_is_refused_and_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(requirements: Path, folder: Path) -> None:
        with zipfile.ZipFile(folder / "package.whl", "w") as archive:
            for name in LIBRARIES:
                archive.writestr(f"{third_party.FOLDER_IN_PACKAGE}/{name}", b"something else")

    monkeypatch.setattr(pinned_packages, "download", download)
    found = hashlib.sha256(b"something else").hexdigest()
    for _ in range(2):  # the second attempt does not use leftovers of the first
        with pytest.raises(BuildError, match=f"libembree4.so.4 in package.whl has the hash {found}, not 78e6a0"):
            third_party.install(tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.is_dir() and path.suffix != ".pending"]
