"""Tests on a real GPU; without one they are skipped with the reason. No native object may stay alive after a test."""

import gc
import sys
from collections.abc import Generator

import pytest
from tests.gpu.frameworks import need_gpu

import doorstep

HAS_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[HAS_FAILED] = report.failed
    return report


@pytest.fixture(scope="session", autouse=True)
def _gpu() -> None:
    need_gpu()


@pytest.fixture(scope="session", autouse=True)
def _kernels_are_loaded(_gpu: None) -> None:
    """Those of PyTorch that tests begin behind a long one: the driver loads a kernel's code at its first launch, and
    may wait for all work before that."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return
    torch.cuda._sleep(1)
    for dtype in (torch.float32, torch.int32):
        numbers = torch.zeros(1 << 20, dtype=dtype, device="cuda")
        numbers.fill_(7)
        numbers.copy_(numbers + 1 - 1)
        numbers.mul_(2).clone()
    torch.cuda.synchronize()


@pytest.fixture(autouse=True)
def _nothing_native_is_left_alive(request: pytest.FixtureRequest) -> Generator[None, None, None]:
    before = doorstep.live_counts()
    yield
    request.node.funcargs.clear()  # pytest keeps the values of fixtures after their teardown
    gc.collect()
    if request.node.stash[HAS_FAILED]:
        _leave_captures()
        return  # what the frames of its traceback hold is still alive
    more = {kind: count for kind, count in doorstep.live_counts().items() if count > before[kind]}
    assert more == {}


def _leave_captures() -> None:
    """Where a capture ends with an error, PyTorch stays on its stream."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.set_stream(torch.cuda.default_stream())
