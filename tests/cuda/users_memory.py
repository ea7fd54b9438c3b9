"""Memory of another library on a GPU: its arrays, and what makes them for a policy."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.cuda import stand_in_driver as driver

from doorstep import cuda
from doorstep._tensors.checks import ReadRules
from doorstep._tensors.reader import read_memory
from doorstep.policy.arrays import Floats, _check_floats

Array = npt.NDArray[Any]


class UsersArray:
    """Device memory of another library, used on one stream, given back at once when the object ends."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, stream: int, device: int = 0) -> None:
        self.shape, self.dtype, self.stream = tuple(shape), np.dtype(dtype), stream
        self.device = SimpleNamespace(index=device)
        self.nbytes = int(np.prod(shape)) * self.dtype.itemsize
        with driver.users_context(device), driver.relaxed_thread():
            driver.call_for_value("cuDevicePrimaryCtxRetain", device)
            self.pointer = driver.call_for_value("cuMemAlloc_v2", ctypes.c_size_t(self.nbytes))

    def __del__(self) -> None:
        with driver.users_context(self.device.index):
            driver.call("cuMemFree_v2", ctypes.c_uint64(self.pointer))
            driver.call("cuDevicePrimaryCtxRelease_v2", self.device.index)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "typestr": self.dtype.str,
            "shape": self.shape,
            "strides": None,
            "data": (self.pointer, False),
            "stream": self.stream,
        }

    def fill(self, array: Array) -> None:
        """Begins a copy on the array's stream; `array` must stay until it is done."""
        assert (array.shape, array.dtype) == (self.shape, self.dtype)
        driver.copy(self.stream, self.pointer, array.ctypes.data, array.nbytes)

    def read(self) -> Array:
        """After what was begun on the array's stream."""
        array = np.empty(self.shape, self.dtype)
        driver.copy(self.stream, array.ctypes.data, self.pointer, array.nbytes)
        driver.synchronize(self.stream)
        return array


class UsersArrays:
    """Arrays of a library that works on one stream of the GPU."""

    device = "cuda:0"

    def __init__(self, stream: int) -> None:
        self._stream = stream
        self.kept: list[Any] = []  # what work that was begun reads and writes

    def stream(self) -> int:
        return self._stream

    def is_capturing(self) -> bool:
        return driver.is_capturing(self._stream)

    def read(self, name: str, value: Any, stream: int, *, written: bool) -> Floats:
        rules = ReadRules(name, written=written, stream=stream)
        return _check_floats(name, read_memory(value, rules), value, self.device)

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> UsersArray:
        made = UsersArray(shape, dtype, self._stream)
        self.kept.append(made)
        return made

    def zeros(self, shape: tuple[int, ...]) -> UsersArray:
        return self.upload(np.zeros(shape, np.float32))

    def copy(self, array: UsersArray) -> UsersArray:
        return self.upload(array.read())

    def upload(self, array: Array) -> UsersArray:
        made, copied = self.empty(array.shape, array.dtype), np.array(array, order="C")
        self.kept.append(copied)
        made.fill(copied)
        return made

    def address(self, array: UsersArray | cuda.Buffer) -> int:
        return array.pointer

    def forget(self) -> None:
        """Gives back what only this object keeps; all work has ended."""
        driver.synchronize(self._stream)
        self.kept.clear()
