"""What `import doorstep` offers, and what it costs others."""

import ast
import contextlib
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import doorstep

PACKAGE = Path(doorstep.__file__).parent
NEED_PYTORCH = set() if find_spec("torch") else {"resume", "train"}
LAZY = set(doorstep._LATER) - NEED_PYTORCH  # imported when they are first used
# The modules and packages of doorstep that a simulator is made of.
NEEDED = {
    *("_arguments", "_configs", "_copies", "_documents", "_environment", "_files", "_level_table", "_native"),
    *("_observations", "_optional", "_properties", "_streams", "_tensor_map", "_tensors", "cameras", "config"),
    *("errors", "event", "health", "simulator", "state", "tensor"),
}


def test_all_is_what_is_visible() -> None:
    visible = {
        name
        for name, value in vars(doorstep).items()
        if not name.startswith("_") and not isinstance(value, type(doorstep)) and name != "annotations"
    }
    assert set(doorstep.__all__) == visible | LAZY | {"__version__"}


def test_what_is_imported_lazily_is_there() -> None:
    from doorstep.policy import Policy

    assert doorstep.Policy is Policy
    assert not hasattr(doorstep, "Polecy")


def test_packages_are_there_without_an_import_of_their_own(run_new_python: Callable[..., str]) -> None:
    code = "import doorstep; print(len(doorstep.levels.curated()) > 5, callable(doorstep.render.encode_png))"
    assert run_new_python(code) == "True True\n"


def test_what_is_imported_lazily_is_listed_so_that_names_can_be_completed() -> None:
    assert set(doorstep.__all__) <= set(dir(doorstep))


def test_version_is_the_installed_distributions() -> None:
    assert doorstep.__version__ == metadata.version("doorstep")
    assert re.fullmatch(r"\d+\.\d+\.\d+", doorstep.__version__)


def test_every_public_thing_has_a_docstring() -> None:
    for name in set(doorstep.__all__) - {"__version__"}:
        docstring = getattr(doorstep, name).__doc__
        assert docstring, name
        assert not docstring.startswith("ds_"), f"{name} is described by its name in C"


def public_classes() -> Iterator[type]:
    """Of all modules that can be imported here."""
    for module in pkgutil.walk_packages(doorstep.__path__, "doorstep."):
        if "._" not in module.name and not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                found = importlib.import_module(module.name)
                names = [name for name in getattr(found, "__all__", ()) if hasattr_of(found, name)]
                yield from filter(inspect.isclass, (getattr(found, name) for name in names))


def hasattr_of(module: ModuleType, name: str) -> bool:
    """Whether its library is there."""
    try:
        return hasattr(module, name)
    except ImportError:
        return False


def test_no_public_object_is_shown_by_its_address() -> None:
    classes = {one for one in public_classes() if one.__module__.startswith("doorstep")}
    assert len(classes) >= 40
    assert [one for one in classes if vars(object)["__repr__"] is one.__repr__] == []


def test_package_is_marked_as_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_only_the_native_seam_calls_foreign_functions() -> None:
    callers = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and ast.unparse(node).startswith(("import ctypes", "from ctypes"))
        and ast.unparse(node) != "import ctypes.util"
    }
    assert callers == {"_native"}


def test_import_needs_numpy_only_and_does_not_load_the_library(run_new_python: Callable[..., str]) -> None:
    code = """
import sys, numpy
before = set(sys.modules)
import doorstep
roots = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(roots - {"numpy", *sys.stdlib_module_names}))
with open("/proc/self/maps") as maps:
    print("libdoorstep" in maps.read())
"""
    assert run_new_python(code) == "['doorstep']\nFalse\n"


def test_simulators_import_only_what_they_need(run_new_python: Callable[..., str]) -> None:
    """Each module costs time in every program. What some programs use alone, as levels, pictures, policies, rollouts,
    training and viewers, is imported by those."""
    code = """
import sys, doorstep
with doorstep.Simulator(2, num_agents=3, observations=("lidar",)) as sim:
    sim.step()
    sim.reset()
    sim.restore(sim.save())
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("doorstep.")}))
"""
    assert set(run_new_python(code).split()) == NEEDED


def test_stepping_and_rollouts_import_nothing(run_new_python: Callable[..., str]) -> None:
    """CPython drops a KeyboardInterrupt that meets the locks of an import: Ctrl-C would be lost in a first step. A fork
    beside a thread that imports may hang, and other threads meet modules whose names are not there yet."""
    code = """
import sys
import numpy as np
import doorstep, doorstep.rollouts
def act(observations):
    return np.zeros((len(observations), 4), np.int32)
requests = [doorstep.EpisodeRequest(policy=policy, max_steps=2, record="actions") for policy in ("random", act)]
with doorstep.Simulator(2) as sim, doorstep.RolloutEngine(doorstep.SimulatorConfig(2)) as engine:
    before = set(sys.modules)
    sim.actions = np.zeros((2, 2, 4), np.int32)
    sim.step()
    sim.rewards.to_numpy()
    sim.bind(rewards=np.zeros((2, 2, 1), np.float32))
    engine.submit(requests)
    engine.submit(requests[:1])
    assert len(list(engine)) == 3
    engine.submit(requests[0])
    assert len(engine.get_records(10)) == 1
    print(set(sys.modules) - before)
"""
    assert run_new_python(code) == "set()\n"


def test_import_pulls_in_no_heavy_module(run_new_python: Callable[..., str]) -> None:
    heavy = {"argparse", "asyncio", "importlib.metadata", "json", "logging", "subprocess", "urllib.request"}
    code = (
        f"import sys, numpy; before = set(sys.modules); import doorstep; print({heavy!r} & (set(sys.modules) - before))"
    )
    assert run_new_python(code) == "set()\n"
