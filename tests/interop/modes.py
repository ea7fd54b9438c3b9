"""The two ways in which Python calls the library, for tests of processes that are told which to take."""

import os

import pytest

SWITCH = "DOORSTEP_FAST_CALLS"
both_modes = pytest.mark.parametrize("mode", ["1", "0"], ids=["fast", "ctypes"])


def environment(mode):
    """This process's environment, with fast calls on ("1") or off ("0")."""
    return {**os.environ, SWITCH: mode}
