"""Steps recorded in a user's CUDA graph, and what other libraries attach to steps."""

import ctypes
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in, refused
from tests.cuda.twins import Twins
from tests.cuda.users_memory import UsersArray
from tests.render.agreement import OUTPUTS
from tests.scenes import random_actions

import doorstep
from doorstep import cuda
from doorstep._native import check, load
from doorstep._native._generated import Attachment, TensorInfo, Turn


def test_replays_are_steps():
    cameras = doorstep.Cameras(width=8, height=8, **OUTPUTS)
    for mode in (0, 1, 2):
        with driver.users_stream() as stream, Twins(20, stream=stream, episode_length=4, cameras=cameras) as (cpu, sim):
            chosen = UsersArray(sim.actions.shape, np.int32, stream)
            with driver.RecordedGraph(stream, mode) as graph:
                sim.actions = chosen
                for _ in range(1 + mode):
                    sim.step()
            assert (driver.peek(sim.steps_remaining) == 4).all()
            for actions in random_actions(1, 6, 20):
                chosen.fill(actions)
                graph.launch()
                cpu.actions = actions
                for _ in range(1 + mode):
                    cpu.step()
            for name in ("lidar", *OUTPUTS):
                assert sim.tensors[name].copy_to_host().tobytes() == cpu.tensors[name].to_numpy().tobytes()
            assert sim.hash() == cpu.hash()
            for one in (sim, cpu):  # plain steps go on where replays ended
                one.step()
            assert sim.hash() == cpu.hash()


def test_what_cannot_be_recorded_is_refused_and_the_recording_goes_on():
    with (
        driver.users_stream() as stream,
        Twins(4, stream=stream) as (cpu, sim),
        doorstep.Simulator(4, device="cuda", stream=stream, action_check="raise") as checked,
    ):
        saved, actions = sim.save(), np.zeros(sim.actions.shape, np.int32)
        for number, call in enumerate((
            sim.save, sim.hash, sim.world_hashes, sim.wait, sim.rewards.copy_to_host, checked.step,
            lambda: sim.health, lambda: sim.reset([1]), lambda: sim.actions.copy_from_host(actions),
            lambda: sim.restore(saved), lambda: allocate(sim, 1000),
            lambda: doorstep.Simulator(4, num_agents=3, device="cuda", stream=stream),
        )):  # fmt: skip
            with driver.RecordedGraph(stream) as graph:
                with pytest.raises(doorstep.DoorstepError, match="captured"):
                    call()
                sim.step()
            graph.launch()
            cpu.step()
            assert sim.hash() == cpu.hash(), number
        assert checked.step_count == 0


def test_a_strict_simulator_notices_trouble_of_replays():
    with driver.users_stream() as stream, doorstep.Simulator(4, device="cuda", stream=stream, strict=True) as sim:
        positions = sim.state.body_positions  # steps that are recorded after that look for edits
        with driver.RecordedGraph(stream) as graph:
            sim.step()
        edited = positions.copy_to_host()
        edited[2, 0, 1] = np.inf
        positions.copy_from_host(edited)
        graph.launch()
        driver.synchronize(stream)
        with pytest.raises(doorstep.SimulationError, match="world 2"):
            sim.step()
        del positions  # it would keep the memory, which is freed on the stream


# What uses no recorded work; the simulator is the only one of its kind.
BESIDE = [
    lambda sim: sim.step_async().wait(), lambda sim: sim.hash(), lambda sim: sim.wait(), lambda sim: sim.reset([1]),
    lambda sim: sim.actions.copy_from_host(sim.actions.copy_to_host()), lambda sim: sim.close(),
    lambda _: doorstep.Simulator(2, num_agents=1, device="cuda").close(),  # of another kind
    lambda _: cuda.Stream().synchronize(), lambda _: cuda.Stream().done, lambda _: cuda.Buffer(100).copy_to_host(),
    lambda _: (cuda.Event().wait(), cuda.Event().wait(0.01)), lambda _: cuda.Buffer.pinned(100).close(),
]  # fmt: skip


def test_what_is_done_beside_a_recording_leaves_it_alone():
    with (
        driver.users_stream() as stream,
        ThreadPoolExecutor() as executor,
        doorstep.Simulator(4, device="cuda", stream=stream) as recorded,
    ):
        in_thread = lambda call, sim: executor.submit(call, sim).result()  # noqa: E731
        here = lambda call, sim: call(sim)  # noqa: E731
        for number, (where, call) in enumerate(itertools.product((here, in_thread), BESIDE)):
            recorded.reset(seed=number)
            with doorstep.Simulator(4, device="cuda", num_agents=3) as sim:
                sim.step()
                with driver.RecordedGraph(stream, driver.GLOBAL) as graph:
                    recorded.step()
                    where(call, sim)
                graph.launch()
                assert (recorded.steps_remaining.copy_to_host() == 199).all(), number


