"""Native code of others uses the C API through doorstep.capi(); tests/docs compile some with doorstep.get_include()."""

import ctypes

import pytest
from tests.cuda.stand_in_driver import FOLDER

import doorstep
from doorstep.errors import Status

CLIENT = FOLDER.parents[1] / "native" / "libcapi_client.so"  # capi_client.cpp, as test-native builds it


def test_an_extension_steps_a_simulator_of_python_and_reads_its_tensors():
    if not CLIENT.exists():
        pytest.skip(f"{CLIENT} is missing: make test-native")
    client, total = ctypes.PyDLL(str(CLIENT)), ctypes.c_int64()
    client.client_run.argtypes = (ctypes.py_object, ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p)
    assert doorstep.capi() is doorstep.capi()
    with doorstep.Simulator(3, episode_length=50) as sim:
        assert client.client_run(doorstep.capi(), sim.handle, 7, ctypes.byref(total)) == Status.OK
        assert (sim.step_count, total.value) == (7, 3 * 2 * (50 - 7))
        with pytest.raises(ValueError, match="PyCapsule_GetPointer"):  # a capsule of another name
            client.client_run(sim.rewards.__dlpack__(), sim.handle, 1, ctypes.byref(total))
        handle = sim.handle
    assert client.client_run(doorstep.capi(), handle, 1, ctypes.byref(total)) == Status.CLOSED
