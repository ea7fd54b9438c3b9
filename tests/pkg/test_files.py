"""Files are written whole, or what was there before still is."""

import errno
import importlib
import os
import signal
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import doorstep
from doorstep._files import check_replaceable, read_regular, replaced_file


def write(path: "str | os.PathLike[str]", data: bytes = b"new") -> None:
    with replaced_file(path) as file:
        file.write(data)


@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()])
def test_what_fails_halfway_leaves_the_old_file_and_nothing_else(failure: BaseException, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail() -> None:
        with replaced_file(path) as file:
            file.write(b"half")
            file.flush()
            assert path.read_bytes() == b"old"
            raise failure

    with pytest.raises(type(failure)):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, b"old")
    path.chmod(0o640)
    write(os.fspath(path))
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    write(tmp_path / "file")
    (tmp_path / "usual").touch()
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link, target = tmp_path / "link", tmp_path / "folder" / "file"
    link.symlink_to(target)
    write(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    reader.start()
    write(path)
    reader.join(10)
    assert read == [b"new"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def killed_while_writing(path: Path) -> None:
    """Another process dies in the middle of a file."""
    child = os.fork()
    if child == 0:
        with replaced_file(path) as file:
            file.write(b"half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def test_what_killed_writers_leave_is_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, b"old")
    for _ in range(3):
        killed_while_writing(path)
        assert path.read_bytes() == b"old"
        assert len(list(tmp_path.iterdir())) == 2
    write(tmp_path / "other")
    assert {entry.name for entry in tmp_path.iterdir()} == {"file", "other"}


def test_writers_that_live_keep_their_files(tmp_path: Path) -> None:
    with replaced_file(tmp_path / "a") as first, replaced_file(tmp_path / "a") as second:
        first.write(b"first")
        first.close()  # written, but not in its place yet
        second.write(b"second")
        write(tmp_path / "b")
        assert len(list(tmp_path.iterdir())) == 3
    assert (tmp_path / "a").read_bytes() == b"first"  # which took its place last
    assert {entry.name for entry in tmp_path.iterdir()} == {"a", "b"}


def test_without_locks_files_are_written_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr("fcntl.flock", fail)
    with replaced_file(tmp_path / "a") as first:
        write(tmp_path / "b")
        first.write(b"first")
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"a": b"first", "b": b"new"}


def test_many_writers_at_once_do_not_meet(tmp_path: Path) -> None:
    def write_some(number: int) -> None:
        for _ in range(20):
            write(tmp_path / str(number), b"%d" % number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write_some, range(4)))
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {str(n): b"%d" % n for n in range(4)}


def test_a_try_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    check_replaceable(path)
    assert not list(tmp_path.iterdir())
    path.write_bytes(b"old")
    check_replaceable(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_errors_name_the_file_that_was_meant(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "file"
    for attempt in (check_replaceable, write):
        with pytest.raises(FileNotFoundError) as caught:
            attempt(path)
        assert caught.value.filename == str(path)
    with pytest.raises(IsADirectoryError):
        write(tmp_path)


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(doorstep.ArgumentError, match="path is 5; it must be the path of a file"):
        write(5)  # type: ignore[arg-type]


USERS: dict[str, Callable[[str], object]] = {
    "read": read_regular,
    "replace": write,
    "check": check_replaceable,
    "load_policy": lambda name: doorstep.load_policy(name + ".safetensors"),
    "load_levels": lambda name: doorstep.levels.load_levels(name + ".json"),
    "Recording": lambda name: doorstep.recording.Recording(name + ".rec"),
    "from_json": lambda name: doorstep.SimulatorConfig.load(name + ".json"),
    "train": lambda name: importlib.import_module("doorstep.training").train(name),
}


@pytest.mark.parametrize("user", USERS)
def test_a_working_directory_that_was_deleted_is_named(
    user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if user == "train":
        pytest.importorskip("torch")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here").rmdir()
    with pytest.raises(FileNotFoundError, match="the working directory has been deleted; change to another one"):
        USERS[user]("name")
