"""The small objects of doorstep.cuda: devices, streams, events, memory."""

import ctypes
import gc
import weakref
from functools import partial
from uuid import UUID

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import all_raise, on_stand_in
from tests.cuda.users_memory import FakeTorch

import doorstep
from doorstep import cuda


@on_stand_in(devices=3, compute_capability=89, multiprocessors=7)
def test_a_device_tells_what_the_driver_says():
    assert cuda.Device.count() == 3
    device = cuda.Device(2)
    assert (device.index, device.name) == (2, "Stand-in 2")
    assert device.uuid == UUID("00112233-4455-6677-8899-aabbccddee02")
    assert (device.compute_capability, device.multiprocessors) == ((8, 9), 7)
    assert device.total_bytes == device.free_bytes == 2**30
    _buffer = cuda.Buffer(2**20, 2)
    assert [cuda.Device(index).free_bytes for index in (1, 2)] == [2**30, 2**30 - 2**20]


@on_stand_in(devices=2)
def test_objects_go_to_the_device_that_is_named_or_else_to_pytorchs_current_one():
    with_sizes = [partial(make, 8) for make in (cuda.Buffer, cuda.Buffer.pinned, cuda.InteropBuffer)]
    for make in (cuda.Stream, cuda.Event, *with_sizes):
        named = [repr(make(device))[-7:] for device in (0, 1, cuda.Device(1), None)]
        assert named == ["cuda:0)", "cuda:1)", "cuda:1)", "cuda:0)"]
        with FakeTorch(2, device=1):
            assert repr(make(None)).endswith("cuda:1)")
    with FakeTorch(2, device=1), doorstep.Simulator(2, device="cuda") as sim:
        sim.step()
        assert (sim.device, sim.stream) == ("cuda:1", 2)


@on_stand_in(devices=2)
def test_contexts_and_kernels_are_loaded_once_and_kept():
    for num_agents in (2, 3, 2, 3, 2):
        doorstep.Simulator(2, num_agents=num_agents, device="cuda:1").close()
    end = driver.report()
    assert (end.contexts, end.modules, end.calls.count("cuModuleLoadDataEx")) == (1, 2, 2)
    assert not any(doorstep.live_counts().values())


def test_an_event_orders_two_streams():
    first, second = cuda.Stream(), cuda.Stream()
    source, middle = cuda.Buffer(8, stream=first), cuda.Buffer(8, stream=first)
    event, early, late = cuda.Event(), cuda.Event(timing=True), cuda.Event(timing=True)
    assert event.done
    early.record(first)
    source.copy_from_host(np.array([5]))
    first.copy(middle.pointer, source.pointer, 8)
    event.record(first)
    assert not event.done
    second.wait_event(event)
    seen = np.zeros(1, np.int64)
    second.copy(seen.ctypes.data, middle.pointer, 8)
    late.record(second)
    assert not second.done
    second.synchronize()
    assert second.done
    assert seen[0] == 5
    assert event.wait(1.0)
    # The stand-in counts a millisecond for each operation between.
    assert 0.001 < early.elapsed_seconds(late) == -late.elapsed_seconds(early) < 0.1
    with pytest.raises(doorstep.ArgumentError, match="timing"):
        event.elapsed_seconds(late)


def test_foreign_objects_are_used_and_never_ended():
    with driver.users_stream() as raw:
        owner = set()
        gone = weakref.ref(owner)
        stream = cuda.Stream.from_handle(raw, 0, owner=owner)
        del owner
        buffer = cuda.Buffer(8, stream=stream)
        borrowed = cuda.Buffer.from_pointer(buffer.pointer, 8, stream=stream, owner=buffer)
        borrowed.copy_from_host(np.array([3]))
        assert stream.handle == raw
        assert gone() is not None
        handle = driver.call_for_value("cuEventCreate", 0)
        event = cuda.Event.from_handle(handle, 0, owner=buffer)
        event.record(stream)
        assert (event.handle, event.done) == (handle, False)
        assert event.wait(5.0)
        assert stream.done
        del stream, buffer, borrowed, event
        gc.collect()
        assert gone() is None
        assert (driver.report().live["streams"], driver.report().live["events"]) == (1, 1)
        driver.call("cuEventDestroy_v2", ctypes.c_uint64(handle))


def test_pinned_memory_is_read_in_place_by_both():
    stream, pinned = cuda.Stream(), cuda.Buffer.pinned(80)
    assert pinned.is_pinned
    view = np.asarray(pinned).view(np.int64)
    view[:] = np.arange(10)
    buffer = cuda.Buffer(80, stream=stream)
    for first in (0, 50):
        view[0] = first
        stream.copy(buffer.pointer, pinned.pointer, 80)
        stream.synchronize()
        assert buffer.copy_to_host(np.int64)[0] == first
    pinned.close()
    view[1] = 2  # memory that arrays were made of stays
    assert view[1] == 2


def test_a_buffer_describes_its_bytes():
    buffer = cuda.Buffer(100)
    interface = buffer.__cuda_array_interface__
    assert (interface["data"], interface["shape"], interface["typestr"]) == ((buffer.pointer, False), (100,), "|u1")
    assert interface["stream"] == buffer.stream.handle
    assert buffer.stream.__cuda_stream__() == (0, buffer.stream.handle)
    all_raise(doorstep.ArgumentError, lambda: buffer.copy_from_host(np.zeros(101, np.uint8)), lambda: cuda.Buffer(0))
