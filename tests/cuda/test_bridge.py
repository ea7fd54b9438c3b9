"""Tensors of other libraries on a GPU: which stream copies go to, and what strides they follow."""

import itertools
from unittest.mock import Mock

import numpy as np
import pytest
from tests.cuda import stand_in_driver as driver
from tests.cuda.on_stand_in import on_stand_in
from tests.cuda.users_memory import filled
from tests.interop.exchange_producer import Producer

from doorstep import cuda, interop
from doorstep._tensors.checks import ReadRules
from doorstep._tensors.reader import read_tensor
from doorstep.errors import ArgumentError, DeviceError

CUDA = 2


@on_stand_in(devices=2)
def test_copies_go_to_the_current_stream_of_the_tensors_device():
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


def test_any_strides_are_copied_on_a_gpu():
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
    driver.clear()
    tensor = producer.tensor(source.pointer + 8, (10, 2), (12, 1), dtype=(0, 32, 1), device=(CUDA, 0))
    interop.copy_to_pointer(tensor, target.pointer, 80)
    assert driver.report().calls.count("cuMemcpy2DAsync") == 1  # rows, in one call
    assert (target.copy_to_host("int32")[:20].reshape(10, 2) == numbers.reshape(10, 12)[:, 2:4]).all()


def test_bad_copies_on_a_gpu_begin_nothing():
    stream = cuda.Stream(0)
    producer = Producer(streams={0: stream.handle})
    buffer = filled(np.ones(12, np.float32), 0, stream)
    expanded = producer.tensor(buffer.pointer, (3, 4), (0, 1), device=(CUDA, 0))
    elsewhere = [producer.tensor(buffer.pointer, (12,), device=device) for device in ((CUDA, 5), (8, 0))]
    driver.clear()
    for copy, tensor, nbytes, error, words in (
        (interop.copy_from_pointer, expanded, 48, ArgumentError, "share memory"),
        (interop.copy_to_pointer, expanded, 40, ArgumentError, "nbytes is 40; it must be 48"),
        (interop.copy_to_pointer, elsewhere[0], 48, DeviceError, "without an exception"),
        (interop.copy_to_pointer, elsewhere[1], 48, ArgumentError, "must be on the CPU"),
    ):
        with pytest.raises(error, match=words):
            copy(tensor, buffer.pointer, nbytes)
    assert not [call for call in driver.report().calls if "cpy" in call]


@on_stand_in(devices=2)
def test_a_library_without_streams_is_told_to_order_its_work():
    """JAX and its like get the caller's stream through `__dlpack__`."""
    capsule = Mock(side_effect=BufferError("enough"))
    array = type("Array", (), {"__dlpack_device__": lambda _: (CUDA, 1), "__dlpack__": capsule})()
    for stream in (0, 7, 2**64 - 1):
        with pytest.raises(ArgumentError, match="enough"):
            read_tensor(array, ReadRules(stream=stream))
    assert [call.kwargs["stream"] for call in capsule.mock_calls] == [1, 7, -1]
