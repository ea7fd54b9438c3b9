"""PyTorch's current stream is found where PyTorch uses CUDA, and PyTorch is never imported for it."""

import sys
import threading
from types import ModuleType, SimpleNamespace

from tests.refuses import refuses

from doorstep import _streams
from doorstep._native import STREAM_OWN
from doorstep._streams import CurrentStream, check_stream, check_stream_on, current_device_index


class FakeTorch(ModuleType):
    """As much of PyTorch as is asked: streams by thread and device."""

    def __init__(self, *, initialized=True, fast=True):
        super().__init__("torch")
        self.initialized = initialized
        self.streams = threading.local()
        self.cuda = SimpleNamespace(
            is_initialized=lambda: self.initialized,
            current_device=lambda: 3,
            current_stream=lambda device: SimpleNamespace(cuda_stream=self.raw(device)),
        )
        self._C = SimpleNamespace(**({"_cuda_getCurrentRawStream": self.raw} if fast else {}))

    def raw(self, device):
        return 1000 * device + int(getattr(self.streams, "number", 0))


def test_torch_that_is_not_there_or_has_not_begun_to_use_cuda_is_left_alone(monkeypatch):
    unborn = FakeTorch(initialized=False)
    for torch in (None, unborn, ModuleType("torch"), SimpleNamespace(cuda=SimpleNamespace())):  # being imported
        if torch is None:
            monkeypatch.delitem(sys.modules, "torch", raising=False)
        else:
            monkeypatch.setitem(sys.modules, "torch", torch)
        assert (CurrentStream(0)(), current_device_index()) == (STREAM_OWN, 0)
        assert sys.modules.get("torch") is torch
    monkeypatch.setitem(sys.modules, "torch", unborn)
    current = CurrentStream(2)
    assert current() == STREAM_OWN
    unborn.initialized, unborn.streams.number = True, 7
    assert (current(), current_device_index()) == (2007, 3)


def test_every_call_gives_the_stream_of_the_calling_thread_and_the_device(monkeypatch):
    for fast in (True, False):
        torch = FakeTorch(fast=fast)
        monkeypatch.setitem(sys.modules, "torch", torch)
        current, seen = CurrentStream(1), []
        for torch.streams.number in (5, 6):
            seen.append(current())
        thread = threading.Thread(target=lambda current=current, seen=seen: seen.append(current()))
        thread.start()
        thread.join()
        assert seen == [1005, 1006, 1000]


def test_streams_of_other_libraries_tell_their_handle_and_device():
    of_torch = SimpleNamespace(cuda_stream=7, device=SimpleNamespace(index=1))
    by_method, by_attribute = SimpleNamespace(__cuda_stream__=lambda: (0, 8)), SimpleNamespace(__cuda_stream__=(0, 9))
    read = [check_stream("stream", value) for value in (of_torch, by_method, by_attribute, 0)]
    assert read == [(7, 1), (8, None), (9, None), (0, None)]
    assert [check_stream_on("stream", value, 1) for value in (of_torch, 5)] == [7, 5]
    refuses(r"stream of cuda:0.*it is a stream of cuda:1", check_stream_on, "stream", of_torch, 0)
    for wrong in ("7", None, -1, True, 2**64 - 1, SimpleNamespace(__cuda_stream__=(1, 9))):
        refuses(r"^stream is", check_stream, "stream", wrong)
    # The legacy default stream is 1 in array interfaces
    assert [_streams.interface_stream(handle) for handle in (0, 1, 2, 77, None)] == [1, 1, 2, 77, None]


def test_a_simulator_on_the_cpu_never_asks_torch(run_python):
    code = """
import sys, types
class Torch(types.ModuleType):
    def __getattr__(self, name):
        raise SystemExit(f"torch.{name} was asked for")
sys.modules["torch"] = Torch("torch")
import doorstep
with doorstep.Simulator(2) as sim:
    sim.step()
    sim.reset()
    assert sim.stream is None
    sim.save(), sim.lidar.copy_to_host()
print("done")
"""
    assert run_python(code) == "done\n"
