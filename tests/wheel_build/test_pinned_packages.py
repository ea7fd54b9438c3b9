"""Pinned files come from the index, or only from the folder that the environment names, and no others are accepted."""

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

NAME = "doorstep_no_such_package-1.0-py3-none-any.whl"
METADATA = "doorstep_no_such_package-1.0.dist-info"
FILES = {
    "doorstep_no_such_package.py": b"FOUND = True\n",
    f"{METADATA}/METADATA": b"Metadata-Version: 2.1\nName: doorstep-no-such-package\nVersion: 1.0\n",
    f"{METADATA}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with one small wheel, and beside it the file of requirements that pins it. The index refuses
    connections, so that using it fails at once."""
    path = tmp_path / "files"
    path.mkdir()
    with zipfile.ZipFile(path / NAME, "w") as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
        archive.writestr(f"{METADATA}/RECORD", "".join(f"{name},,\n" for name in (*FILES, f"{METADATA}/RECORD")))
    pin = f"doorstep-no-such-package==1.0 --hash=sha256:{hashlib.sha256((path / NAME).read_bytes()).hexdigest()}\n"
    (tmp_path / "requirements.txt").write_text(pin, encoding="utf-8")
    for name, value in {"INDEX_URL": "http://127.0.0.1:9/", "RETRIES": "0", "CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    return path


def test_files_come_from_the_named_folder_without_an_index_if_they_have_the_pinned_hash(folder, tmp_path, monkeypatch):
    requirements, installed = tmp_path / "requirements.txt", tmp_path / "installed"
    monkeypatch.delenv(pinned_packages.FOLDER_VARIABLE, raising=False)
    with pytest.raises(BuildError, match=r"exit status 1 of: .* download"):
        pinned_packages.download(requirements, tmp_path / "downloaded")
    monkeypatch.setenv(pinned_packages.FOLDER_VARIABLE, str(tmp_path / "missing"))
    with pytest.raises(BuildError, match=r"DOORSTEP_PINNED_FILES is '.*missing', which is not a folder; fill one"):
        pinned_packages.install(requirements, installed)
    monkeypatch.setenv(pinned_packages.FOLDER_VARIABLE, str(folder))
    pinned_packages.install(requirements, installed)
    assert (installed / "doorstep_no_such_package.py").read_bytes() == FILES["doorstep_no_such_package.py"]
    pinned_packages.download(requirements, tmp_path / "downloaded")
    assert (tmp_path / "downloaded" / NAME).read_bytes() == (folder / NAME).read_bytes()
    with zipfile.ZipFile(folder / NAME, "a") as archive:
        archive.writestr("more.py", b"")
    with pytest.raises(BuildError, match=r"exit status 1 of: .* install"):
        pinned_packages.install(requirements, tmp_path / "again")
    assert not (tmp_path / "again" / "doorstep_no_such_package.py").exists()


def test_a_folder_is_filled_once_for_each_identity_and_what_fails_is_tried_again(tmp_path):
    def fetch(text):
        return lambda folder: (folder / "file").write_text(text)

    def fail(folder):
        (folder / "file").write_text("half")
        raise BuildError("no network")

    def fetched(identity, how):
        return (pinned_packages.fetch_once(tmp_path, identity, how) / "file").read_text()

    assert pinned_packages.identity_of(b"a") != pinned_packages.identity_of(b"b")
    with pytest.raises(BuildError, match="no network"):
        fetched("one", fail)
    assert [fetched("one", fetch("first")), fetched("one", fail)] == ["first", "first"]
    assert fetched("two", fetch("second")) == "second"
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["two"]


# ---- Libraries of third parties

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
