"""Work is ordered on the streams that users have, without waiting: the stand-in does it as late as it may."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in
from tests.cuda.twins import Twins
from tests.scenes import random_actions

import doorstep
from doorstep import cuda

WAITING_OR_ALLOCATING = {
    *driver.WAITING,
    "cuEventQuery",
    "cuMemAlloc",
    "cuMemAllocFromPoolAsync",
    "cuMemHostAlloc",
    "cuModuleLoadDataEx",
    "cuStreamQuery",
}


class FakeTorch:
    """As much of PyTorch as doorstep asks for its current stream."""

    def __init__(self, stream: int) -> None:
        self.stream = stream
        current = SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 0)
        internals = SimpleNamespace(_cuda_getCurrentRawStream=lambda _: self.stream)
        sys.modules["torch"] = SimpleNamespace(cuda=current, _C=internals)  # type: ignore[assignment]


@on_stand_in()
def test_steps_are_only_begun() -> None:
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


@on_stand_in()
def test_work_on_the_given_stream_needs_no_waiting() -> None:
    with (
        driver.users_stream() as stream,
        doorstep.Simulator(8) as cpu,
        doorstep.Simulator(8, device="cuda", stream=stream) as sim,
    ):
        assert sim.stream == stream
        assert sim.actions.__cuda_array_interface__["stream"] == stream
        seen = np.empty(sim.lidar.shape, np.float32)
        lidar = sim.lidar.__cuda_array_interface__["data"][0]
        for actions in random_actions(0, 6, 8):
            driver.write(stream, sim.actions, actions)
            sim.step()
            driver.copy(stream, seen.ctypes.data, lidar, seen.nbytes)
            cpu.actions.to_numpy()[:] = actions
            cpu.step()
            assert (seen == cpu.lidar.to_numpy()).all()
        assert sim.hash() == cpu.hash()


@pytest.mark.parametrize("stream", [0, 1, 2])
@on_stand_in()
def test_default_streams_may_be_given(stream: int) -> None:
    with (
        driver.users_context(),
        doorstep.Simulator(5, device="cuda", stream=stream) as sim,
        doorstep.Simulator(5) as cpu,
    ):
        for actions in random_actions(0, 3, 5):
            driver.write(stream, sim.actions, actions)
            cpu.actions.to_numpy()[:] = actions
            for one in (sim, cpu):
                one.step()
        assert sim.actions.__cuda_array_interface__["stream"] == (stream or 1)
        assert sim.hash() == cpu.hash()


@on_stand_in()
def test_streams_may_be_objects() -> None:
    ours = cuda.Stream()
    protocol = SimpleNamespace(__cuda_stream__=lambda: (0, ours.handle))
    like_torch = SimpleNamespace(cuda_stream=ours.handle)
    for stream in (ours, protocol, like_torch, ours.handle):
        with doorstep.Simulator(3, device="cuda", stream=stream) as sim:
            sim.step()
            assert sim.stream == ours.handle
            assert not ours.done
            ours.synchronize()
            assert (driver.peek(sim.steps_remaining) == 199).all()
    ours.close()


@on_stand_in(devices=2)
def test_stream_of_another_device_is_refused() -> None:
    stream = cuda.Stream(1)
    with pytest.raises(doorstep.ArgumentError) as caught:
        doorstep.Simulator(3, device="cuda:0", stream=stream.handle)
    assert caught.value.argument == "stream"
    with pytest.raises(doorstep.ArgumentError):
        doorstep.Simulator(3, device="cpu", stream=stream)
    stream.close()


@on_stand_in()
def test_the_current_stream_of_pytorch_is_followed_from_call_to_call() -> None:
    with driver.users_stream() as one, driver.users_stream() as other, doorstep.Simulator(8) as cpu:
        torch = FakeTorch(one)
        with doorstep.Simulator(8, device="cuda") as sim:
            for step, actions in enumerate(random_actions(4, 8, 8)):
                torch.stream = (one, other)[step // 2 % 2]
                sim.rewards.__dlpack__(stream=torch.stream)  # PyTorch's next work waits for the simulator's
                driver.write(torch.stream, sim.actions, actions)
                sim.step()
                assert sim.stream == torch.stream
                cpu.actions.to_numpy()[:] = actions
                cpu.step()
            assert sim.hash() == cpu.hash()
        del sys.modules["torch"]


@on_stand_in()
def test_a_recording_of_pytorchs_current_stream_takes_the_steps() -> None:
    with driver.users_stream() as one, driver.users_stream() as recorded, doorstep.Simulator(8) as cpu:
        torch = FakeTorch(one)
        with doorstep.Simulator(8, device="cuda") as sim:
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
        graph.close()
        del sys.modules["torch"]


@on_stand_in()
def test_a_simulator_that_moves_from_its_own_stream_to_pytorchs_stays_in_order() -> None:
    with driver.users_stream() as stream, doorstep.Simulator(8) as cpu, doorstep.Simulator(8, device="cuda") as sim:
        for _ in range(3):
            sim.step()
        FakeTorch(stream)
        for _ in range(3):
            sim.step()
        driver.synchronize(stream)
        assert (driver.peek(sim.steps_remaining) == 194).all()
        for _ in range(6):
            cpu.step()
        assert sim.hash() == cpu.hash()
        del sys.modules["torch"]


USERS = -1


@pytest.mark.parametrize("stream", [USERS, None, 1, 2])
@on_stand_in()
def test_consumer_of_a_dlpack_capsule_waits_for_the_simulator(stream: int | None) -> None:
    with driver.users_stream() as users, doorstep.Simulator(6, device="cuda") as sim:
        sim.step()
        consumer = users if stream == USERS else stream
        assert sim.steps_remaining.__dlpack_device__() == (2, 0)
        capsule = sim.steps_remaining.__dlpack__(stream=consumer, max_version=(1, 0))
        seen = np.empty(sim.steps_remaining.shape, np.int32)
        address = sim.steps_remaining.__cuda_array_interface__["data"][0]
        driver.copy(consumer or 1, seen.ctypes.data, address, seen.nbytes)
        assert (seen == 199).all()
        del capsule


@on_stand_in()
def test_consumer_that_wants_no_order_gets_none() -> None:
    with driver.users_stream(), doorstep.Simulator(6, device="cuda") as sim:
        sim.step()
        pending = driver.report().pending
        driver.clear()
        capsule = sim.rewards.__dlpack__(stream=-1)
        assert driver.report().pending == pending
        assert driver.report().calls == []
        del capsule


@pytest.mark.parametrize("stream", [0, -2, "1", True])
@on_stand_in()
def test_ambiguous_streams_of_consumers_are_refused(stream: object) -> None:
    with doorstep.Simulator(2, device="cuda") as sim, pytest.raises(BufferError, match="stream"):
        sim.rewards.__dlpack__(stream=stream)  # type: ignore[arg-type]


@on_stand_in()
def test_cuda_array_interface_describes_the_memory() -> None:
    with doorstep.Simulator(4, num_agents=3, device="cuda") as sim:
        for tensor in (*sim.tensors.values(), sim.state.body_positions, sim.state.episode_index):
            interface = tensor.__cuda_array_interface__
            assert interface["version"] == 3
            assert np.dtype(interface["typestr"]) == tensor.dtype
            assert (interface["shape"], interface["strides"]) == (tensor.shape, tensor.strides)
            assert interface["data"][1] is False
            assert interface["stream"] == sim.stream
            assert not hasattr(tensor, "__array_interface__")
        assert sim.actions.__cuda_array_interface__["data"][0] % 256 == 0


@on_stand_in()
def test_a_tensor_without_elements_has_neither_an_address_nor_strides() -> None:
    with doorstep.Simulator(4, num_agents=1, device="cuda") as sim:
        interface = sim.partner_observations.__cuda_array_interface__
        assert (interface["shape"], interface["strides"], interface["data"][0]) == ((4, 1, 0, 3), None, 0)


@on_stand_in(devices=2)
def test_simulators_on_two_devices_do_not_touch_each_other() -> None:
    with Twins(8, "cuda:0", seed=1) as one, Twins(8, "cuda:1", seed=2) as other:
        for seed in range(4):
            one.step_randomly(1, seed=seed)
            other.step_randomly(2, seed=seed)
        one.assert_same()
        other.assert_same()


@on_stand_in(devices=2)
def test_the_callers_current_context_is_left_alone() -> None:
    with driver.users_context(1) as context:
        sim = doorstep.Simulator(4, device="cuda:0", stream=cuda.Stream(0))
        calls = (
            sim.step,
            sim.reset,
            sim.refresh,
            sim.save,
            sim.hash,
            sim.wait,
            sim.world_hashes,
            lambda: sim.health,
            lambda: sim.step_async().wait(),
            lambda: sim.state.body_positions.copy_to_host(),
            lambda: sim.actions.copy_from_host(sim.actions.copy_to_host()),
            lambda: sim.restore(sim.save()),
            lambda: sim.rewards.__dlpack__(),
            lambda: cuda.Buffer(100, 0).copy_from_host(np.zeros(3)),
            sim.close,
        )
        for call in calls:
            call()
            assert driver.current_context() == context


@on_stand_in()
def test_memory_goes_after_the_work_that_was_begun_on_it() -> None:
    sim = doorstep.Simulator(8, device="cuda")
    for _ in range(5):
        sim.step()
    assert driver.report().pending > 0
    sim.close()
    del sim


@on_stand_in()
def test_lists_of_worlds_are_taken_when_they_are_given() -> None:
    with Twins(8) as twins:
        for sim in twins.both():
            sim.reset([1])
            sim.reset([3, 4])
            sim.reset(np.arange(8) == 6)
        assert (twins.gpu.state.episode_index.copy_to_host() == [1, 2, 1, 2, 2, 1, 2, 1]).all()
        twins.assert_same()


@on_stand_in()
def test_tensors_keep_memory_of_a_closed_simulator_until_the_last_goes() -> None:
    sim = doorstep.Simulator(8, device="cuda")
    sim.step()
    rewards, capsule = sim.rewards, sim.lidar.__dlpack__(stream=-1)
    sim.close()
    del sim
    assert driver.report().live["device_memory"] > 0
    assert rewards.copy_to_host().shape == (8, 2, 1)
    del rewards
    assert driver.report().live["device_memory"] > 0
    del capsule
    assert "device_memory" not in driver.report().live


@on_stand_in(eager=1)
def test_a_device_that_is_always_done_gives_the_same() -> None:
    with Twins(8) as twins:
        event = twins.gpu.step_async()
        twins.cpu.step()
        assert event.done
        twins.step_randomly(5)
        twins.assert_same()
