"""Copies of an array that changes, in memory that is used again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
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
        buffer = self._unused()
        np.copyto(buffer, self._array)
        view: NDArray[Any] = buffer.view()
        return view

    def _unused(self) -> NDArray[Any]:
        for index in range(len(self._buffers)):
            if _references(self._buffers, index) == UNSHARED:
                return self._buffers[index]
        # All are in use. One more; the oldest is left to those who refer to it.
        self._buffers = [*self._buffers[1 - LIMIT :], np.empty_like(self._array)]
        return self._buffers[-1]
