"""Work is ordered on the streams that users have, without waiting: the stand-in does it as late as it may."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in, refused
from tests.cuda.twins import METHODS, Twins, step
from tests.cuda.users_memory import FakeTorch, UsersArray
from tests.scenes import random_actions

import doorstep
from doorstep import cuda

WAITING_OR_ALLOCATING = {
    *driver.WAITING, "cuEventQuery", "cuMemAlloc", "cuMemAllocFromPoolAsync", "cuMemHostAlloc", "cuModuleLoadDataEx",
    "cuStreamQuery",
}  # fmt: skip


def test_steps_are_only_begun():
    with doorstep.Simulator(8, device="cuda") as sim:
        sim.wait()
        driver.clear()
        for _ in range(10):
            sim.step()
        end = driver.report()
        assert end.calls.count("cuLaunchKernel") == 10
        assert not WAITING_OR_ALLOCATING.intersection(end.calls)
        assert end.pending >= 10
        assert (driver.peek(sim.steps_remaining) == 200).all()
        assert (sim.steps_remaining.copy_to_host() == 190).all()
    cameras = doorstep.Cameras(width=8, height=8)
    with driver.users_stream() as stream, doorstep.Simulator(3, device="cuda", stream=stream, cameras=cameras) as sim:
        sim.step()
        sim.wait()
        driver.clear()
        sim.step()
        calls = driver.report().calls
        assert calls.count("cuLaunchKernel") == 2
        assert not [name for name in calls if "Synchronize" in name or "Alloc" in name or "Memcpy" in name], calls


def test_work_follows_the_given_stream_whatever_it_is_given_as():
    with driver.users_stream() as users, doorstep.Simulator(8) as cpu:
        objects = SimpleNamespace(__cuda_stream__=lambda: (0, users)), SimpleNamespace(cuda_stream=users)
        for given in (users, *objects, cuda.Stream.from_handle(users, 0), 0, 1, 2):
            handle = given if isinstance(given, int) else users
            cpu.reset(seed=3)
            with doorstep.Simulator(8, seed=3, device="cuda", stream=given) as sim:
                assert sim.stream == (handle or 1)  # the default stream by its unambiguous name
                assert sim.actions.__cuda_array_interface__["stream"] == sim.stream
                seen, lidar = np.empty(sim.lidar.shape, np.float32), sim.lidar.__cuda_array_interface__["data"][0]
                for actions in random_actions(0, 4, 8):
                    driver.write(handle, sim.actions, actions)
                    sim.step()
                    driver.copy(handle, seen.ctypes.data, lidar, seen.nbytes)
                    step(cpu, actions)
                    assert (seen == cpu.lidar.to_numpy()).all()
                assert sim.hash() == cpu.hash()


@on_stand_in(devices=2)
def test_a_stream_of_another_device_is_refused():
    stream = cuda.Stream(1)
    for device, given in (("cuda:0", stream.handle), ("cpu", stream)):
        with refused("stream"):
            doorstep.Simulator(3, device=device, stream=given)


def test_what_is_given_is_taken_at_once_and_done_in_order():
    with Twins(8) as twins:
        saved = twins.cpu.save([0, 1])
        for sim in twins:
            worlds, mask, actions = np.array([5, 2]), np.arange(8) == 6, random_actions(1, 1, 8)[0].copy()
            sim.reset([1])
            sim.reset([3, 4])
            sim.reset(mask)
            wide = actions[::-1].astype(np.int64)  # which is converted
            sim.actions.copy_from_host(actions)
            sim.step()
            sim.actions = wide
            data = bytearray(saved)
            sim.restore(data, worlds)
            data[:], worlds[:], mask[:], actions[:], wide[:] = bytes(len(data)), 0, True, 99, 99
            sim.step()
        assert (twins.gpu.state.episode_index.copy_to_host() == [1, 2, 1, 2, 2, 1, 2, 1]).all()
        twins.assert_same()


def test_the_current_stream_of_pytorch_is_followed_from_call_to_call():
    with driver.users_stream() as one, driver.users_stream() as other, Twins(8) as (cpu, sim):
        for _ in range(3):  # on its own stream
            sim.step()
            cpu.step()
        with FakeTorch(one) as torch:
            for number, actions in enumerate(random_actions(4, 8, 8)):
                torch.stream = (one, other)[number // 2 % 2]
                sim.rewards.__dlpack__(stream=torch.stream)  # PyTorch's next work waits for the simulator's
                if number % 3:
                    driver.write(torch.stream, sim.actions, actions)
                else:
                    chosen = UsersArray(sim.actions.shape, np.int32, torch.stream)
                    chosen.fill(actions)
                    sim.actions = chosen
                sim.step()
                assert sim.stream == torch.stream
                driver.synchronize(torch.stream)
                assert (driver.peek(sim.steps_remaining) == 196 - number).all()
                step(cpu, actions)
            assert sim.hash() == cpu.hash()


def test_a_recording_of_pytorchs_current_stream_takes_the_steps():
    with (
        driver.users_stream() as one,
        driver.users_stream() as recorded,
        FakeTorch(one) as torch,
        Twins(8) as (cpu, sim),
    ):
        sim.step()
        sim.wait()
        torch.stream = recorded
        with driver.RecordedGraph(recorded, driver.GLOBAL) as graph:
            sim.step()
        torch.stream = one
        graph.launch()
        driver.synchronize(recorded)
        for _ in range(2):
            cpu.step()
        assert sim.hash() == cpu.hash()


def test_consumers_of_dlpack_capsules_wait_for_the_simulator_unless_they_want_no_order():
    with driver.users_stream() as users, doorstep.Simulator(6, device="cuda") as sim:
        assert sim.steps_remaining.__dlpack_device__() == (2, 0)
        for number, consumer in enumerate((users, None, 1, 2)):
            sim.step()
            capsule = sim.steps_remaining.__dlpack__(stream=consumer, max_version=(1, 0))
            seen = np.empty(sim.steps_remaining.shape, np.int32)
            address = sim.steps_remaining.__cuda_array_interface__["data"][0]
            driver.copy(consumer or 1, seen.ctypes.data, address, seen.nbytes)
            assert (seen == 199 - number).all(), consumer
            del capsule
        sim.step()
        pending = driver.report().pending
        driver.clear()
        capsule = sim.rewards.__dlpack__(stream=-1)
        assert (driver.report().pending, driver.report().calls) == (pending, [])
        del capsule
        for stream in (0, -2, "1", True):
            with pytest.raises(BufferError, match="stream"):
                sim.rewards.__dlpack__(stream=stream)


@on_stand_in(devices=2)
def test_the_callers_current_context_is_left_alone():
    with driver.users_context(1) as context:
        sim = doorstep.Simulator(8, device="cuda:0", stream=cuda.Stream(0))
        of_buffer = lambda _: cuda.Buffer(100, 0).copy_from_host(np.zeros(3))  # noqa: E731
        for call in (*METHODS.values(), of_buffer, lambda sim: sim.close()):
            call(sim)
            assert driver.current_context() == context


# ---- Threads that share a simulator

ROUNDS = 100


def test_work_of_each_thread_follows_its_own_stream_and_no_step_is_lost():
    def use(stream):
        torch.stream = stream
        latest = 10**6
        with driver.users_context():
            for _ in range(ROUNDS):
                sim.step()
                driver.synchronize(stream)
                seen = int(driver.peek(sim.steps_remaining).max())  # other threads' steps may have run too
                assert seen < latest
                assert sim.stream == stream
                latest = seen

    def write():
        with driver.users_context():
            for _ in range(ROUNDS):
                sim.state.static_kinds.copy_from_host(kinds)
                sim.hash()

    with (
        driver.users_stream() as one,
        driver.users_stream() as other,
        FakeTorch(one) as torch,
        Twins(3, episode_length=1_000_000) as (cpu, sim),
    ):
        kinds = sim.state.static_kinds.copy_to_host()
        with ThreadPoolExecutor(3) as executor:
            for done in [executor.submit(use, one), executor.submit(use, other), executor.submit(write)]:
                done.result()
        for _ in range(2 * ROUNDS):
            cpu.step()
        assert sim.step_count == 2 * ROUNDS
        assert sim.hash() == cpu.hash()
