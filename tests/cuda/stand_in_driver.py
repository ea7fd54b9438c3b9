"""The stand-in for NVIDIA's driver, as the tests see it: what it noted down, and a user's own calls of the driver."""

import ctypes
import functools
import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("DOORSTEP_CUDA_STAND_IN") or PROJECT / "build/library/tests/cuda/stand_in")
LIBRARY_NAME = "libcuda.so.1"

# CUresult
OUT_OF_MEMORY = 2
DEVICE_UNAVAILABLE = 46
ILLEGAL_ADDRESS = 700
UNKNOWN = 999

WAITING = {"cuCtxSynchronize", "cuEventSynchronize", "cuStreamSynchronize"}  # functions that wait for work

NON_BLOCKING = 1  # a stream's flag
GLOBAL, RELAXED = 0, 2  # modes of captures

may_stay = False
violations_expected = False


class Report(NamedTuple):
    """What happened so far."""

    violations: list[str]  # of the driver's rules
    live: dict[str, int]  # objects by kind; kinds without any are left out
    contexts: int  # references to the primary contexts of all devices
    modules: int  # that are loaded
    pending: int  # operations that were begun and have not run
    calls: list[str]  # names of the functions, in order
    failed: str  # the function that failed last because a test planned it
    waits: int  # calls that waited for work, since clear()
    bus_bytes: int  # copied between host and devices, since clear()


@functools.cache
def library():
    """The library of this process, which doorstep finds too."""
    return ctypes.CDLL(LIBRARY_NAME)


def report():
    """Violations, objects and calls so far."""
    library().stand_in_report.restype = ctypes.c_char_p
    return read_report(library().stand_in_report())


def read_report(text):
    """The same of another process, which wrote it where STAND_IN_REPORT told it to."""
    read = json.loads(text)
    kept = {kind: read["live"].pop(kind, 0) for kind in ("contexts", "modules")}  # by doorstep, until the process ends
    return Report(**kept, **read)


def finish():
    """Runs all work that was begun: what is wrong with it is found now."""
    library().stand_in_finish()


def fail(function, nth, code):
    """The n-th call from now on of a function ("" for any) returns the code, without effect."""
    library().stand_in_fail(function.encode(), ctypes.c_int64(nth), code)


def objects_stay():
    """This test made the driver refuse to take objects back: they may be alive at its end."""
    global may_stay
    may_stay = True


def expect_violations():
    """This test broke rules of the driver on purpose."""
    global violations_expected
    violations_expected = True
    objects_stay()


def clear():
    """Forgets the calls so far and the failures that were planned."""
    library().stand_in_clear()


def peek(tensor):
    """What the tensor's memory holds now, whatever is still to be done."""
    address = tensor.__cuda_array_interface__["data"][0]
    array = np.empty(tensor.shape, tensor.dtype)
    assert library().stand_in_peek(ctypes.c_uint64(address), ctypes.c_void_p(array.ctypes.data), array.nbytes) == 1
    return array


# ---- A user's own calls, which NVIDIA's driver takes too


def call(function, *arguments):
    """Calls the driver; it must succeed."""
    result = getattr(library(), function)(*arguments)
    assert result == 0, f"{function} returned {result}"


def call_for_value(function, *arguments):
    """Calls a function of the driver whose first parameter is where a handle or an address goes."""
    value = ctypes.c_uint64()
    call(function, ctypes.byref(value), *arguments)
    return value.value


def current_context():
    """The calling thread's current context, or 0."""
    return call_for_value("cuCtxGetCurrent")


@contextmanager
def users_context(device=0):
    """The device's context is retained and current, as in a program that uses CUDA itself."""
    call("cuInit", 0)
    context = call_for_value("cuDevicePrimaryCtxRetain", device)
    call("cuCtxPushCurrent_v2", ctypes.c_uint64(context))
    yield context
    assert call_for_value("cuCtxPopCurrent_v2") == context
    call("cuDevicePrimaryCtxRelease_v2", device)


@contextmanager
def users_stream(device=0):
    """A CUstream that somebody else made. At its end the graphs that were recorded go."""
    with users_context(device):
        stream = call_for_value("cuStreamCreate", NON_BLOCKING)
        yield stream
        while RecordedGraph.alive:
            RecordedGraph.alive[0].close()
        call("cuStreamDestroy_v2", ctypes.c_uint64(stream))


def synchronize(stream):
    """Waits for a stream."""
    call("cuStreamSynchronize", ctypes.c_uint64(stream))


@contextmanager
def relaxed_thread():
    """This thread may make any call beside a capture, as PyTorch's allocator does."""
    mode = ctypes.c_int(RELAXED)
    call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    yield
    call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))


def write(stream, tensor, array):
    """Begins a copy of an array into a tensor."""
    assert (array.shape, array.dtype) == (tensor.shape, tensor.dtype)
    copy(stream, tensor.__cuda_array_interface__["data"][0], array.ctypes.data, array.nbytes)


def copy(stream, destination, source, nbytes):
    """Begins a copy."""
    addresses = ctypes.c_uint64(destination), ctypes.c_uint64(source)
    call("cuMemcpyAsync", *addresses, ctypes.c_size_t(nbytes), ctypes.c_uint64(stream))


class RecordedGraph:
    """What a block of code begins on a stream, recorded and ready to be launched."""

    alive = []  # noqa: RUF012  # of all

    def __init__(self, stream, mode=RELAXED):
        self.stream, self.mode, self.handle = stream, mode, 0

    def __enter__(self):
        call("cuStreamBeginCapture_v2", ctypes.c_uint64(self.stream), self.mode)
        return self

    def __exit__(self, *error):
        graph = ctypes.c_uint64()
        call("cuStreamEndCapture", ctypes.c_uint64(self.stream), ctypes.byref(graph))
        self.handle = call_for_value("cuGraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
        call("cuGraphDestroy", graph)
        self.alive.append(self)

    def launch(self):
        call("cuGraphLaunch", ctypes.c_uint64(self.handle), ctypes.c_uint64(self.stream))

    def close(self):
        self.alive.remove(self)
        call("cuGraphExecDestroy", ctypes.c_uint64(self.handle))
