"""Worlds in the caller's memory on a GPU: the bytes are the CPU's; launches may be recorded; XLA's custom calls too."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.device_batch import DeviceBatch
from tests.cuda.on_stand_in import on_stand_in
from tests.interop import xla_frames
from tests.scenes import random_actions

import doorstep
from doorstep import cuda, levels
from doorstep._native import check, load
from doorstep.errors import Status

FINAL = ("final_lidar", "final_observations", "episode_returns", "episode_lengths")


def assert_same(batch: DeviceBatch, sim: doorstep.Simulator) -> None:
    """The same tensors bit for bit, but for those that nobody has written yet, and the same worlds."""
    batch.stream.synchronize()
    for name, tensor in sim.tensors.items():
        if not name.startswith(("final_", "episode_")):
            assert batch.read(name).tobytes() == tensor.to_numpy().tobytes(), name


def with_gap(results: list[xla_frames.Tensor], gap: int) -> list[xla_frames.Tensor]:
    """Results whose scratch memory, the second, begins some bytes later: XLA aligns it to 128 bytes."""
    worlds, scratch, *outputs = results
    later = xla_frames.Tensor(scratch.address + gap, (scratch.shape[0] - gap,), scratch.dtype)
    return [worlds, later, *outputs]


@pytest.mark.parametrize(("num_worlds", "num_agents"), [(1, 2), (37, 2), (20, 5)])
@on_stand_in()
def test_a_batch_is_a_simulator(num_worlds: int, num_agents: int) -> None:
    options: dict[str, Any] = {"num_agents": num_agents, "episode_length": 4}
    stream = cuda.Stream()
    batch = DeviceBatch(num_worlds, stream, **options)
    check(batch.call("ds_batch_prepare"))
    check(batch.call("ds_batch_create", 9, 3))
    with doorstep.Simulator(num_worlds, seed=9, world_offset=3, **options) as sim:
        assert_same(batch, sim)
        for step, actions in enumerate(random_actions(1, 9, num_worlds, num_agents)):
            sim.actions.to_numpy()[:] = actions
            sim.resets.to_numpy()[0] = step == 2
            batch.write("actions", actions)
            batch.write("resets", sim.resets.to_numpy())
            sim.step()
            check(batch.call("ds_batch_step"))
            assert_same(batch, sim)
        for name in FINAL:
            assert batch.read(name).tobytes() == sim.tensors[name].to_numpy().tobytes(), name
    check(batch.call("ds_batch_release"))
    batch.close()


@pytest.mark.parametrize("num_worlds", [1, 37])
@on_stand_in()
def test_a_batch_with_levels_is_a_simulator(num_worlds: int) -> None:
    """Its first levels but the first one are the table's in both."""
    table = list(levels.curated().values())[:3]
    options: dict[str, Any] = {"episode_length": 4}
    stream = cuda.Stream()
    batch, plain = DeviceBatch(num_worlds, stream, levels=table, **options), DeviceBatch(num_worlds, stream)
    check(batch.call("ds_batch_prepare"))
    assert plain.call("ds_batch_create", 9, 3) == Status.INVALID_ARGUMENT  # worlds of another kind
    check(batch.call("ds_batch_create", 9, 3))
    with doorstep.Simulator(
        num_worlds, seed=9, world_offset=3, max_levels=3, **options
    ) as sim:
        sim.set_levels(table)
        for step, actions in enumerate(random_actions(1, 14, num_worlds)):
            if step == 7:
                sim.level_weights.to_numpy()[:] = (0, 1, 3)
                batch.write("level_weights", sim.level_weights.to_numpy())
            sim.actions.to_numpy()[:] = actions
            sim.resets.to_numpy()[:] = step % 6 == 0
            batch.write("actions", actions)
            batch.write("resets", sim.resets.to_numpy())
            sim.step()
            check(batch.call("ds_batch_step"))
            if step > 0:
                assert_same(batch, sim)
    check(batch.call("ds_batch_release"))
    batch.close()
    plain.close()


