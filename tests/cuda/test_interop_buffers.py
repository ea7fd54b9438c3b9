"""Memory and semaphores shared with another API: the same bytes on both sides, and every descriptor closed once."""

import gc
import importlib.util
import itertools
import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import all_raise, on_stand_in, refused
from tests.cuda.twins import Twins, step
from tests.cuda.users_memory import Memory, Semaphore, filled, is_open

import doorstep
from doorstep import cuda

PATIENCE = 3.0  # seconds that something waits for its work before it is leaked


def on_device(buffer, array, offset=0):
    """A tensor of some library: memory of a buffer, with the shape and strides of an array."""
    interface = {"version": 3, "typestr": array.dtype.str, "shape": array.shape, "strides": array.strides}
    interface |= {"data": (buffer.pointer + offset, False), "stream": buffer.stream.handle}
    return SimpleNamespace(__cuda_array_interface__=interface)


def import_and_keep(import_fd, other):
    """A failing import, after which the descriptor is still the caller's."""
    fd = other.export()
    try:
        import_fd(fd)
    finally:
        assert is_open(fd)
        os.close(fd)


def import_memory(fd, nbytes=64, **options):
    return cuda.InteropBuffer.import_fd(fd, nbytes, **options)


def other_side(buffer):
    return Memory(buffer.allocated_bytes, imported=buffer.export())


# ---- The same bytes on both sides


def test_both_sides_see_what_either_writes_in_order():
    buffer, numbers = cuda.InteropBuffer(1000), np.arange(1000, dtype=np.uint8)
    assert (buffer.nbytes, buffer.allocated_bytes) == (1000, 2**21)  # the granularity of the stand-in's exported memory
    other, source = other_side(buffer), filled(numbers)
    buffer.copy_in(source)
    assert not (other.array[:1000] == numbers).all()
    buffer.stream.synchronize()
    assert (other.array[:1000] == numbers).all()
    other.array[:80] = np.arange(10, dtype=np.int64).view(np.uint8)
    seen, raw = np.zeros((2, 5), np.int64), bytearray(4)
    buffer.copy_out(seen)
    assert (seen == np.arange(10).reshape(2, 5)).all()
    assert (buffer.copy_to_host(np.int64)[:10] == np.arange(10)).all()
    buffer.copy_in(b"\x01\x02\x03\x04")
    buffer.copy_out(raw)
    assert raw == b"\x01\x02\x03\x04"
    buffer.copy_in(np.array([77]))
    buffer.close()  # the bytes live as long as one side has them
    assert other.array[:8].view(np.int64)[0] == 77


def test_imported_memory_is_the_other_sides():
    for dedicated in (False, True):
        memory = Memory(4096, dedicated=dedicated)
        memory.array[:4] = [1, 2, 3, 4]
        buffer = import_memory(memory.export(), 4096, dedicated=dedicated)
        assert (buffer.nbytes, buffer.allocated_bytes) == (4096, 4096)
        assert buffer.copy_to_host()[:4].tolist() == [1, 2, 3, 4]
        buffer.copy_in(np.full(4, 9, np.uint8), offset=2)
        assert memory.array[:7].tolist() == [1, 2, 9, 9, 9, 9, 0]
        del memory
        buffer.copy_in(np.array([78]))
        assert buffer.copy_to_host(np.int64)[0] == 78
        with pytest.raises(doorstep.ArgumentError, match="exported memory"):
            buffer.export()


def test_a_simulators_tensors_go_in_and_out_in_the_order_of_its_steps():
    with Twins(16, seed=3) as (twin, sim):
        buffer = cuda.InteropBuffer(16 * 2 * 8 * 4)
        other = other_side(buffer)
        sim.step()
        buffer.copy_in(sim.self_observations)
        sim.step()
        twin.step()
        buffer.stream.synchronize()
        seen = other.array[: buffer.nbytes].view(np.float32).reshape(16, 2, 8)
        assert (seen == twin.self_observations.to_numpy()).all()
        actions = np.tile(np.array([3, 1, 4, 0], np.int32), (16, 2, 1))
        other.array[: actions.nbytes] = actions.reshape(-1).view(np.uint8)
        buffer.copy_out(sim.actions)
        sim.step()
        twin.step()
        step(twin, actions)
        assert sim.hash() == twin.hash()
        buffer.copy_in(sim.rewards)
        with pytest.raises(doorstep.ArgumentError, match="read-only"):
            buffer.copy_out(sim.rewards)


