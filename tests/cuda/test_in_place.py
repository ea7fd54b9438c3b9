"""Setting and binding tensors of a GPU: in order with the streams of users, in their memory, for as long as needed."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in
from tests.cuda.stand_in_driver import WAITING
from tests.cuda.users_memory import UsersArray
from tests.scenes import random_actions

import doorstep
from doorstep import cuda

Array = npt.NDArray[Any]
WORLDS = 7


def like(tensor: doorstep.Tensor, stream: int) -> UsersArray:
    return UsersArray(tensor.shape, tensor.dtype, stream)


# ---- Setting ----


@pytest.mark.parametrize("shape", [(WORLDS, 2, 4), (WORLDS * 2, 4)])
@on_stand_in()
def test_setting_from_the_device_is_ordered_with_both_streams_and_waits_for_nothing(shape: tuple[int, ...]) -> None:
    with (
        driver.users_stream() as stream,
        driver.users_stream() as simulators,
        doorstep.Simulator(WORLDS) as cpu,
        doorstep.Simulator(WORLDS, device="cuda", stream=simulators) as sim,
    ):
        chosen = UsersArray(shape, np.int32, stream)
        drawn = [actions.reshape(chosen.shape).copy() for actions in random_actions(1, 8, WORLDS)]
        sim.wait()
        driver.clear()
        for actions in drawn:
            chosen.fill(actions)
            sim.actions = chosen
            sim.step()
        assert not WAITING.intersection(driver.report().calls)
        for actions in drawn:
            cpu.actions = actions
            cpu.step()
        assert sim.stream == simulators
        assert sim.hash() == cpu.hash()
        driver.synchronize(stream)


@on_stand_in()
def test_setting_from_another_simulator_is_ordered_with_both_streams_and_waits_for_nothing() -> None:
    with (
        driver.users_stream() as stream,
        driver.users_stream() as simulators,
        doorstep.Simulator(WORLDS) as cpu,
        doorstep.Simulator(WORLDS, device="cuda", stream=stream) as source,
        doorstep.Simulator(WORLDS, device="cuda", stream=simulators) as sim,
    ):
        chosen = random_actions(3, 1, WORLDS)[0]
        source.actions = chosen
        driver.clear()
        sim.actions = source.actions
        sim.step()
        source.step()
        assert not {*WAITING, "cuEventQuery"}.intersection(driver.report().calls)
        cpu.actions = chosen
        cpu.step()
        assert sim.hash() == cpu.hash()


@on_stand_in()
def test_setting_from_the_host_is_done_when_it_returns() -> None:
    with doorstep.Simulator(WORLDS) as cpu, doorstep.Simulator(WORLDS, device="cuda") as sim:
        actions = np.empty((WORLDS, 2, 4), np.int32)
        for drawn in random_actions(2, 4, WORLDS):
            actions[:] = drawn
            for one in (cpu, sim):
                one.actions = actions
                one.resets = np.array([0, 1] * 3 + [0], np.int32)
            actions[:] = 99
            for one in (cpu, sim):
                one.step()
        assert sim.hash() == cpu.hash()


@on_stand_in()
def test_setting_follows_the_current_stream_of_pytorch() -> None:
    with driver.users_stream() as stream, doorstep.Simulator(WORLDS, device="cuda") as sim:
        current = SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 0)
        internals = SimpleNamespace(_cuda_getCurrentRawStream=lambda _: stream)
        sys.modules["torch"] = SimpleNamespace(cuda=current, _C=internals)  # type: ignore[assignment]
        chosen = like(sim.actions, stream)
        actions = random_actions(2, 1, WORLDS)[0].copy()
        chosen.fill(actions)
        sim.actions = chosen
        np.testing.assert_array_equal(sim.actions.copy_to_host(), actions)
        assert sim.stream == stream
        sim.close()


@on_stand_in()
def test_setting_may_be_recorded() -> None:
    with (
        driver.users_stream() as stream,
        doorstep.Simulator(WORLDS) as cpu,
        doorstep.Simulator(WORLDS, device="cuda", stream=stream) as sim,
    ):
        chosen = like(sim.actions, stream)
        with driver.RecordedGraph(stream) as graph:
            sim.actions = chosen
            sim.step()
        for drawn in random_actions(3, 5, WORLDS):
            actions = drawn.copy()
            chosen.fill(actions)
            graph.launch()
            driver.synchronize(stream)
            cpu.actions = actions
            cpu.step()
        assert sim.hash() == cpu.hash()
        graph.close()


@on_stand_in(devices=2)
def test_what_does_not_fit_is_not_set() -> None:
    with driver.users_stream() as stream, doorstep.Simulator(WORLDS, device="cuda:0") as sim:
        values: list[tuple[Any, str]] = [
            (UsersArray((WORLDS, 2, 4), np.int64, stream), "int32"),
            (UsersArray((WORLDS, 2), np.int32, stream), f"int32 [{WORLDS}, 2, 4]"),
            (UsersArray((WORLDS, 2, 4), np.int32, stream, device=1), "cuda:0"),
            (np.ones((WORLDS, 2, 4)), "int32"),
        ]
        before = sim.actions.copy_to_host()
        for value, message in values:
            with pytest.raises(doorstep.ArgumentError) as caught:
                sim.actions = value
            assert caught.value.argument == "actions"
            assert message in str(caught.value)
        np.testing.assert_array_equal(sim.actions.copy_to_host(), before)
        with doorstep.Simulator(WORLDS) as cpu, pytest.raises(doorstep.ArgumentError, match="must be on cpu"):
            cpu.actions = UsersArray((WORLDS, 2, 4), np.int32, stream)


# ---- Binding ----


@on_stand_in()
def test_bound_tensors_have_the_bits_of_the_cpu() -> None:
    options: dict[str, Any] = {"episode_length": 6}
    with (
        driver.users_stream() as stream,
        doorstep.Simulator(WORLDS, **options) as cpu,
        doorstep.Simulator(WORLDS, device="cuda", stream=stream, **options) as sim,
    ):
        own = {name: tensor.__cuda_array_interface__["data"][0] for name, tensor in sim.tensors.items()}
        places = {name: like(tensor, stream) for name, tensor in sim.tensors.items()}
        sim.bind(**places)
        for drawn in random_actions(1, 15, WORLDS):
            actions = drawn.copy()
            places["actions"].fill(actions)
            sim.step()
            cpu.actions = actions
            cpu.step()
            for name, place in places.items():
                assert sim.tensors[name].__cuda_array_interface__["data"][0] == place.pointer
                assert place.read().tobytes() == cpu.tensors[name].copy_to_host().tobytes(), name
                assert sim.tensors[name].copy_to_host().tobytes() == place.read().tobytes()
        assert sim.hash() == cpu.hash()
        assert sim.save() == cpu.save()
        saved = cpu.save()
        sim.reset()
        sim.restore(saved)
        assert sim.save() == saved
        sim.bind(**dict.fromkeys(places))
        for name, tensor in sim.tensors.items():
            assert tensor.__cuda_array_interface__["data"][0] == own[name]
        sim.step()
        cpu.step()
        assert sim.lidar.copy_to_host().tobytes() == cpu.lidar.copy_to_host().tobytes()


@on_stand_in()
def test_binding_comes_after_what_the_user_began_on_the_memory() -> None:
    with (
        driver.users_stream() as stream,
        driver.users_stream() as simulators,
        doorstep.Simulator(WORLDS, device="cuda", stream=simulators) as sim,
    ):
        sim.actions = random_actions(5, 1, WORLDS)[0].copy()
        place = like(sim.actions, stream)
        overwritten = np.full(place.shape, 77, np.int32)
        place.fill(overwritten)
        expected = sim.actions.copy_to_host()
        sim.bind(actions=place)
        np.testing.assert_array_equal(place.read(), expected)


@on_stand_in()
def test_actions_out_of_range_are_found_in_bound_memory() -> None:
    with (
        driver.users_stream() as stream,
        doorstep.Simulator(WORLDS, device="cuda", stream=stream, action_check="raise", strict=True) as sim,
    ):
        place = like(sim.actions, stream)
        sim.bind(actions=place)
        sim.step()
        actions = random_actions(5, 1, WORLDS)[0].copy()
        actions[6, 1, 3] = 2
        place.fill(actions)
        with pytest.raises(doorstep.ArgumentError, match=r"actions\[6, 1, 3\] is 2"):
            sim.step()
        assert sim.health.clamped_actions == 0


@pytest.mark.parametrize("end", ["unbind", "close", "drop", "rebind"])
@on_stand_in()
def test_memory_is_given_back_after_the_work_that_uses_it(end: str) -> None:
    with driver.users_stream() as stream:
        sim = doorstep.Simulator(WORLDS, device="cuda", stream=cuda.Stream())
        sim.bind(lidar=like(sim.lidar, stream), actions=like(sim.actions, stream))
        for _ in range(3):
            sim.step()
        gc.collect()
        if end == "unbind":
            sim.bind(lidar=None, actions=None)
        elif end == "rebind":
            sim.bind(lidar=like(sim.lidar, stream), actions=like(sim.actions, stream))
        elif end == "close":
            sim.close()
        del sim
        gc.collect()


@on_stand_in()
def test_a_view_keeps_bound_memory_beyond_the_simulator() -> None:
    with driver.users_stream() as stream:
        sim = doorstep.Simulator(WORLDS, device="cuda", stream=stream)
        sim.bind(lidar=like(sim.lidar, stream))
        sim.step()
        lidar = sim.lidar
        capsule = sim.lidar.__dlpack__(stream=-1, max_version=(1, 0))
        expected = lidar.copy_to_host()
        sim.close()
        del sim
        gc.collect()
        np.testing.assert_array_equal(lidar.copy_to_host(), expected)
        del lidar
        gc.collect()
        assert "cuMemFree_v2" not in driver.report().calls
        del capsule
        gc.collect()


@on_stand_in()
def test_a_recording_holds_no_binding_and_a_graph_keeps_the_memory_it_was_recorded_with() -> None:
    with (
        driver.users_stream() as stream,
        doorstep.Simulator(WORLDS, device="cuda", stream=stream) as sim,
    ):
        first, second = like(sim.steps_remaining, stream), like(sim.steps_remaining, stream)
        sim.bind(steps_remaining=first)
        with driver.RecordedGraph(stream) as graph:
            sim.step()
            with pytest.raises(doorstep.ArgumentError, match="captured") as caught:
                sim.bind(steps_remaining=second)
            assert caught.value.argument == "stream"
        sim.bind(steps_remaining=second)
        graph.launch()
        assert (first.read() == 199).all()
        assert (second.read() == 200).all()
        sim.step()
        assert (second.read() == 198).all()
        graph.close()


@on_stand_in()
def test_memory_dropped_during_a_recording_is_kept_for_the_graph_and_nothing_else_is() -> None:
    with driver.users_stream() as stream, doorstep.Simulator(WORLDS, device="cuda", stream=stream) as sim:
        sim.bind(lidar=like(sim.lidar, stream))
        lidar = sim.lidar
        sim.bind(lidar=like(sim.lidar, stream))
        with driver.RecordedGraph(stream) as graph:
            sim.step()
            del lidar
            gc.collect()
        graph.launch()
        driver.synchronize(stream)
        graph.close()
    driver.objects_stay()
    del sim
    gc.collect()
    assert driver.report().live == {"device_memory": 1}


@on_stand_in(devices=2)
def test_what_does_not_fit_is_not_bound() -> None:
    with driver.users_stream() as stream, doorstep.Simulator(WORLDS, device="cuda:0") as sim:
        good = like(sim.resets, stream)
        untouched = np.full(good.shape, 7, np.int32)
        good.fill(untouched)
        before = sim.resets.__cuda_array_interface__["data"]
        shape = (WORLDS, 2, 4)
        elsewhere = UsersArray(shape, np.int32, stream, device=1)
        unmarked = SimpleNamespace(__cuda_array_interface__=elsewhere.__cuda_array_interface__)
        values: list[tuple[Any, str]] = [
            (elsewhere, "must be on cuda:0"),
            (unmarked, "memory of device 1"),
            (np.ones(shape, np.int32), "must be on cuda:0"),
            (UsersArray(shape, np.float32, stream), "int32"),
            (sim.actions, "overlaps"),
        ]
        for value, message in values:
            with pytest.raises(doorstep.ArgumentError, match=message):
                sim.bind(resets=good, actions=value)
        assert sim.resets.__cuda_array_interface__["data"] == before
        assert (good.read() == 7).all()


@pytest.mark.parametrize("function", ["cuMemcpyAsync", "cuStreamSynchronize", "cuPointerGetAttribute"])
@on_stand_in()
def test_a_binding_that_the_driver_fails_changes_nothing(function: str) -> None:
    with driver.users_stream() as stream, doorstep.Simulator(WORLDS, device="cuda", stream=stream) as sim:
        place = like(sim.actions, stream)
        before = sim.actions.__cuda_array_interface__["data"]
        driver.fail(function, 1, driver.UNKNOWN)
        with pytest.raises(doorstep.DeviceError):
            sim.bind(actions=place)
        driver.clear()
        assert sim.actions.__cuda_array_interface__["data"] == before
        sim.step()
        sim.bind(actions=place)
        sim.step()
