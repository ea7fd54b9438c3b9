"""Whichever call of the driver fails: a typed error or none, nothing lost, and everything as it was."""

import gc
import itertools
import os
from functools import partial

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_gpu, on_stand_in
from tests.cuda.training_calls import advantages, assert_same, prepared
from tests.cuda.twins import METHODS
from tests.cuda.users_memory import Memory, Semaphore, UsersArray

import doorstep
from doorstep import cuda

ALLOCATING = {"cuMemAllocFromPoolAsync", "cuMemAlloc", "cuMemHostAlloc"}
# When one of these fails, something stays behind, as it must: its user could no longer tell whether it is in use.
# Before anything can be given back, its context must be made current.
GIVING_BACK = {
    "cuCtxGetCurrent", "cuCtxPopCurrent", "cuCtxPushCurrent", "cuDevicePrimaryCtxRelease", "cuEventDestroy",
    "cuEventSynchronize", "cuGraphDestroy", "cuGraphExecDestroy", "cuMemFree", "cuMemFreeAsync", "cuMemFreeHost",
    "cuStreamDestroy", "cuStreamIsCapturing", "cuStreamSynchronize", "cuThreadExchangeStreamCaptureMode",
}  # fmt: skip
# What keeps something that is shared with another API, beside these.
GIVING_BACK_SHARED = {
    "cuDestroyExternalMemory", "cuDestroyExternalSemaphore", "cuEventQuery", "cuEventRecord", "cuMemAddressFree",
    "cuMemRelease", "cuMemUnmap", "cuStreamQuery",
}  # fmt: skip


def error_of(action):
    """What an action raises."""
    try:
        action()
    except doorstep.DoorstepError as error:
        return error.with_traceback(None)  # which holds the action's objects
    return None


def check_each_failing_call(action, begin=lambda: None, after=lambda failed: None, keeping=GIVING_BACK):
    """Every call of the driver fails once in an action, which raises the error for that, or none, and works again."""
    action()
    driver.clear()
    action()
    gc.collect()
    calls = driver.report().calls
    for nth, name in enumerate(calls):
        code = driver.OUT_OF_MEMORY if name in ALLOCATING else driver.UNKNOWN
        begin()
        before, open_before = driver.report().live, set(os.listdir("/proc/self/fd"))
        driver.clear()
        driver.fail("", nth + 1, code)
        error = error_of(action)
        gc.collect()
        end = driver.report()
        driver.clear()
        assert end.violations == [], (nth, end.failed)
        if error is not None:  # the class tells what to do, the message names the function
            no_memory = code == driver.OUT_OF_MEMORY
            assert isinstance(error, doorstep.OutOfMemoryError if no_memory else doorstep.DeviceError), repr(error)
            assert no_memory or end.failed in str(error), (end.failed, error)
            assert error.driver_code == code
        if end.failed in keeping:
            driver.objects_stay()
        else:
            assert driver.report().live == before, (nth, end.failed)
            assert set(os.listdir("/proc/self/fd")) <= open_before, (nth, end.failed)
        after(end.failed)
    action()
    return calls


def use_cuda_objects():
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


def train():
    with prepared():
        assert_same("generalized_advantages", advantages("float32", 2, 3))


def test_whichever_call_fails_while_objects_come_and_go_nothing_is_left():
    for action in (lambda: doorstep.Simulator(8, device="cuda").close(), use_cuda_objects, train):
        assert len(check_each_failing_call(action)) > 20


