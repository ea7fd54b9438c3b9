"""Action dumps: the actions of a run, step after step, to play it again with the same seed and number of worlds.

The format has no header: little-endian int32 [num_worlds, num_agents, 4] per step, appended.
"""

from __future__ import annotations

import contextlib
import errno
import math
import mmap
import os
import stat
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doorstep._arguments import refuse
from doorstep.errors import ArgumentError, ClosedError, OutOfMemoryError, StateError
from doorstep.tensor import Tensor

_ELEMENT = np.dtype("<i4")
_COMPONENTS = 4  # move amount, move angle, turn, grab


class ActionDumpWriter:
    """Writes a new action dump; call `append` with the actions of each step before the step.

    >>> import doorstep, os, tempfile
    >>> from doorstep.action_dump import ActionDumpWriter, read_action_dump
    >>> path = os.path.join(tempfile.mkdtemp(), "actions.bin")
    >>> sim = doorstep.Simulator(2)
    >>> with ActionDumpWriter(path, num_worlds=2) as dump:
    ...     for _ in range(3):
    ...         dump.append(sim.actions)
    ...         sim.step()
    >>> read_action_dump(path, num_worlds=2).shape
    (3, 2, 2, 4)

    Args:
        path: the file; one that exists is replaced.
        num_worlds: worlds of the simulator, at least 1.
        num_agents: agents per world, at least 1.

    Raises:
        ArgumentError: num_worlds or num_agents is not positive.
        OSError: the file cannot be created.
    """

    def __init__(self, path: str | os.PathLike[str], num_worlds: int, num_agents: int = 2) -> None:
        self._shape = _step_shape(num_worlds, num_agents)
        self._file = _create(path)

    def append(self, actions: ArrayLike | Tensor) -> None:
        """Adds the actions of one step: integers [num_worlds, num_agents, 4], a tensor on any device or an array.

        Raises:
            ArgumentError: another shape, or values that are not 32-bit integers. Nothing was written.
            ClosedError: the dump has been closed.
        """
        if self._file.closed:
            raise ClosedError("This action dump is closed.", hint="Append before close().")
        values = actions.copy_to_host() if isinstance(actions, Tensor) else np.asarray(actions)
        self._file.write(_as_elements(values, self._shape).tobytes())

    def close(self) -> None:
        """Writes the buffered steps and closes the file."""
        self._file.close()

    def __enter__(self) -> ActionDumpWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def read_action_dump(path: str | os.PathLike[str], num_worlds: int, num_agents: int = 2) -> NDArray[np.int32]:
    """An action dump as int32 [steps, num_worlds, num_agents, 4]: the file itself, mapped into memory, read-only.

    A step is read from the disk when it is used, so a dump may be larger than the memory. Do not shorten the file while
    the array is in use: the operating system ends a process that reads behind the end (SIGBUS). `ActionDumpWriter` puts
    a new file in place of an old one, which is safe.

    >>> import numpy, os, tempfile
    >>> from doorstep.action_dump import read_action_dump
    >>> path = os.path.join(tempfile.mkdtemp(), "actions.bin")
    >>> numpy.array([[[1, 0, 2, 0]], [[0, 0, 4, 1]]], "<i4").tofile(path)    # two steps of one agent
    >>> read_action_dump(path, num_worlds=1, num_agents=1)[1, 0, 0].tolist()
    [0, 0, 4, 1]

    Args:
        path: the file.
        num_worlds: worlds of the simulator that it was recorded with, at least 1.
        num_agents: agents per world, at least 1.

    Raises:
        ArgumentError: num_worlds or num_agents is not positive, or `path` is not a regular file.
        StateError: the file does not hold a whole number of steps of that many worlds and agents.
        OutOfMemoryError: the file is larger than the address space that the process may use.
        OSError: the file cannot be read.
    """
    shape = _step_shape(num_worlds, num_agents)
    with _open_regular(path) as file:
        num_bytes = os.fstat(file.fileno()).st_size
        _check_whole_steps(path, num_bytes, shape)
        if num_bytes == 0:
            return np.empty((0, *shape), np.int32)
        mapped = _map(path, file, num_bytes)
    return np.frombuffer(mapped, _ELEMENT).reshape(-1, *shape)


def _create(path: str | os.PathLike[str]) -> BinaryIO:
    """A new file. An older one is unlinked, not shortened: a process that has it mapped keeps it."""
    target = os.path.realpath(path)
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISREG(os.stat(target).st_mode):
            os.unlink(target)
    return open(target, "wb")


def _open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Without waiting for a FIFO's writer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        refuse("path", "a regular file", os.fspath(path), "copy the output of a pipe or a device into a file first")
    return open(descriptor, "rb")


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
    for argument, value in (("num_worlds", num_worlds), ("num_agents", num_agents)):
        if value < 1:
            raise ArgumentError(f"{argument} must be at least 1, but is {value}.", argument=argument)
    return num_worlds, num_agents, _COMPONENTS


def _as_elements(actions: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if actions.shape != shape:
        raise ArgumentError(f"actions must have the shape {shape}, but have {actions.shape}.", argument="actions")
    limits = np.iinfo(_ELEMENT)
    if actions.dtype.kind not in "iu" or actions.min() < limits.min or actions.max() > limits.max:
        raise ArgumentError(
            f"actions must be integers of 32 bits, but are {actions.dtype}"
            + (f" from {actions.min()} to {actions.max()}." if actions.dtype.kind in "iu" else "."),
            argument="actions",
        )
    return actions.astype(_ELEMENT)
