"""Memory and semaphores shared with another API: the same bytes on both sides, and every descriptor closed once."""

import ctypes
import gc
import importlib.util
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in, run
from tests.cuda.other_api import Memory, Semaphore, is_open
from tests.cuda.test_failures import GIVING_BACK, calls_of, check_failing

import doorstep
from doorstep import cuda

GRANULARITY = 2**21  # of the stand-in's exported memory
# What keeps something when it fails, beside what gives back: it could no longer be waited for.
KEPT_AFTER_FAILURE = {
    "cuDestroyExternalMemory",
    "cuDestroyExternalSemaphore",
    "cuEventQuery",
    "cuEventRecord",
    "cuMemAddressFree",
    "cuMemRelease",
    "cuMemUnmap",
    "cuStreamQuery",
}
PATIENCE = 3.0  # seconds that something waits for its work before it is leaked
SHARING_FUNCTIONS: dict[str, Callable[[], object]] = {
    "cuMemCreate": lambda: cuda.InteropBuffer(1),
    "cuMemMap": lambda: cuda.InteropBuffer(1),
    "cuMemExportToShareableHandle": lambda: cuda.InteropBuffer(1).export(),
    "cuImportExternalMemory": lambda: import_and_keep(lambda fd: cuda.InteropBuffer.import_fd(fd, 64), Memory(64)),
    "cuImportExternalSemaphore": lambda: import_and_keep(cuda.Semaphore.import_fd, Semaphore(timeline=False)),
}


class OnDevice(NamedTuple):
    """A tensor of some library: memory of a buffer, with strides."""

    buffer: cuda.Buffer
    array: npt.NDArray[Any]  # of the host, over bytes that are those of the buffer

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        base = self.array.base if self.array.base is not None else self.array
        offset = self.array.ctypes.data - base.ctypes.data
        return {
            "version": 3,
            "typestr": self.array.dtype.str,
            "shape": self.array.shape,
            "strides": self.array.strides,
            "data": (self.buffer.pointer + offset, False),
            "stream": self.buffer.stream.handle,
        }


def import_and_keep(import_fd: Callable[[int], Any], other: Memory | Semaphore) -> None:
    """A failing import, after which the descriptor is still the caller's."""
    fd = other.export()
    other.close()
    try:
        import_fd(fd)
    finally:
        assert is_open(fd)
        os.close(fd)


