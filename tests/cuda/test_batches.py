"""Worlds in the caller's memory on a GPU: the bytes are the CPU's; launches may be recorded; XLA's custom calls too."""

import contextlib
import ctypes

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.device_batch import DeviceBatch
from tests.cuda.on_stand_in import on_stand_in
from tests.cuda.users_memory import filled
from tests.interop import xla_frames
from tests.scenes import random_actions

import doorstep
from doorstep import cuda, levels
from doorstep._native import check
from doorstep.errors import Status

FINAL = ("final_lidar", "final_observations", "episode_returns", "episode_lengths")
TABLE = list(levels.curated().values())[:3]


def assert_same(batch, sim):
    """The same tensors bit for bit, but for those that nobody has written yet."""
    batch.stream.synchronize()
    for name, tensor in sim.tensors.items():
        if not name.startswith(("final_", "episode_")):
            assert batch.read(name).tobytes() == tensor.to_numpy().tobytes(), name


def bytes_of(batch):
    batch.stream.synchronize()
    return batch.worlds.copy_to_host(np.uint8).tobytes()


@contextlib.contextmanager
def prepared(batch):
    check(batch.call("ds_batch_prepare"))
    yield
    check(batch.call("ds_batch_release"))


def test_a_batch_is_a_simulator():
    for num_worlds, num_agents, table in ((1, 2, []), (37, 2, []), (20, 5, []), (1, 2, TABLE), (37, 2, TABLE)):
        options = {"num_agents": num_agents, "episode_length": 4}
        batch = DeviceBatch(num_worlds, cuda.Stream(), levels=table, **options)
        options |= {"seed": 9, "world_offset": 3, "max_levels": len(table)}
        with prepared(batch), doorstep.Simulator(num_worlds, **options) as sim:
            check(batch.call("ds_batch_create", 9, 3))
            if table:
                sim.set_levels(table)  # the first levels but the first one are the table's in both
            else:
                assert_same(batch, sim)
            for step, actions in enumerate(random_actions(1, 14, num_worlds, num_agents)):
                if step == 7 and table:
                    sim.level_weights.to_numpy()[:] = (0, 1, 3)
                    batch.write("level_weights", sim.level_weights.to_numpy())
                sim.actions = actions
                sim.resets.to_numpy()[:: 1 if table else 2] = step % 6 == (0 if table else 2)
                batch.write("actions", actions)
                batch.write("resets", sim.resets.to_numpy())
                sim.step()
                check(batch.call("ds_batch_step"))
                if step > 0 or not table:
                    assert_same(batch, sim)
            for name in FINAL:
                assert batch.read(name).tobytes() == sim.tensors[name].to_numpy().tobytes(), name


def test_any_amount_of_scratch_memory_that_is_taken_gives_the_same_bytes():
    batch, other = (DeviceBatch(50, cuda.Stream()) for _ in range(2))
    assert batch.info.scratch_bytes > batch.info.smallest_scratch_bytes
    other.batch.scratch_bytes = other.info.smallest_scratch_bytes
    with prepared(batch):
        for each in (batch, other):
            check(each.call("ds_batch_create", 1, 0))
            for _ in range(3):
                check(each.call("ds_batch_step"))
        assert bytes_of(batch) == bytes_of(other)
        other.batch.scratch_bytes -= 1
        assert other.call("ds_batch_step") == Status.INVALID_ARGUMENT


def test_steps_may_be_recorded_and_call_nothing_but_launches_and_copies():
    with driver.users_stream() as raw:
        stream = cuda.Stream.from_handle(raw)
        batch, other = (DeviceBatch(20, stream, episode_length=3) for _ in range(2))
        actions = filled(random_actions(1, 1, 20)[0], stream=stream)
        with prepared(batch):
            for each in (batch, other):
                check(each.call("ds_batch_create", 0, 0))
            driver.clear()
            with driver.RecordedGraph(raw) as graph:
                check(batch.call("ds_batch_step_from", ctypes.c_void_p(actions.pointer), None))
            others = ("cuCtx", "cuThread", "cuStream", "cuGraph")
            ours = [name for name in driver.report().calls if not name.startswith(others)]
            in_order = ["cuMemcpyAsync", "cuMemsetD8Async", "cuLaunchKernel"]
            assert list(dict.fromkeys(ours)) == in_order
            assert ours == sorted(ours, key=in_order.index)
            for _ in range(5):
                graph.launch()
                check(other.call("ds_batch_step_from", ctypes.c_void_p(actions.pointer), None))
            assert bytes_of(batch) == bytes_of(other)
        for thing in (batch, other, actions):
            thing.close()