def test_whichever_call_for_sharing_fails_neither_memory_nor_descriptors_are_left():
    memory, semaphore, tensor = Memory(4096), Semaphore(timeline=True), cuda.Buffer(64)

    def share():
        exports, callers = cuda.InteropBuffer(64), [semaphore.export(), memory.export()]
        try:
            imports = cuda.InteropBuffer.import_fd(callers[-1], 4096)
            callers.pop()
            order = cuda.Semaphore.import_fd(callers[-1], timeline=True)
            callers.pop()
        finally:
            for descriptor in callers:
                os.close(descriptor)
        exports.copy_in(tensor)
        order.signal(exports.stream, semaphore.value + 1)
        order.wait(imports.stream, semaphore.value + 1)
        imports.copy_out(tensor)
        os.close(exports.export())
        exports.stream.synchronize()
        for thing in (order, imports, exports):
            thing.close()

    assert len(check_each_failing_call(share, keeping=GIVING_BACK | GIVING_BACK_SHARED)) > 60


def test_whichever_call_fails_in_a_method_worlds_are_as_they_were_or_should_be():
    for action_check, (name, method) in itertools.product(("clamp", "raise"), METHODS.items()):
        with doorstep.Simulator(8, device="cuda", action_check=action_check, strict=True) as sim:
            _ = sim.state.body_positions
            sim.step()
            begin, before = sim.save(), sim.hash()
            method(sim)
            done = sim.hash()

            def look(failed, name=name, sim=sim, allowed=(before, done)):
                assert sim.hash() in allowed, (name, failed)

            check_each_failing_call(partial(method, sim), partial(sim.restore, begin), look)
            sim.restore(begin)
            method(sim)
            assert sim.hash() == done, name


def test_a_binding_that_the_driver_fails_changes_nothing():
    with driver.users_stream() as stream, doorstep.Simulator(7, device="cuda", stream=stream) as sim:
        for function in ("cuMemcpyAsync", "cuStreamSynchronize", "cuPointerGetAttribute"):
            place = UsersArray((7, 2, 4), np.int32, stream)
            before = sim.actions.__cuda_array_interface__["data"]
            driver.fail(function, 1, driver.UNKNOWN)
            with pytest.raises(doorstep.DeviceError):
                sim.bind(actions=place)
            driver.clear()
            assert sim.actions.__cuda_array_interface__["data"] == before
            sim.step()
            sim.bind(actions=place)
            sim.step()


@on_gpu()
def test_a_driver_that_refuses_a_policy_is_reported_and_nothing_is_left(stream, arrays):
    torch = pytest.importorskip("torch")
    from tests.cuda.device_module import DeviceModule
    from tests.pkg.policy.networks import mlp, observe

    torch.manual_seed(0)
    module, given = mlp(40), observe(3, 2).numpy()
    expected, observations = doorstep.load_policy(module).forward(given), arrays.upload(given)
    for function in ("cuModuleLoadDataEx", "cuMemHostAlloc", "cuLaunchKernel"):
        driver.fail(function, 1, driver.UNKNOWN)
        with pytest.raises(doorstep.DeviceError, match=function):
            DeviceModule(module, arrays).policy.act(observations)
        driver.clear()
    assert DeviceModule(module, arrays).policy.forward(observations).read().tobytes() == expected.tobytes()


def test_a_lost_device_is_an_error_in_every_method_and_the_process_lives():
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
    doorstep.Simulator(2).step()
    driver.objects_stay()


@on_stand_in(multiprocessors=1)
def test_memory_that_the_device_lacks_is_told_with_amounts_and_nothing_stays():
    with doorstep.Simulator(100, device="cuda") as small:
        free = cuda.Device().free_bytes
        cameras = doorstep.Cameras(width=512, height=512)
        for options in ({"num_worlds": 1_000_000}, {"num_worlds": 600, "cameras": cameras}):
            with pytest.raises(doorstep.OutOfMemoryError, match=r"requested [0-9]+ bytes, device 0 has") as caught:
                doorstep.Simulator(device="cuda", **options)
            assert "use fewer worlds" in caught.value.hint or "use smaller views" in caught.value.hint
        with pytest.raises(doorstep.OutOfMemoryError, match=f"requested {2**40} bytes"):
            cuda.InteropBuffer(2**40)
        cuda.Device().synchronize()  # memory is given back in order
        assert cuda.Device().free_bytes == free
        small.step()
        small.wait()
