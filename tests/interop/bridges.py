"""The two ways in which doorstep.interop reads tensors, for tests of laws that hold for both."""

from __future__ import annotations

from types import ModuleType

import pytest

from doorstep import interop

WAYS = ("native", "python")


def take_way(way: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """doorstep.interop, going through the native library or through Python alone."""
    if way == "native":
        if interop._calls is None:
            pytest.skip("fast calls are off")
    else:
        monkeypatch.setattr(interop, "_calls", None)
        for name, function in interop.__test__.items():
            monkeypatch.setattr(interop, name, function)
    return interop


@pytest.fixture(params=WAYS)
def bridge(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return take_way(request.param, monkeypatch)
