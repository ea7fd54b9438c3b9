"""Whichever call of the driver fails: a typed error or none, nothing lost, and the simulator as it was."""

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in

import doorstep
from doorstep import cuda

ALLOCATING = {"cuMemAllocFromPoolAsync", "cuMemAlloc", "cuMemHostAlloc"}
# When one of these fails, something stays behind, as it must: its user could no longer tell whether it is in use.
# Before anything can be given back, its context must be made current.
GIVING_BACK = {
    "cuCtxGetCurrent",
    "cuCtxPopCurrent",
    "cuCtxPushCurrent",
    "cuDevicePrimaryCtxRelease",
    "cuEventDestroy",
    "cuEventSynchronize",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuMemFree",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuStreamDestroy",
    "cuStreamIsCapturing",
    "cuStreamSynchronize",
    "cuThreadExchangeStreamCaptureMode",
}


def calls_of(action: Callable[[], Any]) -> list[str]:
    """The driver's functions that an action calls when nothing fails."""
    driver.clear()
    action()
    gc.collect()
    return driver.report().calls


def check_failing(nth: int, calls: list[str], action: Callable[[], Any]) -> str:
    """The n-th call of the driver fails in an action, which raises the error for that or none; which call it was."""
    code = driver.OUT_OF_MEMORY if calls[nth] in ALLOCATING else driver.UNKNOWN
    driver.clear()
    driver.fail("", nth + 1, code)
    error = error_of(action)
    gc.collect()
    end = driver.report()
    driver.clear()
    assert end.violations == [], (nth, end.failed)
    if error is not None:
        check_error(error, end.failed, code)
    return end.failed


def error_of(action: Callable[[], Any]) -> doorstep.DoorstepError | None:
    """What an action raises."""
    try:
        action()
    except doorstep.DoorstepError as error:
        return error.with_traceback(None)  # which holds the action's objects
    return None


def check_error(error: doorstep.DoorstepError, function: str, code: int) -> None:
    """The class tells what to do, the message names the function."""
    no_memory = code == driver.OUT_OF_MEMORY
    assert isinstance(error, doorstep.OutOfMemoryError if no_memory else doorstep.DeviceError), repr(error)
    assert no_memory or function in str(error), (function, error)
    assert error.driver_code == code


def create_and_close() -> None:
    doorstep.Simulator(8, device="cuda").close()


@on_stand_in()
def test_failing_call_while_a_simulator_is_made_or_closed_leaves_nothing() -> None:
    create_and_close()
    calls = calls_of(create_and_close)
    assert len(calls) > 20
    for nth in range(len(calls)):
        before = driver.report().live
        failed = check_failing(nth, calls, create_and_close)
        assert failed in GIVING_BACK or driver.report().live == before, (nth, failed)
    create_and_close()
    driver.objects_stay()


METHODS: dict[str, Callable[[doorstep.Simulator], Any]] = {
    "step": lambda sim: sim.step(),
    "step_async": lambda sim: sim.step_async().wait(),
    "reset": lambda sim: sim.reset(),
    "reset of slots": lambda sim: sim.reset([1, 3]),
    "reset by mask": lambda sim: sim.reset(np.arange(8) % 2 == 0),
    "refresh": lambda sim: sim.refresh(),
    "save": lambda sim: sim.save(),
    "save of slots": lambda sim: sim.save([2, 5]),
    "restore": lambda sim: sim.restore(sim.save()),
    "hash": lambda sim: sim.hash(),
    "world_hashes": lambda sim: sim.world_hashes(),
    "wait": lambda sim: sim.wait(),
    "health": lambda sim: sim.health,
    "copy_to_host": lambda sim: sim.lidar.copy_to_host(),
    "copy of a state field": lambda sim: sim.state.body_positions.copy_to_host(),
    "copy_from_host": lambda sim: sim.actions.copy_from_host(np.ones((8, 2, 4), np.int32)),
    "edit of a state field": lambda sim: sim.state.agent_max_y.copy_from_host(np.ones((8, 2), np.float32)),
    "export": lambda sim: sim.rewards.__dlpack__(stream=1),
}


