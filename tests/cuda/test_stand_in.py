"""The stand-in notices what it is there for: a driver that let everything pass would prove nothing."""

import ctypes

from tests.cuda import stand_in_driver as driver

SIZE = 1000
u64 = ctypes.c_uint64


class Program:
    """A user's program with a context, two streams and some memory."""

    def __init__(self):
        driver.call("cuInit", 0)
        driver.call("cuCtxPushCurrent_v2", u64(driver.call_for_value("cuDevicePrimaryCtxRetain", 0)))
        self.stream, self.other = (driver.call_for_value("cuStreamCreate", driver.NON_BLOCKING) for _ in range(2))
        pool = driver.call_for_value("cuDeviceGetDefaultMemPool", 0)
        self.memory = driver.call_for_value("cuMemAllocFromPoolAsync", u64(SIZE), u64(pool), u64(self.stream))

    def fill(self, stream, nbytes=SIZE):
        return driver.library().cuMemsetD8Async(u64(self.memory), 7, u64(nbytes), u64(stream))

    def free(self, stream):
        return driver.library().cuMemFreeAsync(u64(self.memory), u64(stream))


VIOLATIONS = {
    "objects of the context are alive": lambda _: driver.library().cuDevicePrimaryCtxRelease_v2(0),
    "races with": lambda program: (program.fill(program.stream), program.fill(program.other)),
    "runs before": lambda program: (program.fill(program.other), driver.synchronize(program.other)),
    "ends outside its 1000 bytes": lambda program: program.fill(program.stream, SIZE + 1),
    "was freed": lambda program: (program.free(program.stream), program.fill(program.stream)),
    "frees memory that filling": lambda program: (program.fill(program.stream), program.free(program.other)),
    "is not one of the streams": lambda program: program.fill(driver.call_for_value("cuEventCreate", 0)),
}


def test_mistakes_are_violations():
    driver.expect_violations()
    for words, mistake in VIOLATIONS.items():
        before = len(driver.report().violations)
        mistake(Program())
        assert words in driver.report().violations[before], words
