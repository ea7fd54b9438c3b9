"""What a simulator writes again and again, in memory that callers keep and that is used again afterwards."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

LIMIT = 4  # buffers that a ring remembers; a loop over steps that keeps the last observation needs two


def _references(objects: Sequence[object], index: int) -> int:
    return sys.getrefcount(objects[index])


# What `_references()` counts where nothing but the sequence refers to the object.
UNSHARED = _references([object()], 0)


@final
class Ring:
    """Copies of one array; each keeps its values for as long as anything refers to it.

    Then its memory is used again: memory that is new to the process costs more than the copy, a fault for every page.
    Arrays and tensors made of a copy without copying refer to its buffer, as numpy and the buffer protocol want it.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self._buffers: list[NDArray[Any]] = []

    def copy(self) -> NDArray[Any]:
        """The array as it is now."""
        buffer = self.unused()
        np.copyto(buffer, self._array)
        view: NDArray[Any] = buffer.view()
        return view

    def unused(self) -> NDArray[Any]:
        """An array like it that nothing refers to yet, with any values."""
        for index in range(len(self._buffers)):
            if _references(self._buffers, index) == UNSHARED:
                return self._buffers[index]
        # All are in use. One more; the oldest is left to those who refer to it.
        self._buffers = [*self._buffers[1 - LIMIT :], np.empty_like(self._array)]
        return self._buffers[-1]


@final
class Output:
    """A tensor of a simulator on the CPU, whose values callers keep.

    The simulator writes them where they stay: a copy would cost a tenth of its step. It refers to what it writes, so
    that the ring does not take that for unused.

    Args:
        array: the tensor in the simulator's own memory.
        redirect: see `Session.redirector()`.
    """

    def __init__(self, array: NDArray[Any], redirect: Callable[[NDArray[Any] | None], None]) -> None:
        self._ring = Ring(array)
        self._redirect = redirect
        self._written: NDArray[Any] | None = None  # None: the simulator's own memory

    def renew(self) -> None:
        """What the simulator writes next goes to memory that no caller has; whatever writes it has to write it all."""
        unused = self._ring.unused()
        self._redirect(unused)
        self._written = unused

    def return_home(self) -> None:
        """What the simulator writes next goes to its own memory, which still has what it wrote there last."""
        self._redirect(None)
        self._written = None

    def take(self) -> NDArray[Any]:
        """What the simulator wrote last: the caller's, for whom `renew()` keeps it."""
        if self._written is None:
            return self._ring.copy()
        view: NDArray[Any] = self._written.view()
        return view
