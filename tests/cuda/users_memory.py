"""Memory of other libraries on a GPU: arrays, and what makes them for a policy; and memory shared with another API."""

import ctypes
import mmap
import os
import sys
import threading
from types import SimpleNamespace

import numpy as np
from tests.cuda import stand_in_driver as driver

from doorstep import cuda
from doorstep._tensors.checks import ReadRules
from doorstep._tensors.reader import read_memory
from doorstep.policy.arrays import _check_floats


def filled(array, device=None, stream=None):
    """A buffer with these bytes."""
    buffer = cuda.Buffer(array.nbytes, device, stream=stream)
    buffer.copy_from_host(array)
    return buffer


class FakeTorch(threading.local):
    """As much of PyTorch as doorstep asks for the current stream, which every thread has for itself, within a block."""

    def __init__(self, stream, device=0):
        self.stream, self.device = stream, device

    def __enter__(self):
        current = SimpleNamespace(is_initialized=lambda: True, current_device=lambda: self.device)
        internals = SimpleNamespace(_cuda_getCurrentRawStream=lambda _: self.stream)
        sys.modules["torch"] = SimpleNamespace(cuda=current, _C=internals)
        return self

    def __exit__(self, *_):
        del sys.modules["torch"]


class UsersArray:
    """Device memory of another library, used on one stream, given back at once when the object ends."""

    def __init__(self, shape, dtype, stream, device=0):
        self.shape, self.dtype, self.stream = tuple(shape), np.dtype(dtype), stream
        self.device, self.nbytes = SimpleNamespace(index=device), int(np.prod(shape)) * self.dtype.itemsize
        self._filled = []  # what work that was begun reads
        with driver.users_context(device), driver.relaxed_thread():
            driver.call_for_value("cuDevicePrimaryCtxRetain", device)
            self.pointer = driver.call_for_value("cuMemAlloc_v2", ctypes.c_size_t(self.nbytes))

    def __del__(self):
        with driver.users_context(self.device.index):
            driver.call("cuMemFree_v2", ctypes.c_uint64(self.pointer))
            driver.call("cuDevicePrimaryCtxRelease_v2", self.device.index)

    @property
    def __cuda_array_interface__(self):
        interface = {"version": 3, "typestr": self.dtype.str, "shape": self.shape, "strides": None}
        return interface | {"data": (self.pointer, False), "stream": self.stream}

    def fill(self, array):
        """Begins a copy on the array's stream."""
        self._filled.append(np.array(array, order="C"))
        driver.write(self.stream, self, self._filled[-1])

    def read(self):
        """After what was begun on the array's stream."""
        array = np.empty(self.shape, self.dtype)
        driver.copy(self.stream, array.ctypes.data, self.pointer, array.nbytes)
        driver.synchronize(self.stream)
        return array


class UsersArrays:
    """Arrays of a library that works on one stream of the GPU."""

    device = "cuda:0"

    def __init__(self, stream):
        self._stream = stream
        self.kept = []  # what work that was begun reads and writes

    def stream(self):
        return self._stream

    def is_capturing(self):
        status = ctypes.c_int()
        driver.call("cuStreamIsCapturing", ctypes.c_uint64(self._stream), ctypes.byref(status))
        return status.value != 0

    def read(self, name, value, stream, *, written):
        rules = ReadRules(name, written=written, stream=stream)
        return _check_floats(name, read_memory(value, rules), value, self.device)

    def empty(self, shape, dtype):
        made = UsersArray(shape, dtype, self._stream)
        self.kept.append(made)
        return made

    def zeros(self, shape):
        return self.upload(np.zeros(shape, np.float32))

    def copy(self, array):
        return self.upload(array.read())

    def upload(self, array):
        made = self.empty(array.shape, array.dtype)
        made.fill(array)
        return made

    def address(self, array):
        return array.pointer

    def forget(self):
        """Gives back what only this object keeps; all work has ended."""
        driver.synchronize(self._stream)
        self.kept.clear()


# What stands on the other side of a file descriptor in place of Vulkan: files in memory, which the stand-in for the
# driver takes for that API's memory and semaphores. Their names tell what they are.


class Memory:
    """Memory that the other API has allocated, or imported, descriptor and all; `array` is its own view of it."""

    def __init__(self, nbytes, *, dedicated=False, imported=None):
        self._descriptor = imported
        if imported is None:
            self._descriptor = os.memfd_create("dedicated-memory" if dedicated else "memory")
            os.ftruncate(self._descriptor, nbytes)
        self.array = np.frombuffer(mmap.mmap(self._descriptor, nbytes), np.uint8)

    def export(self):
        """A descriptor for who imports it."""
        return os.dup(self._descriptor)

    def __del__(self):
        os.close(self._descriptor)


class Semaphore(Memory):
    """A semaphore of the other API; `value` is that of a timeline, or 1 for a binary one that is signalled."""

    def __init__(self, *, timeline):
        descriptor = os.memfd_create("timeline-semaphore" if timeline else "binary-semaphore")
        os.ftruncate(descriptor, mmap.PAGESIZE)
        super().__init__(mmap.PAGESIZE, imported=descriptor)
        self._value = self.array.view(np.uint64)

    @property
    def value(self):
        return int(self._value[0])

    def signal(self, value=1):
        self._value[0] = value


def is_open(descriptor):
    """Whether a file descriptor of this process is."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