@on_stand_in()
def test_any_amount_of_scratch_memory_that_is_taken_gives_the_same_bytes() -> None:
    stream = cuda.Stream()
    batches = [DeviceBatch(50, stream), DeviceBatch(50, stream)]
    assert batches[0].info.scratch_bytes > batches[0].info.smallest_scratch_bytes
    batches[1].batch.scratch_bytes = batches[1].info.smallest_scratch_bytes
    check(batches[0].call("ds_batch_prepare"))
    for batch in batches:
        check(batch.call("ds_batch_create", 1, 0))
        for _ in range(3):
            check(batch.call("ds_batch_step"))
    stream.synchronize()
    assert (batches[0].worlds.copy_to_host(np.uint8) == batches[1].worlds.copy_to_host(np.uint8)).all()
    batches[1].batch.scratch_bytes -= 1
    assert batches[1].call("ds_batch_step") == Status.INVALID_ARGUMENT
    check(batches[0].call("ds_batch_release"))
    for batch in batches:
        batch.close()


@on_stand_in()
def test_seed_and_offset_may_lie_on_the_device() -> None:
    stream = cuda.Stream()
    batch, other = DeviceBatch(5, stream), DeviceBatch(5, stream)
    words = cuda.Buffer(8, stream=stream)
    words.copy_from_host(np.array([2**32 - 1, 7], np.uint32))
    check(batch.call("ds_batch_prepare"))
    check(batch.call("ds_batch_create_from", ctypes.c_void_p(words.pointer)))
    check(other.call("ds_batch_create", 2**32 - 1, 7))
    stream.synchronize()
    assert (batch.worlds.copy_to_host(np.uint8) == other.worlds.copy_to_host(np.uint8)).all()
    check(batch.call("ds_batch_release"))
    for thing in (batch, other, words):
        thing.close()


@on_stand_in()
def test_steps_may_be_recorded_and_call_nothing_but_launches_and_copies() -> None:
    with driver.users_stream() as raw:
        stream = cuda.Stream.from_handle(raw)
        batch, other = DeviceBatch(20, stream, episode_length=3), DeviceBatch(20, stream, episode_length=3)
        actions = cuda.Buffer(20 * 2 * 4 * 4, stream=stream)
        actions.copy_from_host(random_actions(1, 1, 20)[0])
        check(batch.call("ds_batch_prepare"))
        check(batch.call("ds_batch_create", 0, 0))
        check(other.call("ds_batch_create", 0, 0))
        driver.clear()
        with driver.RecordedGraph(raw) as graph:
            check(batch.call("ds_batch_step_from", ctypes.c_void_p(actions.pointer), None))
        begun = {"cuMemcpyAsync", "cuMemsetD8Async", "cuLaunchKernel"}
        others = ("cuCtx", "cuThread", "cuStream", "cuGraph")
        ours = [name for name in driver.report().calls if not name.startswith(others)]
        assert ours == sorted(ours, key=["cuMemcpyAsync", "cuMemsetD8Async", "cuLaunchKernel"].index)
        assert set(ours) == begun
        for _ in range(5):
            graph.launch()
            check(other.call("ds_batch_step_from", ctypes.c_void_p(actions.pointer), None))
        stream.synchronize()
        assert (batch.worlds.copy_to_host(np.uint8) == other.worlds.copy_to_host(np.uint8)).all()
        graph.close()
        check(batch.call("ds_batch_release"))
        for thing in (batch, other, actions, stream):
            thing.close()


@on_stand_in()
def test_what_was_not_prepared_is_refused_and_kernels_stay_until_the_last_release() -> None:
    stream = cuda.Stream()
    batch = DeviceBatch(3, stream)
    assert batch.call("ds_batch_create", 0, 0) == Status.INVALID_ARGUMENT
    assert batch.call("ds_batch_release") == Status.INVALID_ARGUMENT
    check(batch.call("ds_batch_prepare"))
    check(batch.call("ds_batch_prepare"))
    check(batch.call("ds_batch_release"))
    check(batch.call("ds_batch_create", 0, 0))
    check(batch.call("ds_batch_release"))
    assert batch.call("ds_batch_step") == Status.INVALID_ARGUMENT
    batch.close()


