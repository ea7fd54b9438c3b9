"""Files are written whole, or what was there before still is; tests/pkg/test_stops.py stops their writers."""

import contextlib
import errno
import importlib
import importlib.util
import os
import re
import stat
import threading

from tests.refuses import assert_refused, refuses

import doorstep
from doorstep._files import check_replaceable, read_regular, replaced_file


def write(path, data=b"new"):
    with replaced_file(path) as file:
        file.write(data)


def test_a_file_is_replaced_at_the_end_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "file"
    write(path, b"old")
    (tmp_path / "usual").touch()
    assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode
    path.chmod(0o640)
    with contextlib.suppress(ZeroDivisionError), replaced_file(os.fspath(path)) as file:
        file.write(b"half")
        file.flush()
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    write(os.fspath(path))
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    for attempt in (path, tmp_path / "other"):  # a try leaves nothing
        check_replaceable(attempt)
    assert path.read_bytes() == b"new"
    assert {entry.name for entry in tmp_path.iterdir()} == {"file", "usual"}


def test_a_link_stays_one_and_a_pipe_is_written_to(tmp_path):
    (tmp_path / "folder").mkdir()
    link, target, pipe = tmp_path / "link", tmp_path / "folder" / "file", tmp_path / "pipe"
    link.symlink_to(target)
    write(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write(pipe)
    reader.join(10)
    assert read == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_writers_that_live_keep_their_files_also_without_locks(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOLCK, "no locks")

    for locks in (True, False):
        if not locks:
            monkeypatch.setattr("fcntl.flock", fail)
        with replaced_file(tmp_path / "a") as first, replaced_file(tmp_path / "a") as second:
            first.write(b"first")
            first.close()  # written, but not in its place yet
            second.write(b"second")
            write(tmp_path / "b")
            assert len({entry.name for entry in tmp_path.iterdir()} - {"a", "b"}) == 2
        assert (tmp_path / "a").read_bytes() == b"first"  # which took its place last
        assert {entry.name for entry in tmp_path.iterdir()} == {"a", "b"}


def test_errors_name_the_file_that_was_meant(tmp_path):
    path = tmp_path / "missing" / "file"
    for attempt in (check_replaceable, write):
        refuses(re.escape(repr(str(path))), attempt, path, error=FileNotFoundError)
    refuses(None, write, tmp_path, error=IsADirectoryError)
    rows = [(5, "path is 5; it must be the path of a file"), ("a\0", "path is"), ("\ud800", "path is")]
    assert_refused(write, rows, argument="path")


def test_a_working_directory_that_was_deleted_is_named(tmp_path, monkeypatch):
    users = [
        *(read_regular, write, check_replaceable, lambda name: doorstep.load_policy(name + ".safetensors")),
        *(lambda name: doorstep.recording.Recording(name + ".rec"), doorstep.SimulatorConfig.load),
    ]
    if importlib.util.find_spec("torch"):
        users.append(importlib.import_module("doorstep.training").train)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here").rmdir()
    for user in users:
        says = "the working directory has been deleted; change to another one"
        refuses(says, user, "name.json", error=FileNotFoundError)