# All, rows with gaps, every other, a column, blocks with gaps, one, none, with dimensions of one.
VIEWS = np.s_[:], np.s_[:, :, 2:5], np.s_[:, ::2], np.s_[:, 1, 3], np.s_[1:3, 1:3, 1:3], np.s_[1, 2, 3, ...], np.s_[:0]
VIEWS += (np.s_[1:2, :, None, 1:2],)


def test_tensors_with_gaps_are_copied_element_by_element():
    for view, axes, on_host in itertools.product(VIEWS, ((0, 1, 2), (2, 0, 1)), (False, True)):
        numbers = np.arange(4 * 5 * 6, dtype=np.int16).reshape(4, 5, 6)
        array, expected = numbers.copy(), numbers.transpose(axes)[view].copy()
        buffer, there, part = cuda.InteropBuffer(array.nbytes + 8), filled(array), array.transpose(axes)[view]
        tensor = part if on_host else on_device(there, part, part.ctypes.data - array.ctypes.data)
        buffer.copy_in(tensor, offset=6)
        packed = buffer.copy_to_host(np.int16)[3 : 3 + expected.size]
        assert (packed == expected.reshape(-1)).all(), (view, axes)
        buffer.copy_in(-expected, offset=6)
        buffer.copy_out(tensor, offset=6)
        changed = array if on_host else there.copy_to_host(np.int16).reshape(array.shape)
        numbers.transpose(axes)[view] = -expected
        assert (changed == numbers).all(), (view, axes)
    row = filled(np.arange(6, dtype=np.int32))
    rows = on_device(row, np.broadcast_to(np.arange(6, dtype=np.int32), (3, 6)))
    buffer.copy_in(rows)
    assert (buffer.copy_to_host(np.int32)[:18].reshape(3, 6) == np.arange(6)).all()
    with pytest.raises(doorstep.ArgumentError, match="overlap"):
        buffer.copy_out(rows)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_tensors_of_pytorch_go_in_and_out_whatever_their_gradient():
    import torch

    weights = torch.arange(12.0).reshape(3, 4).bfloat16().requires_grad_()
    seen = torch.zeros(4, 3, dtype=torch.bfloat16)
    buffer = cuda.InteropBuffer(24)
    buffer.copy_in(weights.T)
    buffer.copy_out(seen)
    assert torch.equal(seen, weights.detach().T)


def test_rows_are_copied_between_pitches():
    stream = cuda.Stream()
    image, texture = (filled(np.arange(size, dtype=np.uint8), stream=stream) for size in (24, 64))
    stream.copy_rows(texture.pointer, 16, image.pointer, 6, 6, 4)
    expected = np.arange(64).reshape(4, 16)
    expected[:, :6] = np.arange(24).reshape(4, 6)
    assert (texture.copy_to_host().reshape(4, 16) == expected).all()


# ---- Streams


def test_a_copy_is_ordered_with_the_streams_of_the_tensor_and_of_the_buffer_until_it_closes():
    elsewhere, buffer, tensor = cuda.Stream(), cuda.InteropBuffer(800), filled(np.arange(100))
    middle = cuda.Buffer(800, stream=tensor.stream)
    tensor.stream.copy(middle.pointer, tensor.pointer, 800)
    buffer.copy_in(middle, elsewhere)
    assert (buffer.copy_to_host(np.int64) == np.arange(100)).all()
    other = other_side(buffer)
    tensor.copy_from_host(np.full(100, 5))
    buffer.copy_in(tensor, elsewhere)
    buffer.close()
    assert (other.array[:800].view(np.int64) == 5).all()


