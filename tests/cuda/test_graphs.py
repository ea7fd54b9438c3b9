"""Steps recorded in a user's CUDA graph."""

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in
from tests.scenes import random_actions

import doorstep
from doorstep import cuda


@pytest.mark.parametrize("mode", [0, 1, 2])
@on_stand_in()
def test_replays_are_steps(mode: int) -> None:
    with (
        driver.users_stream() as stream,
        doorstep.Simulator(20, episode_length=4) as cpu,
        doorstep.Simulator(20, device="cuda", episode_length=4, stream=stream) as sim,
    ):
        drawn = cuda.Buffer(sim.actions.nbytes, stream=cuda.Stream.from_handle(stream))
        target = sim.actions.__cuda_array_interface__["data"][0]
        with driver.RecordedGraph(stream, mode) as graph:
            driver.copy(stream, target, drawn.pointer, drawn.nbytes)
            sim.step()
        assert (driver.peek(sim.steps_remaining) == 4).all()
        for actions in random_actions(1, 6, 20):
            drawn.copy_from_host(actions)
            graph.launch()
            cpu.actions.to_numpy()[:] = actions
            cpu.step()
        assert sim.lidar.copy_to_host().tobytes() == cpu.lidar.to_numpy().tobytes()
        assert sim.hash() == cpu.hash()
        sim.step()  # plain steps go on where replays ended
        cpu.step()
        assert sim.hash() == cpu.hash()
        graph.close()
        drawn.close()


@on_stand_in()
def test_several_steps_may_be_recorded_in_one_graph() -> None:
    with (
        driver.users_stream() as stream,
        doorstep.Simulator(7) as cpu,
        doorstep.Simulator(7, device="cuda", stream=stream) as sim,
    ):
        with driver.RecordedGraph(stream) as graph:
            for _ in range(3):
                sim.step()
        for _ in range(2):
            graph.launch()
        for _ in range(6):
            cpu.step()
        assert sim.hash() == cpu.hash()
        graph.close()


@on_stand_in(missing="cuFuncLoad")
def test_first_step_may_be_recorded_where_kernels_cannot_be_loaded_by_name() -> None:
    with driver.users_stream() as stream, doorstep.Simulator(4, device="cuda", stream=stream) as sim:
        assert "cuFuncLoad" not in driver.report().calls
        with driver.RecordedGraph(stream, 0) as graph:
            sim.step()
        graph.launch()
        assert (sim.steps_remaining.copy_to_host() == 199).all()
        graph.close()


@on_stand_in()
def test_recording_neither_waits_nor_allocates() -> None:
    with driver.users_stream() as stream, doorstep.Simulator(4, device="cuda", stream=stream) as sim:
        driver.clear()
        with driver.RecordedGraph(stream) as graph:
            sim.step()
        calls = set(driver.report().calls)
        assert not calls & {"cuStreamSynchronize", "cuEventSynchronize", "cuMemAllocFromPoolAsync", "cuMemHostAlloc"}
        graph.close()


Call = Callable[[doorstep.Simulator], Any]

REFUSED: dict[str, Call] = {
    "save": lambda sim: sim.save(),
    "hash": lambda sim: sim.hash(),
    "world_hashes": lambda sim: sim.world_hashes(),
    "wait": lambda sim: sim.wait(),
    "health": lambda sim: sim.health,
    "reset of slots": lambda sim: sim.reset([1]),
    "copy_to_host": lambda sim: sim.rewards.copy_to_host(),
    "copy_from_host": lambda sim: sim.actions.copy_from_host(np.zeros(sim.actions.shape, np.int32)),
}


@pytest.mark.parametrize("name", [*REFUSED, "restore"])
@on_stand_in()
def test_what_cannot_be_recorded_is_refused_and_the_recording_goes_on(name: str) -> None:
    with (
        driver.users_stream() as stream,
        doorstep.Simulator(4) as cpu,
        doorstep.Simulator(4, device="cuda", stream=stream) as sim,
    ):
        saved = sim.save()
        calls: dict[str, Call] = {**REFUSED, "restore": lambda sim: sim.restore(saved)}
        with driver.RecordedGraph(stream) as graph:
            with pytest.raises(doorstep.DoorstepError, match="captured"):
                calls[name](sim)
            sim.step()
        graph.launch()
        cpu.step()
        assert sim.hash() == cpu.hash()
        graph.close()


@on_stand_in()
def test_checked_actions_cannot_be_recorded() -> None:
    with (
        driver.users_stream() as stream,
        doorstep.Simulator(4, device="cuda", stream=stream, action_check="raise") as sim,
    ):
        before = sim.hash()
        with driver.RecordedGraph(stream) as graph, pytest.raises(doorstep.DoorstepError, match="captured"):
            sim.step()
        graph.launch()
        assert sim.hash() == before
        graph.close()


