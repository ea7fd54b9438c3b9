"""doorstep.cuda on a machine without a driver: using it says what is missing.

What its objects do is tested on a stand-in for the driver, in tests/cuda.
"""

import pytest
from tests.driver import no_driver
from tests.refuses import assert_refused

import doorstep
from doorstep import cuda

FIRST_USES = [
    *(cuda.Device.count, cuda.Device, cuda.Stream, lambda: cuda.Stream.from_handle(1)),
    *(cuda.Event, lambda: cuda.Event.from_handle(1), lambda: cuda.Buffer(10), lambda: cuda.Buffer.pinned(10)),
    *(lambda: cuda.Buffer.from_pointer(256, 10), lambda: cuda.InteropBuffer(10)),
    *(lambda: cuda.InteropBuffer.import_fd(0, 10), lambda: cuda.Semaphore.import_fd(0)),
]
BAD_CALLS = [
    (cuda.Device, [(-1, "index is"), ("0", "index is"), (True, "index is")]),
    (cuda.Stream, [("cuda:0", "device is"), (2**31, "device is")]),
    (cuda.Stream.from_handle, [("7", "stream is"), (None, "stream is")]),
    (cuda.Event, [({"timing": 1}, "timing is")]),
    (cuda.Event.from_handle, [(0, "handle is")]),
    (cuda.Buffer, [(0, "nbytes is"), (2**48 + 1, "nbytes is"), ({"nbytes": 8, "device": False}, "device is")]),
    (lambda address: cuda.Buffer.from_pointer(address, 8), [(0, "pointer is"), (2**64, "pointer is")]),
]


@no_driver
def test_without_a_driver_every_first_use_says_so():
    for use in FIRST_USES:
        with pytest.raises(doorstep.NoDriverError, match=r"libcuda\.so\.1") as caught:
            use()
        assert caught.value.hint
    assert not any(cuda.resource_counts().values())


def test_bad_arguments_are_named_before_a_driver_is_looked_for():
    for call, rows in BAD_CALLS:
        assert_refused(call, rows)