def test_copies_are_recorded_but_those_of_the_hosts_memory_are_refused():
    stream = cuda.Stream()
    with Twins(4, seed=3, stream=stream) as (twin, sim):
        source, buffer = cuda.Buffer(8, stream=stream), cuda.InteropBuffer(8, stream=stream)
        seen = cuda.InteropBuffer(sim.self_observations.nbytes, stream=stream)
        with driver.users_context(), driver.RecordedGraph(stream.handle) as graph:
            for copy in (buffer.copy_in, buffer.copy_out):
                with refused("stream", "being captured"):
                    copy(np.zeros(1, np.int64))
            buffer.copy_in(source)
            sim.step()
            seen.copy_in(sim.self_observations, stream)
        for value in (5, 6):
            source.copy_from_host(np.array([value]))
            graph.launch()
            twin.step()
            assert buffer.copy_to_host(np.int64)[0] == value
            assert seen.copy_to_host(np.float32).tobytes() == twin.self_observations.to_numpy().tobytes()
        graph.close()


# ---- Semaphores


def timeline():
    semaphore = Semaphore(timeline=True)
    return semaphore, cuda.Semaphore.import_fd(semaphore.export(), timeline=np.bool_(True))


def test_a_stream_waits_until_the_other_side_signals():
    (semaphore, imported), memory = timeline(), Memory(8)
    assert imported.is_timeline is True
    buffer = import_memory(memory.export(), 8)
    stream = buffer.stream
    imported.wait(stream, 3)
    seen = cuda.Buffer(8, stream=stream)
    stream.copy(seen.pointer, buffer.pointer, 8)
    imported.signal(stream, 4)

    def render():
        memory.array[0] = 42
        semaphore.signal(2)
        assert not stream.done
        semaphore.signal(3)

    with ThreadPoolExecutor(1) as executor:
        rendering = executor.submit(render)
        stream.synchronize()
    rendering.result()
    assert seen.copy_to_host()[0] == 42
    assert semaphore.value == 4
    imported.signal(stream, 7)
    imported.close()  # after its work
    assert semaphore.value == 7
    assert "external_semaphores" not in driver.report().live


def test_waiting_for_a_simulator_ends_while_others_go_on_stepping():
    semaphore, imported = timeline()
    stream = cuda.Stream()
    with doorstep.Simulator(4, device="cuda", stream=stream) as sim:
        imported.wait(stream, 1)
        sim.step()
        driver.clear()

        def go_on():
            while driver.report().calls.count("cuEventQuery") < 3:  # the other thread waits
                time.sleep(0.001)
            imported.wait(stream, 2)
            sim.step()
            semaphore.signal(1)

        with ThreadPoolExecutor(1) as executor:
            going_on = executor.submit(go_on)
            sim.wait()
            assert semaphore.value == 1
            assert not stream.done
        going_on.result()
        semaphore.signal(2)
        sim.wait()


def test_a_binary_semaphore_ends_one_wait_per_signal():
    semaphore = Semaphore(timeline=False)
    imported = cuda.Semaphore.import_fd(semaphore.export(), timeline=np.bool_(False))
    assert imported.is_timeline is False
    stream = cuda.Stream()
    imported.wait(stream)
    semaphore.signal()
    stream.synchronize()
    assert semaphore.value == 0
    imported.signal(stream)
    stream.synchronize()
    assert semaphore.value == 1
    with pytest.raises(doorstep.ArgumentError, match="value"):
        imported.signal(stream, 5)


@pytest.mark.slow
def test_what_waits_for_a_signal_that_never_comes_is_leaked_and_the_process_goes_on():
    semaphore, imported = timeline()
    buffer = cuda.InteropBuffer(8)
    imported.wait(buffer.stream, 1)
    begin = time.monotonic()
    imported.close()
    buffer.close()
    assert time.monotonic() - begin < 4 * PATIENCE
    del imported, buffer
    gc.collect()
    assert not any(cuda.resource_counts().values())
    live = driver.report().live
    assert (live["external_semaphores"], live["device_memory"]) == (1, 1)
    semaphore.signal(1)
    driver.objects_stay()


# ---- Descriptors