def test_the_default_stream_is_refused_beside_a_recording_that_it_waits_for():
    with driver.users_context(), Twins(4, stream=1) as (cpu, sim), doorstep.Simulator(4, device="cuda") as free:
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


def test_closing_waits_for_replays_and_does_not_spoil_a_recording():
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
        driver.objects_stay()  # memory that the next graph may use
        driver.call_for_value("cuDevicePrimaryCtxRetain", 0)  # the program goes on
        sim = doorstep.Simulator(4, device="cuda", stream=stream)
        driver.clear()
        with driver.RecordedGraph(stream) as graph:
            sim.step()
            sim.close()
            del sim
        assert not {"cuCtxSynchronize", "cuStreamSynchronize"}.intersection(driver.report().calls)
        graph.launch()
        driver.synchronize(stream)


# ---- What is attached works on the simulator's stream, on memory that goes after the work

UPDATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Turn))
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Mirror:
    """Begins a copy of `steps_remaining` into memory of its own at every update."""

    def __init__(self, sim):
        self.turns = []  # device kind, device index, stream
        self.releases = self.pending = 0  # pending: operations not yet done when it was released
        self.tensor = sim.steps_remaining
        self.handle, self.pointer = allocate(sim, self.tensor.nbytes)
        self._calls = UPDATE(self._update), RELEASE(self._release)
        calls = (ctypes.cast(call, ctypes.c_void_p) for call in self._calls)
        attachment = Attachment(ctypes.sizeof(Attachment), 0, None, *calls)
        check(load().ds_simulator_attach(sim.handle, ctypes.byref(attachment)))

    def _update(self, _, turn):
        given = turn.contents
        self.turns.append((given.device_kind, given.device_index, given.stream))
        source = self.tensor.__cuda_array_interface__["data"][0]
        driver.copy(given.stream, self.pointer, source, self.tensor.nbytes)
        return 0

    def _release(self, _):
        self.releases += 1
        self.pending += driver.report().pending
        check(load().ds_memory_release(self.handle))

    def read(self):
        """What the memory holds after everything that was begun."""
        info = TensorInfo.from_buffer_copy(self.tensor._info)
        info.data = self.pointer
        array = np.full(self.tensor.shape, 77, self.tensor.dtype)
        check(load().ds_memory_read(self.handle, ctypes.byref(info), array.ctypes.data, array.nbytes))
        return array[:, 0, 0].tolist()


def allocate(sim, nbytes):
    """Handle and address."""
    handle, pointer = ctypes.c_uint64(), ctypes.c_void_p()
    check(load().ds_simulator_allocate(sim.handle, nbytes, ctypes.byref(handle), ctypes.byref(pointer)))
    return handle.value, pointer.value or 0


@on_stand_in(devices=2)
def test_attachments_work_on_the_simulators_stream_or_in_its_graph_until_it_ends():
    with driver.users_stream(1) as first, driver.users_stream(1) as second:
        sim = doorstep.Simulator(4, device="cuda:1", stream=first)
        before = sim.allocated_bytes
        mirror = Mirror(sim)
        assert sim.allocated_bytes >= before + mirror.tensor.nbytes
        saved = sim.save()
        with driver.RecordedGraph(first) as graph:
            sim.step()
        assert mirror.read() == [200] * 4
        for left in (199, 198, 197):
            graph.launch()
            assert mirror.read() == [left] * 4
        sim.reset([2])
        assert mirror.read() == [197, 197, 200, 197]
        sim.refresh()
        sim.restore(saved)
        assert mirror.read() == [200] * 4
        sim.step_async().wait()
        assert mirror.read() == [199] * 4
        check(load().ds_simulator_set_stream(sim.handle, second))
        for _ in range(2):
            check(load().ds_simulator_step(sim.handle))
        assert mirror.turns == [(1, 1, first)] * 6 + [(1, 1, second)] * 2
        assert mirror.read() == [197] * 4
        check(load().ds_simulator_step(sim.handle))
        mirror.tensor = None
        assert driver.report().pending > 0
        sim.close()
        assert (mirror.releases, mirror.pending) == (1, 0)


def test_memory_of_attachments_is_zeroed_or_refused():
    with doorstep.Simulator(4, device="cuda") as sim:
        handle, pointer = allocate(sim, 1000)
        stream = cuda.Stream.from_handle(sim.stream)
        assert not cuda.Buffer.from_pointer(pointer, 1000, stream=stream).copy_to_host(np.uint8).any()
        check(load().ds_memory_release(handle))
        with pytest.raises(doorstep.OutOfMemoryError):
            allocate(sim, 1 << 50)
    with refused("renderer", "on the CPU only"):
        doorstep.Simulator(4, device="cuda", cameras=doorstep.Cameras(renderer="embree"))
