"""Action dumps: the actions of a run, step after step, to replay it with the same seed and number of worlds.

The format has no header: little-endian int32 [num_worlds, num_agents, 4] per step, appended.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doorstep.errors import ArgumentError, ClosedError, StateError
from doorstep.tensor import Tensor

_ELEMENT = np.dtype("<i4")
_COMPONENTS = 4  # move amount, move angle, turn, grab


class ActionDumpWriter:
    """Writes a new action dump; call `append` with the actions of each step before the step.

    >>> import doorstep, os, tempfile
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
    """

    def __init__(self, path: str | os.PathLike[str], num_worlds: int, num_agents: int = 2) -> None:
        self._shape = _step_shape(num_worlds, num_agents)
        self._file = Path(path).open("wb")  # noqa: SIM115 (closed by close)

    def append(self, actions: ArrayLike | Tensor) -> None:
        """Adds the actions of one step: integers [num_worlds, num_agents, 4], a tensor on any device or an array.

        Raises:
            ArgumentError: another shape, or values that are no 32-bit integers. Nothing was written.
            ClosedError: the dump has been closed.
        """
        if self._file.closed:
            raise ClosedError("This action dump is closed.", hint="Append before close().")
        values = actions.copy_to_host() if isinstance(actions, Tensor) else np.asarray(actions)
        self._file.write(_as_elements(values, self._shape).tobytes())

    def close(self) -> None:
        """Writes everything out and closes the file."""
        self._file.close()

    def __enter__(self) -> ActionDumpWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def read_action_dump(path: str | os.PathLike[str], num_worlds: int, num_agents: int = 2) -> NDArray[np.int32]:
    """Reads a whole action dump: int32 [steps, num_worlds, num_agents, 4].

    Raises:
        ArgumentError: num_worlds or num_agents is not positive.
        StateError: the file does not hold a whole number of steps of that many worlds and agents.
        OSError: the file cannot be read.
    """
    shape = _step_shape(num_worlds, num_agents)
    data = Path(path).read_bytes()
    step_bytes = int(np.prod(shape)) * _ELEMENT.itemsize
    if len(data) % step_bytes:
        raise StateError(
            f"{os.fspath(path)} has {len(data)} bytes, but a step of {num_worlds} worlds with {num_agents} agents "
            f"takes {step_bytes}, which does not divide it.",
            argument="num_worlds",
            hint="Give the number of worlds and agents it was recorded with; if they are right, the file is truncated.",
        )
    return np.frombuffer(data, _ELEMENT).reshape(-1, *shape).astype(np.int32)


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
