"""What other libraries attach to a simulator on a GPU works on its stream, on memory that goes after the work."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in

import doorstep
from doorstep._native import check, load
from doorstep._native._generated import Attachment, TensorInfo, Turn
from doorstep.errors import Status

UPDATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Turn))
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Mirror:
    """Begins a copy of `steps_remaining` into memory of its own at every update."""

    def __init__(self, sim: doorstep.Simulator) -> None:
        self.turns: list[tuple[int, int, int]] = []  # device kind, device index, stream
        self.releases = 0
        self.pending = 0  # operations not yet done when it was released
        self.failure = 0
        self.tensor = sim.steps_remaining
        self.handle, self.pointer = allocate(sim, self.tensor.nbytes)
        self._calls = UPDATE(self._update), RELEASE(self._release)
        update, release = (ctypes.cast(call, ctypes.c_void_p) for call in self._calls)
        attachment = Attachment(ctypes.sizeof(Attachment), 0, None, update, release)
        check(load().ds_simulator_attach(sim.handle, ctypes.byref(attachment)))

    def _update(self, _: object, turn: Any) -> int:
        given: Turn = turn.contents
        assert given.struct_size == ctypes.sizeof(Turn)
        assert not given.run
        self.turns.append((given.device_kind, given.device_index, given.stream))
        if self.failure:
            load().ds_set_error(self.failure, b"renderer", b"", b"the paint is dry")
            return self.failure
        source = self.tensor.__cuda_array_interface__["data"][0]
        driver.copy(given.stream, self.pointer, source, self.tensor.nbytes)
        return 0

    def _release(self, _: object) -> None:
        self.releases += 1
        self.pending += driver.report().pending
        check(load().ds_memory_release(self.handle))

    def read(self) -> npt.NDArray[Any]:
        """What the memory holds after everything that was begun."""
        info = TensorInfo.from_buffer_copy(self.tensor._info)
        info.data = self.pointer
        array = np.empty(self.tensor.shape, self.tensor.dtype)
        check(load().ds_memory_read(self.handle, ctypes.byref(info), array.ctypes.data, array.nbytes))
        return array


def allocate(sim: doorstep.Simulator, nbytes: int) -> tuple[int, int]:
    """Handle and address."""
    handle, pointer = ctypes.c_uint64(), ctypes.c_void_p()
    check(load().ds_simulator_allocate(sim.handle, nbytes, ctypes.byref(handle), ctypes.byref(pointer)))
    return handle.value, pointer.value or 0


@on_stand_in(devices=2)
def test_it_sees_the_worlds_after_everything_that_changes_them() -> None:
    with doorstep.Simulator(9, device="cuda:1", episode_length=7) as sim:
        mirror = Mirror(sim)
        assert mirror.turns == [(1, 1, sim.stream)]
        assert (mirror.read() == 7).all()
        sim.step()
        assert (mirror.read() == 6).all()
        event = sim.step_async()
        event.wait()
        assert (mirror.read() == 5).all()
        saved = sim.save()
        sim.reset([2])
        assert mirror.read()[:, 0, 0].tolist() == [5, 5, 7, 5, 5, 5, 5, 5, 5]
        sim.refresh()
        sim.restore(saved)
        assert (mirror.read() == 5).all()
        assert len(mirror.turns) == 6
        mirror.tensor = None  # type: ignore[assignment]
    assert mirror.releases == 1


@on_stand_in()
def test_its_work_is_recorded_with_the_step() -> None:
    with driver.users_stream() as stream, doorstep.Simulator(4, device="cuda", stream=stream) as sim:
        mirror = Mirror(sim)
        with driver.RecordedGraph(stream) as graph:
            sim.step()
        assert (mirror.read() == 200).all()
        for left in (199, 198, 197):
            graph.launch()
            assert (mirror.read() == left).all()
        assert mirror.turns == [(1, 0, stream)] * 2
        graph.close()
        mirror.tensor = None  # type: ignore[assignment]


@on_stand_in()
def test_its_work_goes_where_the_simulator_s_goes() -> None:
    with (
        driver.users_stream() as first,
        driver.users_stream() as second,
        doorstep.Simulator(4, device="cuda", stream=first) as sim,
    ):
        mirror = Mirror(sim)
        sim.step()
        check(load().ds_simulator_set_stream(sim.handle, second))
        check(load().ds_simulator_step(sim.handle))
        assert [stream for _, _, stream in mirror.turns] == [first, first, second]
        assert (mirror.read() == 198).all()
        mirror.tensor = None  # type: ignore[assignment]


@on_stand_in()
def test_it_is_released_when_its_work_is_done() -> None:
    with driver.users_stream() as stream:
        sim = doorstep.Simulator(4, device="cuda", stream=stream)
        mirror = Mirror(sim)
        sim.step()
        mirror.tensor = None  # type: ignore[assignment]
        assert driver.report().pending > 0
        sim.close()
        assert (mirror.releases, mirror.pending) == (1, 0)


@on_stand_in()
def test_it_is_abandoned_to_a_graph_that_is_being_recorded() -> None:
    with driver.users_stream() as stream:
        sim = doorstep.Simulator(4, device="cuda", stream=stream)
        mirror = Mirror(sim)
        driver.objects_stay()
        with driver.RecordedGraph(stream) as graph:
            sim.step()
            mirror.tensor = None  # type: ignore[assignment]
            sim.close()
        assert mirror.releases == 0
        graph.launch()
        driver.synchronize(stream)
        graph.close()


@on_stand_in()
def test_a_failure_is_returned_by_the_operation_which_was_begun() -> None:
    with doorstep.Simulator(4, device="cuda") as sim:
        mirror = Mirror(sim)
        mirror.failure = Status.RENDERER
        for operation in (sim.step, sim.step_async, sim.refresh):
            with pytest.raises(doorstep.RendererError, match="the paint is dry"):
                operation()
        mirror.failure = 0
        sim.step()
        assert (mirror.read() == 197).all()
        assert doorstep.live_counts()["event"] == 0
        mirror.tensor = None  # type: ignore[assignment]


@on_stand_in()
def test_memory_for_it_is_zeroed_counted_and_refused_while_a_graph_is_recorded() -> None:
    with driver.users_stream() as stream, doorstep.Simulator(4, device="cuda", stream=stream) as sim:
        before = sim.allocated_bytes
        handle, pointer = allocate(sim, 1000)
        assert pointer % 256 == 0
        assert sim.allocated_bytes >= before + 1000
        info = TensorInfo.from_buffer_copy(sim.steps_remaining._info)
        info.data = pointer
        array = np.full((4, 2, 1), 5, np.int32)
        check(load().ds_memory_read(handle, ctypes.byref(info), array.ctypes.data, array.nbytes))
        assert (array == 0).all()
        refused = pytest.raises(doorstep.ArgumentError, match="the allocation of memory")
        with driver.RecordedGraph(stream) as graph, refused:
            allocate(sim, 1000)
        graph.close()
        check(load().ds_memory_release(handle))


@on_stand_in()
def test_memory_beyond_the_device_s_is_refused() -> None:
    with doorstep.Simulator(4, device="cuda") as sim:
        with pytest.raises(doorstep.OutOfMemoryError):
            allocate(sim, 1 << 50)
        sim.step()


@on_stand_in()
def test_embree_is_refused_on_a_gpu() -> None:
    with pytest.raises(doorstep.ArgumentError, match="on the CPU only") as raised:
        doorstep.Simulator(4, device="cuda", cameras=doorstep.Cameras(renderer="embree"))
    assert raised.value.argument == "renderer"
    assert not any(doorstep.live_counts().values())
