"""Native code of others uses the C API through doorstep.get_include() and doorstep.capi()."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from tests.cuda.stand_in_driver import FOLDER, PROJECT

import doorstep
from doorstep.errors import Status

CLIENT = FOLDER.parents[1] / "native" / "libcapi_client.so"  # capi_client.cpp, as test-native builds it
HEADERS = PROJECT / "native" / "include"


@pytest.fixture(scope="module")
def client() -> ctypes.PyDLL:
    if not CLIENT.exists():
        pytest.skip(f"{CLIENT} is missing: make test-native")
    library = ctypes.PyDLL(str(CLIENT))
    library.client_run.argtypes = (ctypes.py_object, ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p)
    return library


def test_an_extension_steps_a_simulator_of_python_and_reads_its_tensors(client: ctypes.PyDLL) -> None:
    total = ctypes.c_int64()
    with doorstep.Simulator(3, episode_length=50) as sim:
        assert client.client_run(doorstep.capi(), sim.handle, 7, ctypes.byref(total)) == Status.OK
        assert sim.step_count == 7
    assert total.value == 3 * 2 * (50 - 7)


def test_an_extension_gets_a_status_from_a_closed_simulator(client: ctypes.PyDLL) -> None:
    sim = doorstep.Simulator(1)
    handle = sim.handle
    sim.close()
    assert client.client_run(doorstep.capi(), handle, 1, ctypes.byref(ctypes.c_int64())) == Status.CLOSED


def test_a_capsule_of_another_name_is_refused(client: ctypes.PyDLL) -> None:
    with doorstep.Simulator(1) as sim, pytest.raises(ValueError, match="PyCapsule_GetPointer"):
        client.client_run(sim.rewards.__dlpack__(), sim.handle, 1, ctypes.byref(ctypes.c_int64()))


def test_the_capsule_is_one_for_the_process() -> None:
    assert doorstep.capi() is doorstep.capi()
    assert '"doorstep.ds_api"' in repr(doorstep.capi())


def test_the_folder_of_headers_holds_the_headers_of_this_library() -> None:
    folder = Path(doorstep.get_include())
    assert headers_in(folder) == headers_in(HEADERS)


def headers_in(folder: Path) -> dict[Path, str]:
    return {path.relative_to(folder): path.read_text("utf-8") for path in folder.rglob("*.h")}


def test_headers_that_are_missing_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("doorstep._native.c_api.PACKAGE_PATH", str(tmp_path))
    with pytest.raises(doorstep.LibraryError, match="include is missing"):
        doorstep.get_include()
