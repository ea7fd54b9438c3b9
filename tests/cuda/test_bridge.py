"""Tensors of other libraries on a GPU: which stream copies go to, and what strides they follow."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in
from tests.interop.exchange_producer import Producer

from doorstep import cuda, interop
from doorstep.errors import ArgumentError, DeviceError

CUDA = 2


def filled(numbers: Any, device: int, stream: cuda.Stream) -> cuda.Buffer:
    buffer = cuda.Buffer(numbers.nbytes, device, stream=stream)
    buffer.copy_from_host(numbers)
    return buffer


@on_stand_in(devices=2)
def test_copies_go_to_the_current_stream_of_the_tensors_device() -> None:
    streams = [cuda.Stream(0), cuda.Stream(1)]
    producer = Producer(streams={i: stream.handle for i, stream in enumerate(streams)})
    numbers = np.arange(12, dtype=np.float32)
    for device in (1, 0):
        source = filled(numbers, device, streams[device])
        target = cuda.Buffer(48, device, stream=streams[device])
        tensor = producer.tensor(source.pointer, (3, 4), device=(CUDA, device))
        assert interop.describe(tensor).device == f"cuda:{device}"
        assert interop.current_stream(tensor) == streams[device].handle
        driver.clear()
        interop.copy_to_pointer(tensor, target.pointer, 48)
        calls = driver.report().calls
        assert calls.count("cuMemcpyAsync") == 1
        assert not {"cuStreamSynchronize", "cuCtxSynchronize"} & set(calls)  # it is only begun
        assert f"stream of {CUDA}:{device}" in producer.calls
        assert (target.copy_to_host("float32") == numbers).all()  # in the order of that stream
        for buffer in (source, target):
            buffer.close()


@on_stand_in()
def test_any_strides_are_copied_on_a_gpu() -> None:
    stream = cuda.Stream(0)
    producer = Producer(streams={0: stream.handle})
    numbers = np.arange(120, dtype=np.int32).reshape(2, 3, 4, 5)
    source, target = filled(numbers, 0, stream), cuda.Buffer(numbers.nbytes, 0, stream=stream)
    for axes in itertools.permutations(range(4)):
        for cut in ((), (slice(None), slice(1, None)), (slice(None, None, 2), slice(None), slice(1, 2))):
            view = numbers.transpose(axes)[cut]
            offset = view.ctypes.data - numbers.ctypes.data
            strides = tuple(stride // 4 for stride in view.strides)
            tensor = producer.tensor(source.pointer + offset, view.shape, strides, dtype=(0, 32, 1), device=(CUDA, 0))
            interop.copy_to_pointer(tensor, target.pointer, view.nbytes)
            assert (target.copy_to_host("int32")[: view.size] == view.ravel()).all()
            target.copy_from_host(np.ascontiguousarray(-view))
            interop.copy_from_pointer(tensor, target.pointer, view.nbytes)
            expected = numbers.copy()
            expected.transpose(axes)[cut] *= -1
            assert (source.copy_to_host("int32") == expected.ravel()).all()
            source.copy_from_host(numbers)
    source.close()
    target.close()


@on_stand_in()
def test_rows_are_copied_in_one_call() -> None:
    stream = cuda.Stream(0)
    producer = Producer(streams={0: stream.handle})
    numbers = np.arange(4000, dtype=np.float32)
    source, target = filled(numbers, 0, stream), cuda.Buffer(4000, 0, stream=stream)
    tensor = producer.tensor(source.pointer + 8, (100, 10), (40, 1), device=(CUDA, 0))
    driver.clear()
    interop.copy_to_pointer(tensor, target.pointer, 4000)
    assert driver.report().calls.count("cuMemcpy2DAsync") == 1
    assert (target.copy_to_host("float32").reshape(100, 10) == numbers.reshape(100, 40)[:, 2:12]).all()
    source.close()
    target.close()


@on_stand_in()
def test_bad_copies_on_a_gpu_begin_nothing() -> None:
    stream = cuda.Stream(0)
    producer = Producer(streams={0: stream.handle})
    buffer = filled(np.ones(12, np.float32), 0, stream)
    expanded = producer.tensor(buffer.pointer, (3, 4), (0, 1), device=(CUDA, 0))
    driver.clear()
    with pytest.raises(ArgumentError, match="share memory"):
        interop.copy_from_pointer(expanded, buffer.pointer, 48)
    with pytest.raises(ArgumentError, match="nbytes is 40; it must be 48"):
        interop.copy_to_pointer(expanded, buffer.pointer, 40)
    with pytest.raises(DeviceError, match="without an exception"):
        interop.copy_to_pointer(producer.tensor(buffer.pointer, (12,), device=(CUDA, 5)), buffer.pointer, 48)
    with pytest.raises(ArgumentError, match="must be on the CPU"):
        interop.copy_to_pointer(producer.tensor(buffer.pointer, (12,), device=(8, 0)), buffer.pointer, 48)
    assert not [call for call in driver.report().calls if "cpy" in call]
    buffer.close()


@on_stand_in(devices=2)
def test_a_library_without_streams_is_told_to_order_its_work() -> None:
    """JAX and its like get the caller's stream through `__dlpack__`."""
    from doorstep._tensors.checks import ReadRules
    from doorstep._tensors.reader import read_tensor

    asked: list[dict[str, Any]] = []

    class Array:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (CUDA, 1)

        def __dlpack__(self, **options: Any) -> Any:
            asked.append(options)
            raise BufferError("enough")

    for stream in (0, 7, 2**64 - 1):
        with pytest.raises(ArgumentError, match="enough"):
            read_tensor(Array(), ReadRules(stream=stream))
    assert [options["stream"] for options in asked] == [1, 7, -1]
