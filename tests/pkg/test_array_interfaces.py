"""Arrays and streams of other libraries on a GPU, which is not touched: each is read whole, and PyTorch is not imported
for it. What is refused is in tests/interop/test_set.py."""

import sys
from types import ModuleType, SimpleNamespace

from tests.refuses import raising

import doorstep
from doorstep import _streams
from doorstep._native import STREAM_OWN
from doorstep._streams import CurrentStream, check_stream, current_device_index
from doorstep._tensors.array_interfaces import read_cuda_interface
from doorstep._tensors.checks import ReadRules


def array(device=0, **changed):
    whole = {"version": 3, "typestr": "<i4", "shape": (2, 3), "strides": None, "data": (64, False), "stream": None}
    return SimpleNamespace(__cuda_array_interface__={**whole, **changed}, device=device)


def test_device_strides_and_stream_are_what_the_object_tells():
    for device, index in (
        *((0, 0), (1, 1), ("cuda", 0), ("cuda:1", 1)),
        *((SimpleNamespace(index=2), 2), (SimpleNamespace(id=3), 3)),
    ):
        assert read_cuda_interface(array(device), ReadRules(written=True)).device_index == index
    for strides, apart, contiguous in ((None, (12, 4), True), ((12, 4), (12, 4), True), ((24, 8), (24, 8), False)):
        found = read_cuda_interface(array(strides=strides), ReadRules())
        assert (found.pointer, found.strides, found.contiguous) == (64, apart, contiguous)
    assert [read_cuda_interface(array(stream=s), ReadRules()).stream for s in (None, 1, 77)] == [None, 1, 77]
    assert read_cuda_interface(array(data=(64, True)), ReadRules()).read_only


# ---- Streams


class FakeTorch(ModuleType):
    """As much of PyTorch as is asked."""

    def __init__(self, **fast):
        super().__init__("torch")
        self.initialized, self._C = False, SimpleNamespace(**fast)
        self.cuda = SimpleNamespace(
            is_initialized=lambda: self.initialized,
            current_device=lambda: 3,
            current_stream=lambda device: SimpleNamespace(cuda_stream=stream_of(device)),
        )


def stream_of(device):
    return 1000 * device + 7


def test_torch_that_is_not_there_or_has_not_begun_to_use_cuda_is_left_alone(monkeypatch):
    for torch in (None, FakeTorch(), ModuleType("torch"), SimpleNamespace(cuda=SimpleNamespace())):  # being imported
        if torch is None:
            monkeypatch.delitem(sys.modules, "torch", raising=False)
        else:
            monkeypatch.setitem(sys.modules, "torch", torch)
        assert (CurrentStream(0)(), current_device_index()) == (STREAM_OWN, 0)
        assert sys.modules.get("torch") is torch
    for torch in (FakeTorch(), FakeTorch(_cuda_getCurrentRawStream=stream_of)):  # older, and newer
        monkeypatch.setitem(sys.modules, "torch", torch)
        current = CurrentStream(2)
        assert current() == STREAM_OWN
        torch.initialized = True
        assert (current(), current_device_index()) == (2007, 3)


def test_a_simulator_on_the_cpu_never_asks_torch(monkeypatch):
    torch = ModuleType("torch")
    torch.__getattr__ = raising(AssertionError, "it was asked")
    monkeypatch.setitem(sys.modules, "torch", torch)
    with doorstep.Simulator(2, num_threads=1) as sim:
        sim.step()
        sim.reset()
        assert (sim.stream, sim.lidar.copy_to_host().shape, len(sim.save()) > 0) == (None, sim.lidar.shape, True)


def test_streams_of_other_libraries_tell_their_handle_and_device():
    of_torch = SimpleNamespace(cuda_stream=7, device=SimpleNamespace(index=1))
    by_method, by_attribute = SimpleNamespace(__cuda_stream__=lambda: (0, 8)), SimpleNamespace(__cuda_stream__=(0, 9))
    read = [check_stream("stream", value) for value in (of_torch, by_method, by_attribute, 0)]
    assert read == [(7, 1), (8, None), (9, None), (0, None)]
    # The legacy default stream is 1 in array interfaces
    assert [_streams.interface_stream(handle) for handle in (0, 1, 2, 77, None)] == [1, 1, 2, 77, None]