@pytest.mark.parametrize("gap", [0, 128])
@on_stand_in()
def test_custom_calls_of_xla_step_worlds(gap: int) -> None:
    stream = cuda.Stream()
    batch = DeviceBatch(20, stream, episode_length=4)
    created, stepped = ["rewards", "lidar"], ["rewards", "lidar", "final_lidar"]
    scratch = batch.take(batch.info.scratch_bytes + 20 * 8192)
    assert scratch.pointer % 256 == 0
    words = cuda.Buffer(8, stream=stream)
    words.copy_from_host(np.array([6, 1], np.uint32))
    call: dict[str, Any] = {"stream": stream.handle, "device": 0}
    xla_frames.call("initialize_cuda", [], [], batch.rules(created), **call)
    xla_frames.call(
        "create_cuda",
        [xla_frames.Tensor(words.pointer, (2,), "uint32")],
        with_gap(batch.xla_results(created, scratch), gap),
        batch.rules(created),
        **call,
    )
    with doorstep.Simulator(20, seed=6, world_offset=1, episode_length=4) as sim:
        for step, actions in enumerate(random_actions(2, 9, 20)):
            sim.actions.to_numpy()[:] = actions
            sim.resets.to_numpy()[3] = step == 5
            batch.write("actions", actions)
            batch.write("resets", sim.resets.to_numpy())
            sim.step()
            worlds, _, *outputs = batch.xla_results(stepped, scratch)
            arguments = [worlds, batch.xla_tensor("actions"), batch.xla_tensor("resets"), outputs[-1]]
            results = with_gap(batch.xla_results(stepped, scratch), gap)
            xla_frames.call("step_cuda", arguments, results, batch.rules(stepped, resets=True), **call)
            stream.synchronize()
            assert (batch.read("actions") == actions).all()
            for name in ("rewards", "lidar"):
                assert batch.read(name).tobytes() == sim.tensors[name].to_numpy().tobytes(), name
        assert batch.read("final_lidar").tobytes() == sim.final_lidar.to_numpy().tobytes()
    check(load().ds_batch_release(ctypes.byref(batch.batch)))
    for thing in (batch, scratch, words):
        thing.close()


@on_stand_in()
def test_custom_calls_of_xla_step_worlds_with_levels() -> None:
    table = list(levels.curated().values())[:3]
    stream = cuda.Stream()
    batch, expected = (DeviceBatch(20, stream, episode_length=4, levels=table) for _ in range(2))
    outputs = ["rewards", "lidar", "level_indices"]
    scratch = batch.take(batch.info.scratch_bytes + 20 * 8192)
    words = cuda.Buffer(8, stream=stream)
    words.copy_from_host(np.array([6, 1], np.uint32))
    call: dict[str, Any] = {"stream": stream.handle, "device": 0}
    rules, results = batch.rules(outputs), batch.xla_results(outputs, scratch)
    xla_frames.call("initialize_cuda", [], [], rules, **call)
    seed = xla_frames.Tensor(words.pointer, (2,), "uint32")
    xla_frames.call("create_cuda", [seed, *batch.xla_levels()], results, rules, **call)
    check(expected.call("ds_batch_create", 6, 1))
    for actions in random_actions(2, 9, 20):
        for each in (batch, expected):
            each.write("actions", actions)
        arguments = [results[0], batch.xla_tensor("actions"), *batch.xla_levels(), results[-1]]
        xla_frames.call("step_cuda", arguments, results, rules, **call)
        expected.write("resets", np.zeros((20, 1), np.int32))
        check(expected.call("ds_batch_step"))
        stream.synchronize()
        for name in outputs:
            assert batch.read(name).tobytes() == expected.read(name).tobytes(), name
    assert len(set(batch.read("level_indices").ravel().tolist())) == 3
    check(load().ds_batch_release(ctypes.byref(batch.batch)))
    for thing in (batch, expected, scratch, words):
        thing.close()


@on_stand_in(devices=2)
def test_custom_calls_of_xla_tell_failures_of_the_driver() -> None:
    stream = cuda.Stream()
    batch = DeviceBatch(2, stream)
    scratch = batch.take(batch.info.scratch_bytes + 16384)
    words = batch.take(8)
    arguments = [xla_frames.Tensor(words.pointer, (2,), "uint32")]
    call: dict[str, Any] = {"stream": stream.handle, "device": 0}
    with pytest.raises(xla_frames.HandlerError, match="have not been prepared"):
        xla_frames.call("create_cuda", arguments, batch.xla_results([], scratch), batch.rules([]), **call)
    with pytest.raises(xla_frames.HandlerError, match="device"):
        xla_frames.call("initialize_cuda", [], [], batch.rules([]), stream=0, device=5)
    with pytest.raises(xla_frames.HandlerError, match="device kind differs"):
        xla_frames.call("initialize_cuda", [], [], [0, *batch.rules([])[1:]], **call)
    for thing in (batch, scratch, words):
        thing.close()
