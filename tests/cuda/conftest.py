"""Tests run on the stand-in for NVIDIA's driver, each in a process of its own, unless they take the fixture `run`."""

import pytest
from tests.cuda import on_stand_in


@pytest.fixture
def run():
    """Runs code in a process with the stand-in: a test that takes this runs in this process."""
    return on_stand_in.run


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if "run" not in pyfuncitem.fixturenames and not hasattr(pyfuncitem.obj, "__wrapped__"):
        pyfuncitem.obj = on_stand_in.on_stand_in()(pyfuncitem.obj)
