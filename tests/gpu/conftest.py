"""Tests on a real GPU; without one they are skipped with the reason. No native object may stay alive after a test."""

import gc
from collections.abc import Generator

import pytest

import doorstep
from doorstep import cuda


@pytest.fixture(scope="session", autouse=True)
def _gpu() -> None:
    try:
        cuda.Device()
    except doorstep.DeviceError as reason:
        pytest.skip(f"no GPU: {reason}")


@pytest.fixture(autouse=True)
def _nothing_native_is_left_alive(request: pytest.FixtureRequest) -> Generator[None, None, None]:
    before = doorstep.live_counts()
    yield
    request.node.funcargs.clear()  # pytest keeps the values of fixtures after their teardown
    gc.collect()
    more = {kind: count for kind, count in doorstep.live_counts().items() if count > before[kind]}
    assert more == {}
