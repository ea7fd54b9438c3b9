"""Pinned files come from the index, or only from the folder that the environment names."""

import base64
import hashlib
import zipfile

import pytest

import pinned_packages
from build_steps import BuildError

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
    record = f"{METADATA}/RECORD,,\n"
    with zipfile.ZipFile(path / NAME, "w") as archive:
        for name, content in FILES.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
            archive.writestr(name, content)
        archive.writestr(f"{METADATA}/RECORD", record)
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
