"""The tests use the installed wheel, byte for byte; what it loads comes from it, and not before it is needed."""

import json
from pathlib import Path

from tests.wheel_build.conftest import PROJECT

import doorstep
from wheel_file import GRAFTS, RENDER_LIBRARY

PACKAGE = Path(doorstep.__file__).parent
REPORT = """
import json, sys
from pathlib import Path
lines = Path("/proc/self/maps").read_text().splitlines()
files = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
print(json.dumps({"files": sorted(files), "modules": sorted(sys.modules)}))
"""


def test_the_package_under_test_is_the_finished_wheel_and_not_the_source_tree(finished):
    assert not PACKAGE.is_relative_to(PROJECT / "pkg")
    for name, content in finished.files.items():
        if name.startswith(("doorstep/", "doorstep.libs/")):
            assert (PACKAGE.parent / name).read_bytes() == content, name


def report(run_new_python, code):
    """The mapped files and imported modules after running code in a process with an empty environment."""
    return json.loads(run_new_python(code + REPORT, PATH=""))


def test_import_and_stepping_load_no_rendering_libraries(run_new_python):
    after = report(run_new_python, "import doorstep\nwith doorstep.Simulator(4) as sim: sim.step()\n")
    assert [file for file in after["files"] if file.endswith("/_native/libdoorstep.so")]
    later = ("libdoorstep_render", "libembree", "libdxcompiler", "libvulkan")
    assert not [file for file in after["files"] for name in later if name in file]
    assert not {"av", "viser", "PIL", "torch", "jax"} & set(after["modules"])


def test_rendering_libraries_are_loaded_from_the_wheel(run_new_python):
    library, embree, compiler = (str(PACKAGE.parent / name) for name in (RENDER_LIBRARY, *GRAFTS))
    after = report(run_new_python, f"import ctypes\nctypes.CDLL({library!r})\n")
    assert {embree, compiler} <= set(after["files"])
    assert not [file for file in after["files"] if "libstdc++" in file or "libcuda" in file or "libvulkan" in file]