def test_an_imported_descriptor_is_closed_and_an_exported_one_is_the_callers():
    for other, import_fd in ((Memory(64), import_memory), (Semaphore(timeline=False), cuda.Semaphore.import_fd)):
        fd = other.export()
        imported = import_fd(fd)
        assert not is_open(fd)
        imported.close()
    buffer = cuda.InteropBuffer(1)
    first, second = buffer.export(), buffer.export()
    assert (first != second, os.get_inheritable(first)) == (True, False)
    assert driver.report().live["file_descriptors"] == 2
    buffer.close()
    os.close(first)
    os.close(second)


def test_a_descriptor_that_was_not_imported_stays_open():
    for import_fd, other in (
        (partial(import_memory, nbytes=65), Memory(64)),
        (partial(import_memory, dedicated=True), Memory(64)),
        (import_memory, Memory(64, dedicated=True)),
        (cuda.Semaphore.import_fd, Semaphore(timeline=True)),
        (partial(cuda.Semaphore.import_fd, timeline=True), Semaphore(timeline=False)),
        (cuda.Semaphore.import_fd, Memory(64)),
    ):
        with refused("fd"):
            import_and_keep(import_fd, other)
    for import_fd, fd in itertools.product((import_memory, cuda.Semaphore.import_fd), (1000, -1)):
        with pytest.raises(doorstep.ArgumentError, match="1000" if fd > 0 else "fd"):
            import_fd(fd)


# ---- Refusals


def test_copies_that_cannot_be_are_argument_errors():
    buffer, few, many = cuda.InteropBuffer(64), bytearray(8), bytearray(65)
    all_raise(
        doorstep.ArgumentError,
        *(partial(buffer.copy_in, *arguments) for arguments in ((many,), ([1, 2, 3],), (None,), (few, "stream"))),
        *(partial(buffer.copy_in, few, offset=offset) for offset in (57, -1)),
        *(partial(buffer.copy_out, target) for target in (many, b"\x00\x00")),
        partial(cuda.InteropBuffer, 0),
        partial(import_memory, 0, 0),
    )
    with pytest.raises(TypeError, match="import_fd"):
        cuda.Semaphore()
    with pytest.raises(TypeError, match="copy_to_host"):
        np.asarray(buffer)


@on_stand_in(devices=2)
def test_tensors_and_streams_of_another_device_are_refused():
    imported = cuda.Semaphore.import_fd(Semaphore(timeline=False).export(), 1)
    buffer, foreign, stream = cuda.InteropBuffer(8, 1), cuda.Buffer(8, 0), cuda.Stream(1)
    assert buffer.device.index == stream.device.index == 1
    all_raise(
        doorstep.ArgumentError,
        partial(cuda.Stream.from_handle, stream.handle, 0),
        partial(cuda.Buffer, 8, 0, stream=stream),
        partial(buffer.copy_in, foreign),
        partial(buffer.copy_in, bytes(8), foreign.stream),
        partial(imported.wait, foreign.stream),
        partial(cuda.InteropBuffer, 8, 1, stream=foreign.stream),
    )


def test_closed_objects_say_so():
    buffer, imported = cuda.InteropBuffer(8), cuda.Semaphore.import_fd(Semaphore(timeline=False).export())
    stream, event, plain, of_buffer = cuda.Stream(), cuda.Event(), cuda.Buffer(8), buffer.stream
    for thing in (buffer, imported, stream, event, plain):
        thing.close()
        thing.close()
        assert thing.closed
    of_shared = buffer.export, lambda: buffer.pointer, lambda: buffer.allocated_bytes, lambda: buffer.copy_in(b"1")
    of_plain = stream.synchronize, lambda: event.done, plain.copy_to_host, lambda: plain.pointer
    all_raise(doorstep.ClosedError, *of_shared, *of_plain, lambda: imported.signal(of_buffer))


@on_stand_in(sharing=0)
def test_a_device_that_cannot_share_is_told_so_and_simulates():
    with pytest.raises(doorstep.DeviceError, match="cannot export memory"):
        cuda.InteropBuffer(8)
    with pytest.raises(doorstep.DeviceError, match="timeline"):
        import_and_keep(partial(cuda.Semaphore.import_fd, timeline=True), Semaphore(timeline=True))
    doorstep.Simulator(1, device="cuda").close()
