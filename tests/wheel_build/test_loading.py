"""Importing doorstep loads no rendering libraries; when they are loaded, they come only from the wheel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conftest import RunPython

import doorstep
from wheel_file import GRAFTS

PACKAGE = Path(doorstep.__file__).parent
REPORT = """
import json, sys
from pathlib import Path
lines = Path("/proc/self/maps").read_text().splitlines()
files = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
print(json.dumps({"files": sorted(files), "modules": sorted(sys.modules)}))
"""
LOADED_LATER = ("libdoorstep_render", "libembree", "libdxcompiler", "libvulkan")


def report(run_new_python: RunPython, code: str) -> dict[str, Any]:
    """The mapped files and imported modules after running code in a process with an empty environment."""
    result: dict[str, Any] = json.loads(run_new_python(code + REPORT, PATH=""))
    return result


def test_import_and_stepping_load_no_rendering_libraries(run_new_python: RunPython) -> None:
    after = report(run_new_python, "import doorstep\nwith doorstep.Simulator(4) as sim: sim.step()\n")
    assert [file for file in after["files"] if file.endswith("/_native/libdoorstep.so")]
    assert not [file for file in after["files"] for name in LOADED_LATER if name in file]
    assert not {"av", "viser", "PIL", "torch", "jax"} & set(after["modules"])


def test_rendering_libraries_are_loaded_from_the_wheel_in_an_empty_environment(run_new_python: RunPython) -> None:
    code = f"import ctypes\nctypes.CDLL({str(PACKAGE / '_native' / 'libdoorstep_render.so')!r})\n"
    after = report(run_new_python, code)
    for name in GRAFTS:
        assert str(PACKAGE.parent / name) in after["files"]
    assert not [file for file in after["files"] if "libstdc++" in file or "libcuda" in file or "libvulkan" in file]


def test_embree_and_the_shader_compiler_work_in_their_folder(run_new_python: RunPython) -> None:
    embree, compiler = (str(PACKAGE.parent / name) for name in GRAFTS)
    code = f"""
import ctypes
embree = ctypes.CDLL({embree!r})
embree.rtcNewDevice.restype = ctypes.c_void_p
embree.rtcGetDeviceProperty.restype = ctypes.c_ssize_t
embree.rtcGetDeviceProperty.argtypes = [ctypes.c_void_p, ctypes.c_int]
print(embree.rtcGetDeviceProperty(embree.rtcNewDevice(b"threads=1"), 0))
no_such_class = bytes(16)
print(ctypes.CDLL({compiler!r}).DxcCreateInstance(no_such_class, no_such_class, ctypes.byref(ctypes.c_void_p())) < 0)
"""
    assert run_new_python(code, PATH="").split() == ["40302", "True"]
