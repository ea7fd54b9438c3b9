"""Files: checked paths, reading of regular files only, writing whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from doorstep._arguments import refuse

_LONGEST = 4096  # bytes of a path, with the 0 at its end; PATH_MAX of Linux


def checked_path(path: object) -> str:
    """A str or a path object as text.

    Raises:
        ArgumentError: it is neither, or no file can have the name.
        OSError: it is relative to a working directory that has been deleted.
    """
    if not isinstance(path, (str, os.PathLike)):
        refuse("path", "the path of a file", path)
    text = os.fsdecode(path)
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        refuse("path", "a name that the file system can hold", path, "remove lone surrogates")
    if len(encoded) > _LONGEST:
        refuse("path", f"a name of at most {_LONGEST} bytes", path)
    if b"\0" in encoded:
        refuse("path", "a name without the character 0", path)
    if not os.path.isabs(text):
        try:
            os.getcwd()
        except FileNotFoundError:
            message = "the working directory has been deleted; change to another one"
            raise FileNotFoundError(errno.ENOENT, message, text) from None
    return text


def printable(path: str | os.PathLike[str]) -> str:
    """A path that can be printed and stored: bytes of a file's name that are not UTF-8 are escaped."""
    return os.fspath(path).encode(errors="backslashreplace").decode()


def check_ending(path: object, endings: Iterable[str]) -> str:
    """The ending of a file's name, in lower case, which is one of these.

    Raises:
        ArgumentError: it is another one, or the path is none.
    """
    ending = os.path.splitext(path)[1].lower() if isinstance(path, (str, os.PathLike)) else ""
    if ending not in endings:
        refuse("path", f"a file that ends in {' or '.join(endings)}", path)
    return ending


def open_regular(path: str) -> int:
    """A descriptor for reading, without waiting for the writer of a FIFO.

    Raises:
        ArgumentError: `path` is a folder, a device or a pipe.
        OSError: the file cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        refuse("path", "a regular file", path, "copy the output of a pipe or a device into a file first")
    return descriptor


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file.

    Raises:
        ArgumentError: `path` is neither a str nor a path object, or as `open_regular()`.
        OSError: the file cannot be read.
    """
    with open(open_regular(checked_path(path)), "rb") as file:
        return file.read()


@contextmanager
def replaced_file(path: str | os.PathLike[str], *, grows: bool = False) -> Iterator[BinaryIO]:
    """A new file in the folder of `path`, open for writing, that replaces `path` at the end; an error removes it.

    Until then an older file is unchanged. A symbolic link stays a link; a pipe or a device is written in place.

    grows: the new file has no buffer, and `path` with ".0.part" is its name, by which people find it if this process
    dies. The next writer of `path` removes it then.

    Raises:
        ArgumentError: `path` is neither a str nor a path object.
        OSError: the file cannot be created; raised before the block begins.
    """
    target = os.path.realpath(checked_path(path))
    mode = _mode_of(target)
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb", buffering=0 if grows else -1) as file:
            yield file
        return
    with _file_beside(target, mode, grows) as temporary:
        with temporary:
            yield temporary
        os.replace(temporary.name, target)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """The whole of a file in UTF-8, as `replaced_file()`."""
    with replaced_file(path) as file:
        file.write(text.encode())


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Tests whether `replaced_file` can write there; leaves no file behind.

    Raises:
        ArgumentError: no file can have the name.
        OSError: it cannot.
    """
    target = os.path.realpath(checked_path(path))
    mode = _mode_of(target)
    if mode is None or stat.S_ISREG(mode):
        with _file_beside(target, mode, grows=False) as temporary:
            temporary.close()


def _mode_of(target: str) -> int | None:
    """None: the file does not exist."""
    try:
        return os.stat(target).st_mode
    except FileNotFoundError:
        return None


# ---- Temporary files
#
# Their names are numbered. Each is locked as long as its writer lives, so that the next writer in the folder knows and
# removes what a killed process has left.


@contextmanager
def _file_beside(target: str, mode: int | None, grows: bool) -> Iterator[BinaryIO]:
    """A new file with the permissions of the one that it will replace; at the end it is removed unless it was moved."""
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target)
    try:
        file = _create_locked(target, grows)
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from None
    lock = os.dup(file.fileno())  # holds the lock when the file has been closed
    writer = os.getpid()
    try:
        if mode is not None:
            os.fchmod(lock, stat.S_IMODE(mode))
        yield file
    finally:
        if os.getpid() == writer:
            file.close()
            _remove(file.name, lock)
        else:  # in a fork, which has a copy of what its parent has not yet written
            getattr(file, "raw", file).close()
        os.close(lock)


def _create_locked(target: str, grows: bool) -> BinaryIO:
    for number in itertools.count():
        hidden = os.path.join(os.path.dirname(target), f".doorstep-{number}.tmp")
        name = f"{target}.{number}.part" if grows else hidden
        _remove_if_left(name)
        with contextlib.suppress(FileExistsError):  # its writer lives
            file = open(name, "xb", buffering=0 if grows else -1)  # noqa: SIM115 (closed by _file_beside)
            if _is_locked(file.fileno()):
                return file
            file.close()
    raise AssertionError  # the numbers do not end


def _is_locked(descriptor: int) -> bool:
    """Locks a new file. False if another writer has locked it first, taking it for left, and removes it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks, where nobody removes it
        return True
    return os.fstat(descriptor).st_nlink > 0


def _remove_if_left(name: str) -> None:
    """Removes a temporary file whose writer is dead."""
    # The file does not exist, its writer lives and has the lock, or another user owns it.
    with contextlib.suppress(OSError):
        descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(name, descriptor)
        finally:
            os.close(descriptor)


def _remove(name: str, descriptor: int) -> None:
    """Removes a name if it is still that of this file."""
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.lstat(name), os.fstat(descriptor)):
            os.unlink(name)
