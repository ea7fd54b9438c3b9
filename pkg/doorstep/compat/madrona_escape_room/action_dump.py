"""Action dumps, as the reference's scripts write and its viewer reads them.

The format has no header: little-endian int32 [num_worlds, num_agents, 4] per step, appended: `actions.tofile(file)`.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_integer
from doorstep._files import open_regular
from doorstep._native import MAX_WORLDS
from doorstep._native._generated import MAX_AGENTS
from doorstep.errors import OutOfMemoryError, StateError

_ELEMENT = np.dtype("<i4")
_COMPONENTS = 4  # move amount, move angle, turn, grab


def read_action_dump(path: str | os.PathLike[str], num_worlds: int, num_agents: int = 2) -> NDArray[np.int32]:
    """An action dump as int32 [steps, num_worlds, num_agents, 4]: the file itself, mapped into memory, read-only.

    A step is read from the disk when it is used, so a dump may be larger than the memory. Do not shorten the file while
    the array is in use: the operating system ends a process that reads behind the end (SIGBUS).

    >>> import numpy, os, tempfile
    >>> from doorstep.compat.madrona_escape_room.action_dump import read_action_dump
    >>> path = os.path.join(tempfile.mkdtemp(), "actions.bin")
    >>> numpy.array([[[1, 0, 2, 0]], [[0, 0, 4, 1]]], "<i4").tofile(path)    # two steps of one agent
    >>> read_action_dump(path, num_worlds=1, num_agents=1)[1, 0, 0].tolist()
    [0, 0, 4, 1]

    Args:
        path: the file.
        num_worlds: worlds of the simulator that it was recorded with.
        num_agents: agents per world, 1 to 8.

    Raises:
        ArgumentError: num_worlds or num_agents is not one of a simulator, or `path` is not a regular file.
        StateError: the file does not hold a whole number of steps of that many worlds and agents.
        OutOfMemoryError: the file is larger than the address space that the process may use.
        OSError: the file cannot be read.
    """
    shape = _step_shape(num_worlds, num_agents)
    with open(open_regular(os.fsdecode(path)), "rb") as file:
        num_bytes = os.fstat(file.fileno()).st_size
        _check_whole_steps(path, num_bytes, shape)
        if num_bytes == 0:
            return np.empty((0, *shape), np.int32)
        mapped = _map(path, file, num_bytes)
    return np.frombuffer(mapped, _ELEMENT).reshape(-1, *shape)


def _check_whole_steps(path: str | os.PathLike[str], num_bytes: int, shape: tuple[int, int, int]) -> None:
    step_bytes = math.prod(shape) * _ELEMENT.itemsize
    if num_bytes % step_bytes:
        raise StateError(
            f"{os.fspath(path)} has {num_bytes} bytes, but a step of {shape[0]} worlds with {shape[1]} agents takes "
            f"{step_bytes}, which does not divide it.",
            argument="num_worlds",
            hint="Give the number of worlds and agents it was recorded with; if they are right, the file is truncated.",
        )


def _map(path: str | os.PathLike[str], file: BinaryIO, num_bytes: int) -> mmap.mmap:
    try:
        return mmap.mmap(file.fileno(), num_bytes, access=mmap.ACCESS_READ)
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise OutOfMemoryError(
            f"{os.fspath(path)} has {num_bytes} bytes, more than this process can map into its memory.",
            argument="path",
            hint="Raise the limit of the address space (ulimit -v), or split the file.",
        ) from error


def _step_shape(num_worlds: int, num_agents: int) -> tuple[int, int, int]:
    worlds = check_integer("num_worlds", num_worlds, 1, MAX_WORLDS)
    return worlds, check_integer("num_agents", num_agents, 1, MAX_AGENTS), _COMPONENTS
