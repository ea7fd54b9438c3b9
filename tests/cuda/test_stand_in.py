"""The stand-in notices what it is there for: a driver that let everything pass would prove nothing."""

import contextlib
import ctypes
import os

from tests.cuda import stand_in_driver as driver
from tests.cuda.users_memory import Memory, Semaphore, is_open

from doorstep import cuda

SIZE = 1000
u64 = ctypes.c_uint64


class Program:
    """A user's program with a context, two streams and some memory."""

    def __init__(self):
        driver.call("cuInit", 0)
        self.context = driver.call_for_value("cuDevicePrimaryCtxRetain", 0)
        driver.call("cuCtxPushCurrent_v2", u64(self.context))
        self.stream, self.other = (driver.call_for_value("cuStreamCreate", driver.NON_BLOCKING) for _ in range(2))
        pool = driver.call_for_value("cuDeviceGetDefaultMemPool", 0)
        self.memory = driver.call_for_value("cuMemAllocFromPoolAsync", u64(SIZE), u64(pool), u64(self.stream))

    def fill(self, stream, nbytes=SIZE, pointer=0):
        return driver.library().cuMemsetD8Async(u64(pointer or self.memory), 7, u64(nbytes), u64(stream))

    def end_stream(self):
        driver.call("cuStreamDestroy_v2", u64(self.other))

    def free(self, stream):
        return driver.library().cuMemFreeAsync(u64(self.memory), u64(stream))


def free_in_use(program):
    driver.synchronize(program.stream)
    program.fill(program.stream)
    program.free(program.other)


def have_no_context(program):
    while driver.current_context():
        driver.call_for_value("cuCtxPopCurrent_v2")
    assert driver.library().cuStreamCreate(ctypes.byref(u64()), 0) != 0


def ask_for_a_newer_function(program):
    address, status = u64(), ctypes.c_int()
    arguments = b"cuStreamGetCtx", ctypes.byref(address), 12050, u64(0), ctypes.byref(status)
    assert driver.library().cuGetProcAddress_v2(*arguments) != 0


def write_to_memory_in_use(program):
    pinned = driver.call_for_value("cuMemHostAlloc", ctypes.c_size_t(SIZE), 0)
    driver.copy(program.stream, program.memory, pinned, SIZE)
    ctypes.memset(pinned, 1, SIZE)
    driver.synchronize(program.stream)


def unmap_in_use(program):
    exported = cuda.InteropBuffer(8)
    program.fill(program.stream, 8, exported.pointer)


def close_the_drivers_descriptor(program):
    memory = Memory(64)
    imported, wanted = cuda.InteropBuffer.import_fd(memory.export(), 64), os.fstat(memory._descriptor).st_ino
    for number in map(int, os.listdir("/proc/self/fd")):
        if is_open(number) and number != memory._descriptor and os.fstat(number).st_ino == wanted:
            os.close(number)
    imported.close()


def set_a_timeline_back(program):
    semaphore = cuda.Semaphore.import_fd(Semaphore(timeline=True).export(), timeline=True)
    for _ in range(2):
        semaphore.signal(program.stream, 5)
    driver.synchronize(program.stream)


VIOLATIONS = {
    "objects of the context are alive": lambda _: driver.library().cuDevicePrimaryCtxRelease_v2(0),
    "races with": lambda program: (program.fill(program.stream), program.fill(program.other)),
    "runs before": lambda program: (program.fill(program.other), driver.synchronize(program.other)),
    "ends outside its 1000 bytes": lambda program: program.fill(program.stream, SIZE + 1),
    "was freed": lambda program: (program.free(program.stream), program.fill(program.stream)),
    "frees memory that filling": free_in_use,
    "no longer one of the streams": lambda program: (program.end_stream(), program.fill(program.other)),
    "never was one of the streams": lambda program: program.fill(driver.call_for_value("cuEventCreate", 0)),
    "no current context": have_no_context,
    "is of 9020": ask_for_a_newer_function,
    "the host wrote to the pinned memory": write_to_memory_in_use,
    "still uses": unmap_in_use,
    "somebody else has closed": close_the_drivers_descriptor,
    "at 5 is set to 5": set_a_timeline_back,
}


def test_mistakes_are_violations():
    driver.expect_violations()
    for words, mistake in VIOLATIONS.items():
        before = len(driver.report().violations)
        mistake(Program())
        assert words in driver.report().violations[before], words


def test_calls_end_captures_as_their_modes_say():
    driver.objects_stay()
    program, stream = Program(), u64()
    event = driver.call_for_value("cuEventCreate", 0)
    with driver.RecordedGraph(program.other) as graph:
        pass
    allowed = {"cuEventQuery": event, "cuEventSynchronize": event, "cuStreamQuery": program.other}
    allowed |= {"cuStreamSynchronize": program.other, "cuGraphExecDestroy": graph.handle}
    never = {"cuCtxSynchronize": (), "cuStreamGetCtx": (u64(program.stream), ctypes.byref(stream))}
    for function, arguments in (never | {name: (u64(handle),) for name, handle in allowed.items()}).items():
        for relaxed in (False, True):
            driver.call("cuStreamBeginCapture_v2", u64(program.stream), driver.GLOBAL)
            with driver.relaxed_thread() if relaxed else contextlib.nullcontext():
                code = getattr(driver.library(), function)(*arguments)
            end = driver.library().cuStreamEndCapture(u64(program.stream), ctypes.byref(u64()))
            expected = (0, 0) if relaxed and function in allowed else (900, 901)
            assert (code, end) == expected, (function, relaxed)
    blocking = driver.call_for_value("cuStreamCreate", 0)
    driver.call("cuStreamBeginCapture_v2", u64(blocking), driver.RELAXED)
    assert driver.library().cuStreamIsCapturing(u64(0), ctypes.byref(ctypes.c_int())) == 906
    assert driver.library().cuStreamSynchronize(u64(0)) == 906
    assert driver.library().cuStreamEndCapture(u64(blocking), ctypes.byref(u64())) == 901
