"""Only the pinned files are accepted as third-party libraries."""

import hashlib
import zipfile
from io import BytesIO

import pytest
from elftools.elf.elffile import ELFFile
from tests.wheel_build.conftest import PROJECT

import native_build
import pinned_packages
import third_party
from build_steps import BuildError
from wheel_file import SharedLibrary

LIBRARIES = {library.file: library for library in third_party.LIBRARIES}
SECTIONS = (".text", ".rodata", ".data", ".rela.dyn", ".init_array", ".gnu.version_r")


def test_the_fetched_files_are_the_pinned_ones_and_their_hash_depends_on_every_relevant_section():
    fetched = third_party.install(PROJECT / native_build.THIRD_PARTY_FOLDER)  # which the wheel was built with
    for name, library in LIBRARIES.items():
        content = (fetched / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == library.sha256
        assert SharedLibrary(name, content).loaded_content_hash() == library.loaded_content_sha256
    library = LIBRARIES["libembree4.so.4"]
    content = (fetched / library.file).read_bytes()
    for name in SECTIONS:
        changed = bytearray(content)
        changed[ELFFile(BytesIO(content)).get_section_by_name(name)["sh_offset"]] ^= 1
        assert SharedLibrary(library.file, bytes(changed)).loaded_content_hash() != library.loaded_content_sha256


def test_a_file_with_other_content_is_refused_and_nothing_is_kept(tmp_path, monkeypatch):
    def download(requirements, folder):
        with zipfile.ZipFile(folder / "package.whl", "w") as archive:
            for name in LIBRARIES:
                archive.writestr(f"{third_party.FOLDER_IN_PACKAGE}/{name}", b"something else")

    monkeypatch.setattr(pinned_packages, "download", download)
    found = hashlib.sha256(b"something else").hexdigest()
    for _ in range(2):  # the second attempt does not use leftovers of the first
        with pytest.raises(BuildError, match=f"libembree4.so.4 in package.whl has the hash {found}, not 78e6a0"):
            third_party.install(tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.is_dir() and path.suffix != ".pending"]