@pytest.mark.parametrize("action_check", ["clamp", "raise"])
@pytest.mark.parametrize("name", METHODS)
@on_stand_in()
def test_failing_call_in_a_method_leaves_worlds_as_they_were_or_should_be(name: str, action_check: Any) -> None:
    method = METHODS[name]
    with doorstep.Simulator(8, device="cuda", action_check=action_check, strict=True) as sim:
        _ = sim.state.body_positions
        sim.step()
        begin = sim.save()
        method(sim)
        done = sim.hash()
        sim.restore(begin)
        before = sim.hash()
        calls = calls_of(lambda: method(sim))
        for nth in range(len(calls)):
            sim.restore(begin)
            failed = check_failing(nth, calls, lambda: method(sim))
            assert sim.hash() in (before, done), (nth, failed)
            if failed in GIVING_BACK:
                driver.objects_stay()
        sim.restore(begin)
        method(sim)
        assert sim.hash() == done


@on_stand_in()
def test_failing_call_in_a_cuda_object_is_typed_and_leaves_nothing() -> None:
    def use_everything() -> None:
        stream, event, later = cuda.Stream(), cuda.Event(timing=True), cuda.Event(timing=True)
        buffer, pinned = cuda.Buffer(1000, stream=stream), cuda.Buffer.pinned(1000)
        event.record(stream)
        buffer.copy_from_host(np.arange(10))
        later.record(stream)
        stream.wait_event(later)
        assert buffer.copy_to_host(np.int64)[9] == 9
        assert event.elapsed_seconds(later) > 0
        for thing in (buffer, pinned, event, later, stream):
            thing.close()

    use_everything()
    calls = calls_of(use_everything)
    for nth in range(len(calls)):
        before = driver.report().live
        failed = check_failing(nth, calls, use_everything)
        assert failed in GIVING_BACK or driver.report().live == before, (nth, failed)
    driver.objects_stay()


@on_stand_in()
def test_lost_device_is_an_error_in_every_method_and_the_process_lives() -> None:
    sim = doorstep.Simulator(8, device="cuda")
    sim.step()
    driver.fail("cuLaunchKernel", 1, driver.ILLEGAL_ADDRESS)
    with pytest.raises(doorstep.DeviceError) as caught:
        sim.step()
    assert caught.value.driver_code == driver.ILLEGAL_ADDRESS
    for name, method in METHODS.items():
        assert isinstance(error_of(partial(method, sim)), doorstep.DeviceError), name
    with pytest.raises(doorstep.DeviceError):
        doorstep.Simulator(2, device="cuda")
    sim.close()
    with doorstep.Simulator(2) as cpu:
        cpu.step()
    del sim
    driver.objects_stay()


@on_stand_in()
def test_memory_that_the_device_lacks_is_told_with_amounts_and_nothing_stays() -> None:
    with doorstep.Simulator(100, device="cuda") as small:
        free = cuda.Device().free_bytes
        with pytest.raises(doorstep.OutOfMemoryError) as caught:
            doorstep.Simulator(1_000_000, device="cuda")
        assert caught.value.driver_code == driver.OUT_OF_MEMORY
        assert "GiB" in str(caught.value) or "MiB" in str(caught.value) or "bytes" in str(caught.value)
        assert caught.value.hint
        assert cuda.Device().free_bytes == free
        small.step()
        small.wait()


@on_stand_in(multiprocessors=1)
def test_as_many_worlds_fit_as_the_device_has_memory_for() -> None:
    doorstep.Simulator(4, device="cuda").close()
    driver.set_memory(2**21)
    with pytest.raises(doorstep.OutOfMemoryError):
        doorstep.Simulator(4000, device="cuda")
    with doorstep.Simulator(100, device="cuda") as sim:
        sim.step()
        sim.wait()
