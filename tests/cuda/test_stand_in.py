"""The stand-in notices what it is there for: a driver that let everything pass would prove nothing."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in

SIZE = 1000


def u64(value: int) -> ctypes.c_uint64:
    return ctypes.c_uint64(value)


class Program:
    """A user's program with a context, two streams and some memory."""

    def __init__(self) -> None:
        driver.call("cuInit", 0)
        self.context = driver.call_for_value("cuDevicePrimaryCtxRetain", 0)
        driver.call("cuCtxPushCurrent_v2", u64(self.context))
        self.stream = driver.call_for_value("cuStreamCreate", driver.NON_BLOCKING)
        self.other = driver.call_for_value("cuStreamCreate", driver.NON_BLOCKING)
        self.pool = driver.call_for_value("cuDeviceGetDefaultMemPool", 0)
        self.memory = driver.call_for_value("cuMemAllocFromPoolAsync", u64(SIZE), u64(self.pool), u64(self.stream))

    def fill(self, stream: int, nbytes: int = SIZE) -> int:
        code: int = driver.library().cuMemsetD8Async(u64(self.memory), 7, u64(nbytes), u64(stream))
        return code

    def free(self, stream: int) -> int:
        code: int = driver.library().cuMemFreeAsync(u64(self.memory), u64(stream))
        return code

    def record_and_wait(self, recorded: int, waiting: int) -> None:
        event = driver.call_for_value("cuEventCreate", 0)
        driver.call("cuEventRecord", u64(event), u64(recorded))
        driver.call("cuStreamWaitEvent", u64(waiting), u64(event), 0)
        driver.call("cuEventDestroy_v2", u64(event))


def race(program: Program) -> None:
    program.fill(program.stream)
    program.fill(program.other)


def use_before_it_exists(program: Program) -> None:
    program.fill(program.other)
    driver.synchronize(program.other)


def overrun(program: Program) -> None:
    assert program.fill(program.stream, SIZE + 1) != 0


def use_after_free(program: Program) -> None:
    program.free(program.stream)
    assert program.fill(program.stream) != 0


def free_twice(program: Program) -> None:
    program.free(program.stream)
    assert program.free(program.stream) != 0


def free_in_use(program: Program) -> None:
    driver.synchronize(program.stream)
    program.fill(program.stream)
    program.free(program.other)


def stale_stream(program: Program) -> None:
    driver.call("cuStreamDestroy_v2", u64(program.other))
    assert program.fill(program.other) != 0


def event_as_stream(program: Program) -> None:
    assert program.fill(driver.call_for_value("cuEventCreate", 0)) != 0


def no_context(program: Program) -> None:
    driver.call_for_value("cuCtxPopCurrent_v2")
    assert driver.library().cuStreamCreate(ctypes.byref(ctypes.c_uint64()), 0) != 0


def released_context_with_objects(program: Program) -> None:
    assert driver.library().cuDevicePrimaryCtxRelease_v2(0) != 0


def too_new_a_function(program: Program) -> None:
    address, status = ctypes.c_uint64(), ctypes.c_int()
    arguments = b"cuStreamGetCtx", ctypes.byref(address), 12050, u64(0), ctypes.byref(status)
    assert driver.library().cuGetProcAddress_v2(*arguments) != 0


def distant_rows(program: Program) -> None:
    rows = (ctypes.c_uint64 * 16)()
    rows[2], rows[4], rows[6] = 4, program.memory, 1 << 31  # unified addresses; source, its pitch
    rows[9], rows[11], rows[13] = 4, program.memory, 8
    rows[14], rows[15] = 8, 1
    assert driver.library().cuMemcpy2DAsync_v2(rows, u64(program.stream)) != 0


def write_to_memory_in_use(program: Program) -> None:
    pinned = driver.call_for_value("cuMemHostAlloc", ctypes.c_size_t(SIZE), 0)
    driver.copy(program.stream, program.memory, pinned, SIZE)
    ctypes.memset(pinned, 1, SIZE)
    driver.synchronize(program.stream)


VIOLATIONS: dict[Callable[[Program], None], str] = {
    race: "races with",
    use_before_it_exists: "runs before",
    overrun: "ends outside its 1000 bytes",
    use_after_free: "was freed",
    free_twice: "was freed",
    free_in_use: "still uses",
    stale_stream: "no longer one of the streams",
    event_as_stream: "never was one of the streams",
    no_context: "no current context",
    released_context_with_objects: "objects of the context are alive",
    too_new_a_function: "is of 9020",
    distant_rows: "too far apart",
    write_to_memory_in_use: "the host wrote to the pinned memory",
}
BY_NAME = {mistake.__name__: mistake for mistake in VIOLATIONS}


@pytest.mark.parametrize("mistake", BY_NAME)
@on_stand_in()
def test_mistake_is_a_violation(mistake: str) -> None:
    BY_NAME[mistake](Program())
    assert VIOLATIONS[BY_NAME[mistake]] in driver.report().violations[0]
    driver.expect_violations()


PTX = b".version 8.0\n.target sm_75\n.visible .entry kernel(.param .u64 data) { ret; }\n"


