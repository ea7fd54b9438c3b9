"""doorstep.cuda on a machine without a driver: importing costs nothing, using says what is missing.

What its objects do is tested on a stand-in for the driver, in tests/cuda.
"""

import inspect
from typing import Any

import pytest
from tests.conftest import RunPython
from tests.driver import no_driver

import doorstep
from doorstep import cuda

FIRST_USES = {
    "count": lambda: cuda.Device.count(),
    "device": lambda: cuda.Device(),
    "stream": lambda: cuda.Stream(),
    "stream of another": lambda: cuda.Stream.from_handle(1),
    "event": lambda: cuda.Event(),
    "event of another": lambda: cuda.Event.from_handle(1),
    "buffer": lambda: cuda.Buffer(10),
    "pinned": lambda: cuda.Buffer.pinned(10),
    "memory of another": lambda: cuda.Buffer.from_pointer(256, 10),
    "shared memory": lambda: cuda.InteropBuffer(10),
    "memory of another API": lambda: cuda.InteropBuffer.import_fd(0, 10),
    "semaphore": lambda: cuda.Semaphore.import_fd(0),
}


@no_driver
@pytest.mark.parametrize("use", FIRST_USES.values(), ids=FIRST_USES)
def test_without_a_driver_every_first_use_says_so(use: Any) -> None:
    with pytest.raises(doorstep.NoDriverError, match=r"libcuda\.so\.1") as caught:
        use()
    assert caught.value.hint
    assert not any(cuda.resource_counts().values())


def test_importing_opens_no_driver_and_neither_does_the_cpu(run_new_python: RunPython) -> None:
    code = """
import doorstep, doorstep.cuda
with doorstep.Simulator(4) as sim:
    sim.step()
doorstep.cuda.resource_counts()
doorstep.live_counts()
with open("/proc/self/maps") as maps:
    print("libcuda" in maps.read())
"""
    assert run_new_python(code) == "False\n"


BAD_CALLS: list[tuple[Any, str]] = [
    (lambda: cuda.Device(-1), "index"),
    (lambda: cuda.Device("0"), "index"),  # type: ignore[arg-type]
    (lambda: cuda.Device(True), "index"),
    (lambda: cuda.Stream("cuda:0"), "device"),  # type: ignore[arg-type]
    (lambda: cuda.Stream(2**31), "device"),
    (lambda: cuda.Stream.from_handle("7"), "stream"),
    (lambda: cuda.Stream.from_handle(-1), "stream"),
    (lambda: cuda.Stream.from_handle(None), "stream"),
    (lambda: cuda.Event(1.5), "device"),  # type: ignore[arg-type]
    (lambda: cuda.Event(timing=1), "timing"),  # type: ignore[arg-type]
    (lambda: cuda.Event.from_handle(0), "handle"),
    (lambda: cuda.Buffer(0), "nbytes"),
    (lambda: cuda.Buffer(2**48 + 1), "nbytes"),
    (lambda: cuda.Buffer(1.0), "nbytes"),  # type: ignore[arg-type]
    (lambda: cuda.Buffer(8, False), "device"),
    (lambda: cuda.Buffer.pinned(0), "nbytes"),
    (lambda: cuda.Buffer.from_pointer(0, 8), "pointer"),
    (lambda: cuda.Buffer.from_pointer(2**64, 8), "pointer"),
]


@pytest.mark.parametrize(("call", "argument"), BAD_CALLS)
def test_bad_arguments_are_named_before_a_driver_is_looked_for(call: Any, argument: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        call()
    assert caught.value.argument == argument
    assert str(caught.value).startswith(f"{argument} is ")


def test_every_public_thing_has_a_docstring() -> None:
    for name in cuda.__all__:
        thing = getattr(cuda, name)
        assert inspect.getdoc(thing), name
        for member, value in vars(thing).items() if inspect.isclass(thing) else ():
            if not member.startswith("_"):
                assert inspect.getdoc(value), f"{name}.{member}"
