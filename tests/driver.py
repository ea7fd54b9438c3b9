"""Whether this machine has an NVIDIA driver: some tests need one, others test its absence."""

import ctypes

import pytest


def driver_is_there():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


no_driver = pytest.mark.skipif(driver_is_there(), reason="this machine has an NVIDIA driver")
