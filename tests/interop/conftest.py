"""The two ways in which doorstep.interop reads tensors, for tests of laws that hold for both."""

import pytest
from tests.interop.places import WAYS, take_way


@pytest.fixture(params=WAYS)
def bridge(request, monkeypatch):
    """doorstep.interop, going through the native library or through Python alone."""
    return take_way(request.param, monkeypatch)