def test_what_was_not_prepared_is_refused_and_kernels_stay_until_the_last_release():
    batch, of_levels = DeviceBatch(3, cuda.Stream()), DeviceBatch(3, cuda.Stream(), levels=TABLE)
    assert batch.call("ds_batch_create", 0, 0) == Status.INVALID_ARGUMENT
    assert batch.call("ds_batch_release") == Status.INVALID_ARGUMENT
    check(batch.call("ds_batch_prepare"))
    assert of_levels.call("ds_batch_create", 0, 0) == Status.INVALID_ARGUMENT  # worlds of another kind
    check(batch.call("ds_batch_prepare"))
    check(batch.call("ds_batch_release"))
    check(batch.call("ds_batch_create", 0, 0))
    check(batch.call("ds_batch_release"))
    assert batch.call("ds_batch_step") == Status.INVALID_ARGUMENT


def test_custom_calls_of_xla_step_worlds():
    created, stepped = ["rewards", "lidar"], ["rewards", "lidar", "final_lidar"]
    for gap, table in ((0, []), (128, []), (0, TABLE)):
        stream = cuda.Stream()
        batch = DeviceBatch(20, stream, episode_length=4, levels=table)
        scratch = batch.take(batch.info.scratch_bytes + 20 * 8192)
        words = filled(np.array([6, 1], np.uint32), stream=stream)
        call = {"stream": stream.handle, "device": 0}
        # Whose scratch memory, the second, begins some bytes later: XLA aligns it to 128 bytes.
        of_create, of_step = (batch.xla_results(outputs, scratch) for outputs in (created, stepped))
        of_create[1] = of_step[1] = xla_frames.Tensor(scratch.pointer + gap, (scratch.nbytes - gap,), "uint8")
        seed, of_levels = xla_frames.Tensor(words.pointer, (2,), "uint32"), batch.xla_levels() if table else []
        xla_frames.call("initialize_cuda", [], [], batch.rules(created), **call)
        xla_frames.call("create_cuda", [seed, *of_levels], of_create, batch.rules(created), **call)
        expected = DeviceBatch(20, stream, episode_length=4, levels=table)
        check(expected.call("ds_batch_create", 6, 1))
        for step, actions in enumerate(random_actions(2, 9, 20)):
            resets = (np.arange(20) == 3)[:, None] * (step == 5)
            for each in (batch, expected):
                each.write("actions", actions)
                each.write("resets", resets)
            check(expected.call("ds_batch_step"))
            given = [of_step[0], batch.xla_tensor("actions"), batch.xla_tensor("resets"), *of_levels, of_step[-1]]
            xla_frames.call("step_cuda", given, of_step, batch.rules(stepped, resets=True), **call)
            stream.synchronize()
            assert (batch.read("actions") == actions).all()
            for name in stepped if step > 4 else created:
                assert batch.read(name).tobytes() == expected.read(name).tobytes(), name
        assert not table or len(set(expected.read("level_indices").ravel().tolist())) > 1
        check(batch.call("ds_batch_release"))


@on_stand_in(devices=2)
def test_custom_calls_of_xla_tell_failures_of_the_driver():
    stream = cuda.Stream()
    batch = DeviceBatch(2, stream)
    scratch, words = batch.take(batch.info.scratch_bytes + 16384), batch.take(8)
    seed, call = [xla_frames.Tensor(words.pointer, (2,), "uint32")], {"stream": stream.handle, "device": 0}
    rules = batch.rules([])
    for said, arguments, of_call in (
        ("have not been prepared", ("create_cuda", seed, batch.xla_results([], scratch), rules), call),
        ("device", ("initialize_cuda", [], [], rules), {"stream": 0, "device": 5}),
        ("device kind differs", ("initialize_cuda", [], [], [0, *rules[1:]]), call),
    ):
        with pytest.raises(xla_frames.HandlerError, match=said):
            xla_frames.call(*arguments, **of_call)
