"""The small objects of doorstep.cuda: devices, streams, events, memory."""

import gc
import weakref

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in

import doorstep
from doorstep import cuda


@on_stand_in(devices=3, compute_capability=89, multiprocessors=7)
def test_device_tells_what_the_driver_says() -> None:
    assert cuda.Device.count() == 3
    device = cuda.Device(2)
    assert device.index == 2
    assert device.name == "Stand-in 2"
    assert device.compute_capability == (8, 9)
    assert device.multiprocessors == 7
    assert device.total_bytes == device.free_bytes == 2**30
    buffer = cuda.Buffer(2**20, 2)
    assert cuda.Device(2).free_bytes == 2**30 - 2**20
    assert cuda.Device(1).free_bytes == 2**30
    buffer.close()


@on_stand_in(devices=2)
def test_context_of_a_device_is_made_once_and_kept() -> None:
    for _ in range(3):
        cuda.Device().synchronize()
    assert driver.report().contexts == 1
    with doorstep.Simulator(2, device="cuda:1"):
        pass
    assert driver.report().contexts == 2
    calls = driver.report().calls
    assert calls.count("cuDevicePrimaryCtxRetain") - calls.count("cuDevicePrimaryCtxRelease") == 2
    assert not any(doorstep.live_counts().values())


@on_stand_in()
def test_kernels_are_loaded_once_and_kept() -> None:
    for num_agents in (2, 3, 2, 3, 2):
        doorstep.Simulator(2, num_agents=num_agents, device="cuda").close()
    assert driver.report().modules == driver.report().calls.count("cuModuleLoadDataEx") == 2
    assert not any(doorstep.live_counts().values())


@on_stand_in()
def test_stream_does_its_work_in_order_when_somebody_waits() -> None:
    stream = cuda.Stream()
    one, other = cuda.Buffer(800, stream=stream), cuda.Buffer(800, stream=stream)
    one.copy_from_host(np.arange(100))
    stream.copy(other.pointer, one.pointer, 800)
    assert not stream.done
    stream.synchronize()
    assert stream.done
    assert (other.copy_to_host(np.int64) == np.arange(100)).all()
    for thing in (one, other, stream):
        thing.close()
        assert thing.closed


@on_stand_in()
def test_event_orders_two_streams() -> None:
    first, second = cuda.Stream(), cuda.Stream()
    source, middle = cuda.Buffer(8, stream=first), cuda.Buffer(8, stream=first)
    source.copy_from_host(np.array([5]))
    first.copy(middle.pointer, source.pointer, 8)
    event = cuda.Event()
    assert event.done
    event.record(first)
    assert not event.done
    second.wait_event(event)
    seen = np.zeros(1, np.int64)
    second.copy(seen.ctypes.data, middle.pointer, 8)
    second.synchronize()
    assert seen[0] == 5
    assert event.wait(1.0)


@on_stand_in()
def test_a_stream_waits_for_events_alone() -> None:
    stream = cuda.Stream()
    for other in (stream, cuda.Buffer(8), 7, None):
        with pytest.raises(doorstep.ArgumentError, match=r"event is .*a doorstep\.cuda\.Event") as caught:
            stream.wait_event(other)  # type: ignore[arg-type]
        assert caught.value.argument == "event"


@on_stand_in()
def test_elapsed_time_needs_events_with_timing() -> None:
    stream, start, end = cuda.Stream(), cuda.Event(timing=True), cuda.Event(timing=True)
    start.record(stream)
    end.record(stream)
    assert start.elapsed_seconds(end) > 0
    with pytest.raises(doorstep.ArgumentError, match="timing"):
        cuda.Event().elapsed_seconds(end)


@on_stand_in()
def test_children_keep_their_parents() -> None:
    stream = cuda.Stream()
    buffer = cuda.Buffer(64, stream=stream)
    del stream
    gc.collect()
    buffer.copy_from_host(np.arange(8))
    assert buffer.copy_to_host(np.int64)[7] == 7
    assert driver.report().live["streams"] == 1
    assert cuda.resource_counts()["stream"] == 1
    buffer.close()
    del buffer
    gc.collect()
    assert driver.report().live == {}
    assert not any(cuda.resource_counts().values())


@on_stand_in()
def test_foreign_objects_are_used_and_never_ended() -> None:
    class Owner:
        pass

    with driver.users_stream() as raw:
        owner = Owner()
        gone = weakref.ref(owner)
        stream = cuda.Stream.from_handle(raw, 0, owner=owner)
        del owner
        buffer = cuda.Buffer(8, stream=stream)
        borrowed = cuda.Buffer.from_pointer(buffer.pointer, 8, stream=stream, owner=buffer)
        borrowed.copy_from_host(np.array([3]))
        assert stream.handle == raw
        assert gone() is not None
        borrowed.close()
        buffer.close()
        stream.close()
        del stream, buffer, borrowed
        gc.collect()
        assert gone() is None
        assert driver.report().live["streams"] == 1


@on_stand_in()
def test_pinned_memory_is_read_in_place_by_both() -> None:
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


@on_stand_in()
def test_buffer_describes_its_bytes() -> None:
    buffer = cuda.Buffer(100)
    interface = buffer.__cuda_array_interface__
    assert interface["data"] == (buffer.pointer, False)
    assert interface["shape"] == (100,)
    assert interface["typestr"] == "|u1"
    assert interface["stream"] == buffer.stream.handle
    assert buffer.stream.__cuda_stream__() == (0, buffer.stream.handle)
    with pytest.raises(doorstep.ArgumentError):
        buffer.copy_from_host(np.zeros(101, np.uint8))
    with pytest.raises(doorstep.ArgumentError):
        cuda.Buffer(0)


@on_stand_in()
def test_closed_objects_say_so() -> None:
    stream, event, buffer = cuda.Stream(), cuda.Event(), cuda.Buffer(8)
    for thing in (stream, event, buffer):
        thing.close()
        thing.close()
    for call in (stream.synchronize, lambda: event.done, buffer.copy_to_host, lambda: buffer.pointer):
        with pytest.raises(doorstep.ClosedError):
            call()


@on_stand_in(devices=2)
def test_stream_of_one_device_is_no_stream_of_another() -> None:
    stream = cuda.Stream(1)
    assert stream.device.index == 1
    with pytest.raises(doorstep.ArgumentError):
        cuda.Stream.from_handle(stream.handle, 0)
    with pytest.raises(doorstep.ArgumentError):
        cuda.Buffer(8, 0, stream=stream)
