"""PyTorch's current stream is found where PyTorch uses CUDA, and PyTorch is never imported for it."""

import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.conftest import RunPython

from doorstep import _streams
from doorstep._native import STREAM_OWN
from doorstep._streams import CurrentStream, check_stream, current_device_index


class FakeTorch(ModuleType):
    """As much of PyTorch as is asked: streams by thread and device."""

    def __init__(self, *, initialized: bool = True, fast: bool = True) -> None:
        super().__init__("torch")
        self.initialized = initialized
        self.streams = threading.local()
        self.cuda = SimpleNamespace(
            is_initialized=lambda: self.initialized,
            current_device=lambda: 3,
            current_stream=lambda device: SimpleNamespace(cuda_stream=self.raw(device)),
        )
        self._C = SimpleNamespace(**({"_cuda_getCurrentRawStream": self.raw} if fast else {}))

    def raw(self, device: int) -> int:
        return 1000 * device + int(getattr(self.streams, "number", 0))


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    def put(torch: object) -> Any:
        monkeypatch.setitem(sys.modules, "torch", torch)
        return torch

    return put


def test_without_torch_there_is_no_current_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert CurrentStream(0)() == STREAM_OWN
    assert current_device_index() == 0
    assert "torch" not in sys.modules


def test_torch_that_has_not_begun_to_use_cuda_is_left_alone(install: Any) -> None:
    torch = install(FakeTorch(initialized=False))
    current = CurrentStream(2)
    assert current() == STREAM_OWN
    assert current_device_index() == 0
    torch.initialized = True
    torch.streams.number = 7
    assert current() == 2007
    assert current_device_index() == 3


@pytest.mark.parametrize("torch", [ModuleType("torch"), SimpleNamespace(cuda=SimpleNamespace())], ids=["bare", "begun"])
def test_torch_that_another_thread_is_still_importing_is_left_alone(torch: object, install: Any) -> None:
    install(torch)
    assert CurrentStream(0)() == STREAM_OWN
    assert current_device_index() == 0


@pytest.mark.parametrize("fast", [True, False])
def test_every_call_gives_the_stream_of_the_calling_thread_and_the_device(fast: bool, install: Any) -> None:
    torch = install(FakeTorch(fast=fast))
    current = CurrentStream(1)
    torch.streams.number = 5
    assert current() == 1005
    torch.streams.number = 6
    assert current() == 1006
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(current()))
    thread.start()
    thread.join()
    assert seen == [1000]


def test_streams_of_other_libraries_tell_their_handle_and_device() -> None:
    of_torch = SimpleNamespace(cuda_stream=7, device=SimpleNamespace(index=1))
    by_method = SimpleNamespace(__cuda_stream__=lambda: (0, 8))
    by_attribute = SimpleNamespace(__cuda_stream__=(0, 9))
    assert check_stream("stream", of_torch) == (7, 1)
    assert check_stream("stream", by_method) == (8, None)
    assert check_stream("stream", by_attribute) == (9, None)
    assert check_stream("stream", 0) == (0, None)


def test_the_legacy_default_stream_is_one_in_array_interfaces() -> None:
    assert [_streams.interface_stream(handle) for handle in (0, 1, 2, 77, None)] == [1, 1, 2, 77, None]


def test_a_simulator_on_the_cpu_never_asks_torch(run_python: RunPython) -> None:
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
