"""Files: checked paths, reading of regular files only, writing whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from doorstep._arguments import refuse


def checked_path(path: object) -> str:
    """A str or a path object as text.

    Raises:
        ArgumentError: it is neither.
    """
    if not isinstance(path, (str, os.PathLike)):
        refuse("path", "the path of a file", path)
    return os.fsdecode(path)


def check_ending(path: object, endings: Iterable[str]) -> str:
    """The ending of a file's name, in lower case, which is one of these.

    Raises:
        ArgumentError: it is another one, or the path is none.
    """
    ending = Path(path).suffix.lower() if isinstance(path, (str, os.PathLike)) else ""
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


@contextmanager
def replaced_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file in the folder of `path`, open for writing, that replaces `path` at the end; an error removes it.

    Until then an older file is unchanged. A symbolic link stays a link; a pipe or a device is written in place.

    Raises:
        ArgumentError: `path` is neither a str nor a path object.
        OSError: the file cannot be created; raised before the block begins.
    """
    target = os.path.realpath(checked_path(path))
    mode = _mode_of(target)
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb") as file:
            yield file
        return
    temporary = _create_beside(target, mode)
    try:
        with temporary:
            yield temporary
        os.replace(temporary.name, target)
    except BaseException:
        os.unlink(temporary.name)
        raise


def add_file(path_of: Callable[[int], str], first: int, write: Callable[[BinaryIO], None]) -> int:
    """Writes a new file, which appears when it is complete, at the first path that is not in use; returns its number.

    Args:
        path_of: path_of(first), path_of(first + 1) and so on are tried.
        write: writes it; an error removes it.

    Raises:
        OSError: the file cannot be created, or its file system has no links.
    """
    temporary = _create_beside(path_of(first), None)
    try:
        with temporary:
            write(temporary)
        number = first
        while not _link(temporary.name, path_of(number)):
            number += 1
        return number
    finally:
        os.unlink(temporary.name)


def _link(path: str, other: str) -> bool:
    """False if there is another already."""
    try:
        os.link(path, other)
    except FileExistsError:
        return False
    return True


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Tests whether `replaced_file` can write there; leaves no file behind.

    Raises:
        OSError: it cannot.
    """
    target = os.path.realpath(os.fsdecode(path))
    mode = _mode_of(target)
    if mode is None or stat.S_ISREG(mode):
        with _create_beside(target, mode) as temporary:
            os.unlink(temporary.name)


def _mode_of(target: str) -> int | None:
    """None: the file does not exist."""
    try:
        return os.stat(target).st_mode
    except FileNotFoundError:
        return None


def _create_beside(target: str, mode: int | None) -> BinaryIO:
    """With the permissions of the file that it will replace."""
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target)
    name = os.path.join(os.path.dirname(target), f".doorstep-{secrets.token_hex(8)}.tmp")
    try:
        file = open(name, "xb")  # noqa: SIM115 (closed by replaced_file)
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from None
    if mode is not None:
        os.chmod(name, stat.S_IMODE(mode))
    return file