@on_stand_in()
def test_strict_simulator_notices_trouble_of_replays() -> None:
    with driver.users_stream() as stream, doorstep.Simulator(4, device="cuda", stream=stream, strict=True) as sim:
        positions = sim.state.body_positions
        with driver.RecordedGraph(stream) as graph:
            sim.step()
        edited = positions.copy_to_host()
        edited[2, 0, 1] = np.inf
        positions.copy_from_host(edited)
        graph.launch()
        driver.synchronize(stream)
        with pytest.raises(doorstep.SimulationError, match="2"):
            sim.step()
        graph.close()
        del positions  # it would keep the memory, which is freed on the stream


# What uses no recorded work; the simulator is the only one of its kind.
BESIDE: dict[str, Call] = {
    "step_async": lambda sim: sim.step_async().wait(),
    "hash": lambda sim: sim.hash(),
    "wait": lambda sim: sim.wait(),
    "reset of slots": lambda sim: sim.reset([1]),
    "copies": lambda sim: sim.actions.copy_from_host(sim.actions.copy_to_host()),
    "close": lambda sim: sim.close(),
    "a simulator of another kind": lambda sim: doorstep.Simulator(2, num_agents=1, device="cuda").close(),
    "a wait for a stream": lambda sim: cuda.Stream().synchronize(),
    "a question about a stream": lambda sim: cuda.Stream().done,
    "a wait for an event": lambda sim: (cuda.Event().wait(), cuda.Event().wait(0.01)),
    "memory": lambda sim: cuda.Buffer(100).copy_to_host(),
    "pinned memory": lambda sim: cuda.Buffer.pinned(100).close(),
}


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("name", BESIDE)
@on_stand_in()
def test_what_is_done_beside_a_recording_leaves_it_alone(name: str, in_thread: bool) -> None:
    with (
        driver.users_stream() as stream,
        doorstep.Simulator(4, device="cuda", stream=stream) as recorded,
        doorstep.Simulator(4, device="cuda", num_agents=3) as sim,
    ):
        sim.step()
        with driver.RecordedGraph(stream, driver.GLOBAL) as graph:
            recorded.step()
            if in_thread:
                with ThreadPoolExecutor() as executor:
                    executor.submit(BESIDE[name], sim).result()
            else:
                BESIDE[name](sim)
        graph.launch()
        assert (recorded.steps_remaining.copy_to_host() == 199).all()
        graph.close()


@on_stand_in()
def test_a_simulator_cannot_be_made_on_a_stream_that_is_recorded() -> None:
    with driver.users_stream() as stream, doorstep.Simulator(4, device="cuda", stream=stream) as sim:
        with driver.RecordedGraph(stream, driver.GLOBAL) as graph:
            driver.clear()
            with pytest.raises(doorstep.ArgumentError, match="captured") as caught:
                doorstep.Simulator(4, num_agents=3, device="cuda", stream=stream)
            assert caught.value.argument == "stream"
            assert "cuModuleLoadDataEx" not in driver.report().calls
            sim.step()
        graph.launch()
        assert (sim.steps_remaining.copy_to_host() == 199).all()
        graph.close()


@on_stand_in()
def test_the_default_stream_is_refused_beside_a_recording_that_it_waits_for() -> None:
    with (
        driver.users_context(),
        doorstep.Simulator(4) as cpu,
        doorstep.Simulator(4, device="cuda", stream=1) as sim,
        doorstep.Simulator(4, device="cuda") as free,
    ):
        blocking = driver.call_for_value("cuStreamCreate", 0)
        with driver.RecordedGraph(blocking) as graph:
            for call in (sim.step, sim.hash, lambda: free.rewards.__dlpack__(stream=1)):
                with pytest.raises(doorstep.DeviceError) as caught:
                    call()
                assert caught.value.driver_code == 906
                assert "default stream" in caught.value.hint
            free.step()
            cpu.step()
            assert free.hash() == cpu.hash()
        sim.step()
        assert sim.hash() == cpu.hash()
        graph.close()
        driver.call("cuStreamDestroy_v2", ctypes.c_uint64(blocking))


@on_stand_in()
def test_closing_waits_for_replays_on_other_streams() -> None:
    with driver.users_stream() as stream, driver.users_stream() as other:
        sim = doorstep.Simulator(4, device="cuda", stream=stream)
        with driver.RecordedGraph(stream) as graph:
            sim.step()
        graph.stream = other
        graph.launch()
        remaining = sim.steps_remaining
        assert (driver.peek(remaining) == 200).all()
        sim.close()
        assert (driver.peek(remaining) == 199).all()
        del sim, remaining
        graph.close()


@on_stand_in()
def test_closing_within_a_recording_does_not_spoil_it() -> None:
    driver.objects_stay()  # memory that the graph may use
    with driver.users_stream() as stream:
        driver.call_for_value("cuDevicePrimaryCtxRetain", 0)  # the program goes on
        sim = doorstep.Simulator(4, device="cuda", stream=stream)
        rewards = sim.rewards
        driver.clear()
        with driver.RecordedGraph(stream) as graph:
            sim.step()
            sim.close()
            del sim, rewards
        assert not {"cuCtxSynchronize", "cuStreamSynchronize"}.intersection(driver.report().calls)
        graph.close()
