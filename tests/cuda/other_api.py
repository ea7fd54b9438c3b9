"""What stands on the other side of a file descriptor in place of Vulkan: files in memory, which the stand-in for the
driver takes for that API's memory and semaphores. Their names tell what they are."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np
import numpy.typing as npt


class Memory:
    """Memory that the other API has allocated, or imported with `Memory.importing`; `array` is its own view of it."""

    def __init__(self, nbytes: int, *, dedicated: bool = False) -> None:
        descriptor = os.memfd_create("dedicated-memory" if dedicated else "memory")
        os.ftruncate(descriptor, nbytes)
        self._use(descriptor, nbytes)

    @classmethod
    def importing(cls, descriptor: int, nbytes: int) -> Memory:
        """Takes the descriptor over."""
        made = object.__new__(cls)
        made._use(descriptor, nbytes)
        return made

    def _use(self, descriptor: int, nbytes: int) -> None:
        self._descriptor = descriptor
        self.array: npt.NDArray[Any] = np.frombuffer(mmap.mmap(descriptor, nbytes), np.uint8)

    def export(self) -> int:
        """A descriptor for who imports it."""
        return os.dup(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


class Semaphore:
    """A semaphore of the other API; `value` is that of a timeline, or 1 for a binary one that is signalled."""

    def __init__(self, *, timeline: bool) -> None:
        self._descriptor = os.memfd_create("timeline-semaphore" if timeline else "binary-semaphore")
        os.ftruncate(self._descriptor, mmap.PAGESIZE)
        self._value = np.frombuffer(mmap.mmap(self._descriptor, mmap.PAGESIZE), np.uint64)

    @property
    def value(self) -> int:
        return int(self._value[0])

    def signal(self, value: int = 1) -> None:
        self._value[0] = value

    def export(self) -> int:
        return os.dup(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def is_open(descriptor: int) -> bool:
    """Whether a file descriptor of this process is."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