def on_device(array: npt.NDArray[Any], view: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> OnDevice:
    """A view of an array's twin on the device."""
    buffer = cuda.Buffer(array.nbytes)
    buffer.copy_from_host(array)
    return OnDevice(buffer, view(array))


def other_side(buffer: cuda.InteropBuffer) -> Memory:
    return Memory.importing(buffer.export(), buffer.allocated_bytes)


# ---- The same bytes on both sides


@on_stand_in()
def test_what_is_copied_in_is_seen_on_the_other_side_once_the_stream_has_done_it() -> None:
    buffer = cuda.InteropBuffer(1000)
    assert (buffer.nbytes, buffer.allocated_bytes) == (1000, GRANULARITY)
    other = other_side(buffer)
    source = cuda.Buffer(1000)
    source.copy_from_host(np.arange(1000, dtype=np.uint8))
    buffer.copy_in(source)
    assert not (other.array[:1000] == np.arange(1000, dtype=np.uint8)).all()
    buffer.stream.synchronize()
    assert (other.array[:1000] == np.arange(1000, dtype=np.uint8)).all()
    other.close()


@on_stand_in()
def test_what_the_other_side_writes_is_copied_out() -> None:
    buffer = cuda.InteropBuffer(80)
    other = other_side(buffer)
    other.array[:80] = np.arange(10, dtype=np.int64).view(np.uint8)
    seen = np.zeros((2, 5), np.int64)
    buffer.copy_out(seen)
    assert (seen == np.arange(10).reshape(2, 5)).all()
    assert (buffer.copy_to_host(np.int64) == np.arange(10)).all()
    other.close()


@on_stand_in()
def test_the_bytes_live_as_long_as_one_side_has_them() -> None:
    buffer = cuda.InteropBuffer(8)
    other = other_side(buffer)
    buffer.copy_in(np.array([77]))
    buffer.close()
    assert other.array[:8].view(np.int64)[0] == 77
    other.close()
    memory = Memory(64)
    imported = cuda.InteropBuffer.import_fd(memory.export(), 64)
    memory.close()
    imported.copy_in(np.array([78]))
    assert imported.copy_to_host(np.int64)[0] == 78


@pytest.mark.parametrize("dedicated", [False, True])
@on_stand_in()
def test_imported_memory_is_the_other_sides(dedicated: bool) -> None:
    memory = Memory(4096, dedicated=dedicated)
    memory.array[:4] = [1, 2, 3, 4]
    buffer = cuda.InteropBuffer.import_fd(memory.export(), 4096, dedicated=dedicated)
    assert (buffer.nbytes, buffer.allocated_bytes) == (4096, 4096)
    assert buffer.copy_to_host()[:4].tolist() == [1, 2, 3, 4]
    buffer.copy_in(np.full(4, 9, np.uint8), offset=2)
    assert memory.array[:7].tolist() == [1, 2, 9, 9, 9, 9, 0]
    memory.close()


@on_stand_in()
def test_a_simulators_tensors_go_in_and_out_in_the_order_of_its_steps() -> None:
    with doorstep.Simulator(16, device="cuda", seed=3) as sim, doorstep.Simulator(16, seed=3) as twin:
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
        twin.actions.to_numpy()[:] = actions
        twin.step()
        assert sim.hash() == twin.hash()
        other.close()


VIEWS: dict[str, Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = {
    "all": lambda array: array,
    "rows with gaps": lambda array: array[:, :, 2:5],
    "every other": lambda array: array[:, ::2],
    "a column": lambda array: array[:, 1, 3],
    "transposed": lambda array: array.transpose(2, 0, 1),
    "blocks with gaps": lambda array: array[1:3, 1:3, 1:3],
    "one": lambda array: array[1, 2, 3, ...],
    "none": lambda array: array[:0],
    "dimensions of one": lambda array: array[1:2, :, None, 1:2],
}


@pytest.mark.parametrize("on_host", [False, True])
@pytest.mark.parametrize("view", VIEWS)
@on_stand_in()
def test_tensors_with_gaps_are_copied_element_by_element(view: str, on_host: bool) -> None:
    array = np.arange(4 * 5 * 6, dtype=np.int16).reshape(4, 5, 6)
    expected = VIEWS[view](array).copy()
    buffer = cuda.InteropBuffer(array.nbytes + 6)
    tensor = on_device(array, VIEWS[view])
    buffer.copy_in(tensor.array if on_host else tensor, offset=6)
    packed = buffer.copy_to_host(np.int16)[3 : 3 + expected.size]
    assert (packed == expected.reshape(-1)).all()

    buffer.copy_in(-expected, offset=6)
    buffer.copy_out(tensor.array if on_host else tensor, offset=6)
    changed = array if on_host else tensor.buffer.copy_to_host(np.int16).reshape(array.shape)
    rest = np.arange(4 * 5 * 6, dtype=np.int16).reshape(4, 5, 6)
    VIEWS[view](rest)[...] = -expected
    assert (changed == rest).all()


@on_stand_in()
def test_a_broadcast_tensor_is_copied_in_and_never_out() -> None:
    row = cuda.Buffer(24)
    row.copy_from_host(np.arange(6, dtype=np.int32))
    buffer = cuda.InteropBuffer(72)
    buffer.copy_in(BroadcastRows(row))
    assert (buffer.copy_to_host(np.int32).reshape(3, 6) == np.arange(6)).all()
    with pytest.raises(doorstep.ArgumentError, match="overlap"):
        buffer.copy_out(BroadcastRows(row))


class BroadcastRows:
    """Three rows that are one."""

    def __init__(self, buffer: cuda.Buffer) -> None:
        self.__cuda_array_interface__ = {
            "version": 3,
            "typestr": "<i4",
            "shape": (3, 6),
            "strides": (0, 4),
            "data": (buffer.pointer, False),
            "stream": buffer.stream.handle,
        }


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@on_stand_in()
def test_tensors_of_pytorch_go_in_and_out_whatever_their_gradient() -> None:
    import torch

    weights = torch.arange(12.0).reshape(3, 4).requires_grad_()
    buffer = cuda.InteropBuffer(48)
    buffer.copy_in(weights.T)
    assert (buffer.copy_to_host(np.float32) == weights.detach().numpy().T.reshape(-1)).all()
    halves = torch.zeros(2, 2, dtype=torch.bfloat16)
    buffer.copy_in(torch.tensor([[1.5, 2], [3, -4]], dtype=torch.bfloat16))
    buffer.copy_out(halves)
    assert halves.tolist() == [[1.5, 2], [3, -4]]


@on_stand_in()
def test_rows_are_copied_between_pitches() -> None:
    stream = cuda.Stream()
    image, texture = cuda.Buffer(4 * 6, stream=stream), cuda.Buffer(4 * 16, stream=stream)
    image.copy_from_host(np.arange(24, dtype=np.uint8))
    texture.copy_from_host(np.zeros(64, np.uint8))
    stream.copy_rows(texture.pointer, 16, image.pointer, 6, 6, 4)
    expected = np.zeros((4, 16), np.uint8)
    expected[:, :6] = np.arange(24).reshape(4, 6)
    assert (texture.copy_to_host().reshape(4, 16) == expected).all()
    with pytest.raises(doorstep.ArgumentError, match="source_pitch"):
        stream.copy_rows(texture.pointer, 16, image.pointer, 5, 6, 4)
    stream.copy_rows(texture.pointer, 16, image.pointer, 6, 6, 0)


# ---- Streams


@on_stand_in()
def test_a_copy_waits_for_the_tensors_stream_and_the_buffers_stream_for_the_copy() -> None:
    elsewhere = cuda.Stream()
    tensor, buffer = cuda.Buffer(800), cuda.InteropBuffer(800)
    tensor.copy_from_host(np.arange(100))
    middle = cuda.Buffer(800, stream=tensor.stream)
    tensor.stream.copy(middle.pointer, tensor.pointer, 800)
    buffer.copy_in(middle, elsewhere)
    assert (buffer.copy_to_host(np.int64) == np.arange(100)).all()


@on_stand_in()
def test_a_copy_is_recorded_with_what_else_is_on_the_stream() -> None:
    stream = cuda.Stream()
    source, buffer = cuda.Buffer(8, stream=stream), cuda.InteropBuffer(8, stream=stream)
    with driver.users_context(), driver.RecordedGraph(stream.handle) as graph:
        buffer.copy_in(source)
    for value in (5, 6):
        source.copy_from_host(np.array([value]))
        graph.launch()
        assert buffer.copy_to_host(np.int64)[0] == value
    graph.close()


@on_stand_in()
def test_a_copy_of_the_hosts_memory_is_refused_while_recording_which_goes_on() -> None:
    stream = cuda.Stream()
    source, buffer = cuda.Buffer(8, stream=stream), cuda.InteropBuffer(8, stream=stream)
    with driver.users_context(), driver.RecordedGraph(stream.handle) as graph:
        for copy in (buffer.copy_in, buffer.copy_out):
            with pytest.raises(doorstep.ArgumentError, match="being captured") as caught:
                copy(np.zeros(1, np.int64))
            assert caught.value.argument == "stream"
        buffer.copy_in(source)
    source.copy_from_host(np.array([5]))
    graph.launch()
    assert buffer.copy_to_host(np.int64)[0] == 5
    graph.close()


@on_stand_in()
def test_a_copy_of_a_simulators_tensor_is_recorded_on_its_stream() -> None:
    with cuda_simulator_on(cuda.Stream()) as (sim, stream), doorstep.Simulator(4, seed=3) as twin:
        buffer = cuda.InteropBuffer(sim.self_observations.nbytes, stream=stream)
        sim.step()
        with driver.users_context(), driver.RecordedGraph(stream.handle) as graph:
            buffer.copy_in(sim.self_observations, stream)
        for _ in range(2):
            sim.step()
            graph.launch()
        for _ in range(3):
            twin.step()
        seen = buffer.copy_to_host(np.float32).reshape(4, 2, 8)
        assert (seen == twin.self_observations.to_numpy()).all()
        graph.close()


@contextmanager
def cuda_simulator_on(stream: cuda.Stream) -> Iterator[tuple[doorstep.Simulator, cuda.Stream]]:
    with doorstep.Simulator(4, device="cuda", seed=3, stream=stream) as sim:
        yield sim, stream


@on_stand_in()
def test_what_a_simulator_writes_is_copied_in_and_never_out() -> None:
    with doorstep.Simulator(4, device="cuda") as sim:
        buffer = cuda.InteropBuffer(sim.rewards.nbytes)
        buffer.copy_in(sim.rewards)
        with pytest.raises(doorstep.ArgumentError, match="read-only"):
            buffer.copy_out(sim.rewards)


@on_stand_in()
def test_a_buffer_of_python_is_copied_in_and_out() -> None:
    buffer, target = cuda.InteropBuffer(4), bytearray(4)
    buffer.copy_in(b"\x01\x02\x03\x04")
    buffer.copy_out(target)
    assert target == b"\x01\x02\x03\x04"
    with pytest.raises(doorstep.ArgumentError, match="read-only"):
        buffer.copy_out(b"\x00\x00\x00\x00")


@on_stand_in()
def test_a_flag_of_numpy_says_whether_a_semaphore_is_a_timeline() -> None:
    for timeline in (True, False):
        other = Semaphore(timeline=timeline)
        semaphore = cuda.Semaphore.import_fd(other.export(), timeline=np.bool_(timeline))  # type: ignore[arg-type]
        assert semaphore.is_timeline is timeline
        semaphore.close()
        other.close()


@on_stand_in()
def test_closing_waits_for_the_copies_on_every_stream() -> None:
    elsewhere = cuda.Stream()
    source, buffer = cuda.Buffer(8), cuda.InteropBuffer(8)
    source.copy_from_host(np.array([5]))
    other = other_side(buffer)
    buffer.copy_in(source, elsewhere)
    buffer.close()
    assert other.array[:8].view(np.int64)[0] == 5
    other.close()


# ---- Semaphores


@on_stand_in()
def test_a_stream_waits_until_the_other_side_signals() -> None:
    semaphore, memory = Semaphore(timeline=True), Memory(8)
    imported = cuda.Semaphore.import_fd(semaphore.export(), timeline=True)
    assert imported.is_timeline
    buffer = cuda.InteropBuffer.import_fd(memory.export(), 8)
    stream = buffer.stream
    imported.wait(stream, 3)
    seen = cuda.Buffer(8, stream=stream)
    stream.copy(seen.pointer, buffer.pointer, 8)
    imported.signal(stream, 4)

    def render() -> None:
        time.sleep(0.02)
        memory.array[0] = 42
        semaphore.signal(2)
        assert not stream.done
        semaphore.signal(3)

    thread = threading.Thread(target=render)
    thread.start()
    stream.synchronize()
    thread.join()
    assert seen.copy_to_host()[0] == 42
    assert semaphore.value == 4
    for other in (semaphore, memory):
        other.close()


@on_stand_in()
def test_waiting_for_a_simulator_ends_while_others_go_on_stepping() -> None:
    semaphore = Semaphore(timeline=True)
    imported = cuda.Semaphore.import_fd(semaphore.export(), timeline=True)
    stream = cuda.Stream()
    with doorstep.Simulator(4, device="cuda", stream=stream) as sim:
        imported.wait(stream, 1)
        sim.step()

        def go_on() -> None:
            time.sleep(0.12)  # longer than a slice of waiting
            imported.wait(stream, 2)
            sim.step()
            semaphore.signal(1)

        thread = threading.Thread(target=go_on)
        thread.start()
        sim.wait()
        assert semaphore.value == 1
        assert not stream.done
        thread.join()
        semaphore.signal(2)
        sim.wait()
    semaphore.close()


@on_stand_in()
def test_a_binary_semaphore_ends_one_wait_per_signal() -> None:
    semaphore = Semaphore(timeline=False)
    imported = cuda.Semaphore.import_fd(semaphore.export())
    assert not imported.is_timeline
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
    semaphore.close()


@on_stand_in()
def test_one_stream_may_signal_what_another_waits_for() -> None:
    semaphore = Semaphore(timeline=True)
    imported = cuda.Semaphore.import_fd(semaphore.export(), timeline=True)
    waiting, signalling = cuda.Stream(), cuda.Stream()
    imported.wait(waiting, 1)
    imported.signal(signalling, 1)
    end = cuda.Event()
    end.record(waiting)
    assert end.wait(5.0)
    waiting.synchronize()
    semaphore.close()


@on_stand_in()
def test_a_semaphore_ends_after_its_work() -> None:
    semaphore = Semaphore(timeline=True)
    imported = cuda.Semaphore.import_fd(semaphore.export(), timeline=True)
    stream = cuda.Stream()
    imported.signal(stream, 7)
    imported.close()
    assert semaphore.value == 7
    assert "external_semaphores" not in driver.report().live
    semaphore.close()


@pytest.mark.slow
@on_stand_in()
def test_what_waits_for_a_signal_that_never_comes_is_leaked_and_the_process_goes_on() -> None:
    semaphore = Semaphore(timeline=True)
    imported = cuda.Semaphore.import_fd(semaphore.export(), timeline=True)
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
    semaphore.close()


# ---- Descriptors


@on_stand_in()
def test_an_imported_descriptor_is_closed_and_an_exported_one_is_the_callers() -> None:
    memory, semaphore = Memory(64), Semaphore(timeline=False)
    for other, import_fd in (
        (memory, lambda fd: cuda.InteropBuffer.import_fd(fd, 64)),
        (semaphore, cuda.Semaphore.import_fd),
    ):
        fd = other.export()
        imported = import_fd(fd)
        assert not is_open(fd)
        imported.close()
        other.close()
    buffer = cuda.InteropBuffer(1)
    first, second = buffer.export(), buffer.export()
    assert first != second
    assert not os.get_inheritable(first)
    assert driver.report().live["file_descriptors"] == 2
    buffer.close()
    os.close(first)
    os.close(second)


@pytest.mark.parametrize("failing", ["cuImportExternalMemory", "cuExternalMemoryGetMappedBuffer"])
@on_stand_in()
def test_a_descriptor_that_was_not_imported_stays_open(failing: str) -> None:
    driver.fail(failing, 1, driver.UNKNOWN)
    with pytest.raises(doorstep.DeviceError, match=failing):
        import_and_keep(lambda fd: cuda.InteropBuffer.import_fd(fd, 64), Memory(64))
    assert "external_memories" not in driver.report().live


@on_stand_in()
def test_what_is_not_such_memory_or_semaphore_is_an_argument_error() -> None:
    mistakes: list[tuple[Callable[[int], Any], Memory | Semaphore]] = [
        (lambda fd: cuda.InteropBuffer.import_fd(fd, 65), Memory(64)),
        (lambda fd: cuda.InteropBuffer.import_fd(fd, 64, dedicated=True), Memory(64)),
        (lambda fd: cuda.InteropBuffer.import_fd(fd, 64), Memory(64, dedicated=True)),
        (lambda fd: cuda.Semaphore.import_fd(fd), Semaphore(timeline=True)),
        (lambda fd: cuda.Semaphore.import_fd(fd, timeline=True), Semaphore(timeline=False)),
        (lambda fd: cuda.Semaphore.import_fd(fd), Memory(64)),
    ]
    for import_fd, other in mistakes:
        with pytest.raises(doorstep.ArgumentError) as caught:
            import_and_keep(import_fd, other)
        assert caught.value.argument == "fd"
    for import_fd in (lambda fd: cuda.InteropBuffer.import_fd(fd, 64), cuda.Semaphore.import_fd):
        with pytest.raises(doorstep.ArgumentError, match="1000"):
            import_fd(1000)
        with pytest.raises(doorstep.ArgumentError, match="fd"):
            import_fd(-1)


# ---- Refusals and failures


@on_stand_in()
def test_copies_that_cannot_be_are_argument_errors() -> None:
    buffer = cuda.InteropBuffer(64)
    read_only = np.zeros(8, np.uint8)
    read_only.flags.writeable = False
    for copy in (
        lambda: buffer.copy_in(np.zeros(65, np.uint8)),
        lambda: buffer.copy_in(np.zeros(8, np.uint8), offset=57),
        lambda: buffer.copy_in(np.zeros(8, np.uint8), offset=-1),
        lambda: buffer.copy_in([1, 2, 3]),
        lambda: buffer.copy_in(None),
        lambda: buffer.copy_out(np.zeros(65, np.uint8)),
        lambda: buffer.copy_out(read_only),
        lambda: buffer.copy_in(np.zeros(8, np.uint8), "stream"),
        lambda: cuda.InteropBuffer(0),
        lambda: cuda.InteropBuffer.import_fd(0, 0),
    ):
        with pytest.raises(doorstep.ArgumentError):
            copy()
    memory = Memory(64)
    imported = cuda.InteropBuffer.import_fd(memory.export(), 64)
    memory.close()
    with pytest.raises(doorstep.ArgumentError, match="exported memory"):
        imported.export()
    with pytest.raises(TypeError, match="import_fd"):
        cuda.Semaphore()
    with pytest.raises(TypeError, match="copy_to_host"):
        np.asarray(buffer)


@on_stand_in(devices=2)
def test_tensors_and_streams_of_another_device_are_refused() -> None:
    semaphore = Semaphore(timeline=False)
    imported = cuda.Semaphore.import_fd(semaphore.export(), 1)
    semaphore.close()
    buffer, foreign = cuda.InteropBuffer(8, 1), cuda.Buffer(8, 0)
    assert buffer.device.index == 1
    for call in (
        lambda: buffer.copy_in(foreign),
        lambda: buffer.copy_in(np.zeros(8, np.uint8), foreign.stream),
        lambda: imported.wait(foreign.stream),
        lambda: cuda.InteropBuffer(8, 1, stream=foreign.stream),
    ):
        with pytest.raises(doorstep.ArgumentError):
            call()


@on_stand_in()
def test_closed_objects_say_so() -> None:
    semaphore = Semaphore(timeline=False)
    buffer, imported = cuda.InteropBuffer(8), cuda.Semaphore.import_fd(semaphore.export())
    semaphore.close()
    stream = buffer.stream
    for thing in (buffer, imported):
        thing.close()
        thing.close()
        assert thing.closed
    for call in (
        buffer.export,
        lambda: buffer.pointer,
        lambda: buffer.allocated_bytes,
        lambda: buffer.copy_in(np.zeros(8, np.uint8)),
        lambda: imported.signal(stream),
    ):
        with pytest.raises(doorstep.ClosedError):
            call()


@pytest.mark.parametrize("function", SHARING_FUNCTIONS)
def test_a_driver_without_a_function_is_told_when_it_is_used(function: str) -> None:
    run([f"from {__name__} import use_missing; use_missing({function!r})"], {"missing": function})


def use_missing(function: str) -> None:
    doorstep.Simulator(1, device="cuda").close()
    with pytest.raises(doorstep.DriverFunctionError, match=function) as caught:
        SHARING_FUNCTIONS[function]()
    assert "introduced it, this driver supports CUDA" in str(caught.value)
    assert caught.value.hint


@on_stand_in(sharing=0)
def test_a_device_that_cannot_share_is_told_so_and_simulates() -> None:
    with pytest.raises(doorstep.DeviceError, match="cannot export memory"):
        cuda.InteropBuffer(8)
    with pytest.raises(doorstep.DeviceError, match="timeline"):
        import_and_keep(lambda fd: cuda.Semaphore.import_fd(fd, timeline=True), Semaphore(timeline=True))
    doorstep.Simulator(1, device="cuda").close()


@on_stand_in()
def test_memory_that_the_device_lacks_is_told_with_amounts() -> None:
    with pytest.raises(doorstep.OutOfMemoryError, match=f"requested {2**40} bytes"):
        cuda.InteropBuffer(2**40)
    assert driver.report().live == {}


@on_stand_in()
def test_failing_call_is_typed_and_leaves_nothing_and_no_descriptor() -> None:
    memory, semaphore = Memory(4096), Semaphore(timeline=True)
    tensor = OnDevice(cuda.Buffer(64), np.zeros(64, np.uint8).reshape(8, 8)[:, :4])

    def share() -> None:
        exports, callers = cuda.InteropBuffer(64), [semaphore.export(), memory.export()]
        try:
            imports = cuda.InteropBuffer.import_fd(callers[-1], 4096)
            callers.pop()
            order = cuda.Semaphore.import_fd(callers[-1], timeline=True)
            callers.pop()
        finally:
            for descriptor in callers:
                os.close(descriptor)
        stream = exports.stream
        exports.copy_in(tensor)
        order.signal(stream, semaphore.value + 1)
        order.wait(imports.stream, semaphore.value + 1)
        imports.copy_out(tensor)
        os.close(exports.export())
        stream.synchronize()
        for thing in (order, imports, exports):
            thing.close()

    share()
    calls = calls_of(share)
    open_before = set(os.listdir("/proc/self/fd"))
    assert len(calls) > 60
    for nth in range(len(calls)):
        before = driver.report().live
        failed = check_failing(nth, calls, share)
        if failed in GIVING_BACK | KEPT_AFTER_FAILURE:
            driver.objects_stay()
            open_before = set(os.listdir("/proc/self/fd"))
        else:
            assert driver.report().live == before, (nth, failed)
        assert set(os.listdir("/proc/self/fd")) <= open_before, (nth, failed)
    memory.close()
    semaphore.close()


# ---- What the stand-in watches over


class Program:
    """A user's program with a stream, a mapped export and an import."""

    def __init__(self) -> None:
        driver.call("cuInit", 0)
        context = driver.call_for_value("cuDevicePrimaryCtxRetain", 0)
        driver.call("cuCtxPushCurrent_v2", ctypes.c_uint64(context))
        self.stream = driver.call_for_value("cuStreamCreate", driver.NON_BLOCKING)
        self.exported = cuda.InteropBuffer(8)
        self.memory, self.semaphore = Memory(64), Semaphore(timeline=True)
        self.descriptor = self.memory.export()
        self.imported = cuda.InteropBuffer.import_fd(self.descriptor, 64)

    def fill(self, pointer: int) -> None:
        arguments = ctypes.c_uint64(pointer), 7, ctypes.c_uint64(8), ctypes.c_uint64(self.stream)
        driver.call("cuMemsetD8Async", *arguments)


def unmap_in_use(program: Program) -> None:
    program.fill(program.exported.pointer)
    program.exported.close()


def free_import_in_use(program: Program) -> None:
    program.fill(program.imported.pointer)
    program.imported.close()


def close_the_drivers_descriptor(program: Program) -> None:
    wanted = os.fstat(program.memory._descriptor).st_ino
    for number in map(int, os.listdir("/proc/self/fd")):
        if is_open(number) and number != program.memory._descriptor and os.fstat(number).st_ino == wanted:
            os.close(number)
    program.imported.close()


def set_a_timeline_back(program: Program) -> None:
    semaphore = cuda.Semaphore.import_fd(program.semaphore.export(), timeline=True)
    semaphore.signal(program.stream, 5)
    semaphore.signal(program.stream, 5)
    driver.synchronize(program.stream)


def signal_a_binary_semaphore_twice(program: Program) -> None:
    semaphore = cuda.Semaphore.import_fd(Semaphore(timeline=False).export())
    semaphore.signal(program.stream)
    semaphore.signal(program.stream)
    driver.synchronize(program.stream)


def destroy_a_semaphore_in_use(program: Program) -> None:
    semaphore = cuda.Semaphore.import_fd(program.semaphore.export(), timeline=True)
    semaphore.wait(program.stream, 1)
    raw = semaphore._resource.info().raw
    assert driver.library().cuDestroyExternalSemaphore(ctypes.c_uint64(raw)) != 0
    program.semaphore.signal(1)


def release_what_is_mapped(program: Program) -> None:
    nbytes = ctypes.c_size_t(program.exported.allocated_bytes)
    assert driver.library().cuMemAddressFree(ctypes.c_uint64(program.exported.pointer), nbytes) != 0


VIOLATIONS: dict[Callable[[Program], None], str] = {
    unmap_in_use: "still uses",
    free_import_in_use: "still uses",
    close_the_drivers_descriptor: "somebody else has closed",
    set_a_timeline_back: "at 5 is set to 5",
    signal_a_binary_semaphore_twice: "at 1 is set to 0",
    destroy_a_semaphore_in_use: "work with it has not ended",
    release_what_is_mapped: "memory is mapped there",
}
BY_NAME = {mistake.__name__: mistake for mistake in VIOLATIONS}


@pytest.mark.parametrize("mistake", BY_NAME)
@on_stand_in()
def test_mistake_is_a_violation(mistake: str) -> None:
    program = Program()
    BY_NAME[mistake](program)
    assert VIOLATIONS[BY_NAME[mistake]] in driver.report().violations[0]
    driver.expect_violations()


@on_stand_in()
def test_the_same_gpu_is_found_by_its_uuid() -> None:
    assert cuda.Device().uuid == UUID("00112233-4455-6677-8899-aabbccddee00")