class Capture:
    """Of the program's first stream; `is_whole` at its end if nothing has ended it before."""

    def __init__(self, program: Program, mode: int) -> None:
        self.stream, self.is_whole = program.stream, False
        driver.call("cuStreamBeginCapture_v2", u64(self.stream), mode)

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *error: object) -> None:
        code = driver.library().cuStreamEndCapture(u64(self.stream), ctypes.byref(ctypes.c_uint64()))
        assert code in (0, 901)
        self.is_whole = code == 0
        driver.objects_stay()


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("function", ["cuCtxSynchronize", "cuModuleUnload", "cuStreamGetCtx"])
@on_stand_in()
def test_what_no_mode_allows_ends_captures(function: str, mode: int) -> None:
    program, context = Program(), ctypes.c_uint64()
    module = driver.call_for_value("cuModuleLoadDataEx", PTX, 0, None, None)
    arguments = {"cuModuleUnload": (u64(module),), "cuStreamGetCtx": (u64(program.stream), ctypes.byref(context))}
    call = functools.partial(getattr(driver.library(), function), *arguments.get(function, ()))
    with Capture(program, mode) as capture, driver.relaxed_thread():
        assert call() == 900
    assert not capture.is_whole
    assert call() == 0


@pytest.mark.parametrize(
    "function", ["cuEventQuery", "cuEventSynchronize", "cuStreamQuery", "cuStreamSynchronize", "cuGraphExecDestroy"]
)
@on_stand_in()
def test_what_a_relaxed_thread_may_do_ends_captures_in_another_mode(function: str) -> None:
    program = Program()
    with driver.RecordedGraph(program.other) as graph:
        event = driver.call_for_value("cuEventCreate", 0)
    handles = {"cuEventQuery": event, "cuEventSynchronize": event, "cuGraphExecDestroy": graph.handle}
    call = functools.partial(getattr(driver.library(), function), u64(handles.get(function, program.other)))
    with Capture(program, driver.GLOBAL) as capture:
        assert call() == 900
    assert not capture.is_whole
    with Capture(program, driver.GLOBAL) as capture, driver.relaxed_thread():
        assert call() == 0
    assert capture.is_whole


@pytest.mark.parametrize(("function", "ends"), [("cuStreamIsCapturing", False), ("cuStreamSynchronize", True)])
@on_stand_in()
def test_the_legacy_stream_is_of_no_use_beside_a_capture_of_a_blocking_stream(function: str, ends: bool) -> None:
    program, status = Program(), ctypes.c_int()
    program.stream = driver.call_for_value("cuStreamCreate", 0)
    asked = (ctypes.byref(status),) if function == "cuStreamIsCapturing" else ()
    with Capture(program, driver.RELAXED) as capture:
        assert getattr(driver.library(), function)(u64(0), *asked) == 906
    assert capture.is_whole != ends


@on_stand_in()
def test_what_crosses_the_bus_and_waits_is_counted() -> None:
    program = Program()
    host = ctypes.create_string_buffer(SIZE)
    driver.clear()
    driver.copy(program.stream, program.memory, ctypes.addressof(host), SIZE)
    driver.copy(program.stream, program.memory, program.memory, SIZE // 2)
    driver.synchronize(program.stream)
    assert (driver.report().bus_bytes, driver.report().waits) == (SIZE, 1)
    driver.objects_stay()


@on_stand_in()
def test_work_waits_until_somebody_does() -> None:
    program = Program()
    program.fill(program.stream)
    program.record_and_wait(program.stream, program.other)
    program.fill(program.other)
    seen = ctypes.create_string_buffer(SIZE)
    assert driver.library().stand_in_peek(u64(program.memory), seen, u64(SIZE)) == 1
    assert seen.raw == b"\xc7" * SIZE
    assert driver.library().cuStreamQuery(u64(program.other)) == 600
    driver.copy(program.other, ctypes.addressof(seen), program.memory, SIZE)
    assert seen.raw == b"\x07" * SIZE
    assert program.free(program.other) == 0
    for stream in (program.stream, program.other):
        driver.call("cuStreamDestroy_v2", u64(stream))
    driver.call_for_value("cuCtxPopCurrent_v2")
    driver.call("cuDevicePrimaryCtxRelease_v2", 0)


@on_stand_in()
def test_planned_failure_happens_once_and_has_no_effect() -> None:
    driver.call("cuInit", 0)
    driver.fail("cuDevicePrimaryCtxRetain", 2, driver.UNKNOWN)
    context = ctypes.c_uint64()
    retain = driver.library().cuDevicePrimaryCtxRetain
    assert [retain(ctypes.byref(context), 0) for _ in range(3)] == [0, driver.UNKNOWN, 0]
    assert (driver.report().live, driver.report().contexts) == ({}, 2)
    for _ in range(2):
        driver.call("cuDevicePrimaryCtxRelease_v2", 0)


@on_stand_in()
def test_lost_context_stays_lost() -> None:
    driver.fail("cuMemsetD8Async", 1, driver.ILLEGAL_ADDRESS)
    program = Program()
    assert program.fill(program.stream) == driver.ILLEGAL_ADDRESS
    assert driver.library().cuStreamSynchronize(u64(program.stream)) == driver.ILLEGAL_ADDRESS
    driver.objects_stay()
