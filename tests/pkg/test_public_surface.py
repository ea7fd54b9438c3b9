"""What `import doorstep` offers, and what it costs others."""

import inspect
import re
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

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


def test_all_is_what_is_visible_also_what_is_imported_lazily():
    visible = {
        name
        for name, value in vars(doorstep).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name != "annotations"
    }
    assert set(doorstep.__all__) == visible | LAZY | {"__version__"}
    assert set(doorstep.__all__) <= set(dir(doorstep))
    assert not hasattr(doorstep, "Polecy")


def test_version_is_the_installed_distributions():
    assert doorstep.__version__ == metadata.version("doorstep")
    assert re.fullmatch(r"\d+\.\d+\.\d+", doorstep.__version__)
    assert (PACKAGE / "py.typed").exists()


def test_every_public_thing_has_a_docstring():
    for name in set(doorstep.__all__) - {"__version__"}:
        docstring = getattr(doorstep, name).__doc__
        assert docstring, name
        assert not docstring.startswith("ds_"), f"{name} is described by its name in C"
    for cls in (getattr(doorstep.cuda, name) for name in doorstep.cuda.__all__):
        members = vars(cls).items() if inspect.isclass(cls) else ()
        assert [name for name, value in members if not name.startswith("_") and not inspect.getdoc(value)] == []


def test_import_needs_numpy_only_loads_nothing_heavy_and_simulators_only_what_they_need(run_new_python):
    """Each module costs time in every program. What some programs use alone, as levels, pictures, policies, rollouts,
    training and viewers, is imported by those."""
    code = """
import sys, numpy
before = set(sys.modules)
import doorstep
new = set(sys.modules) - before
print(sorted({name.partition(".")[0] for name in new} - {"numpy", *sys.stdlib_module_names}))
print(new & {"argparse", "asyncio", "importlib.metadata", "json", "logging", "subprocess", "urllib.request"})
with open("/proc/self/maps") as maps:
    print("libdoorstep" in maps.read())
with doorstep.Simulator(2, num_agents=3, observations=("lidar",)) as sim:
    sim.step()
    sim.reset()
    sim.restore(sim.save())
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("doorstep.")}))
print(len(doorstep.levels.curated()) > 5, callable(doorstep.render.encode_png))  # without imports of their own
"""
    others, heavy, library, needed, packages = run_new_python(code).splitlines()
    assert (others, heavy, library, packages) == ("['doorstep']", "set()", "False", "True True")
    assert set(needed.split()) == NEEDED


def test_stepping_and_rollouts_import_nothing(run_new_python):
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
    assert len(engine.get_outputs(most=10).records) == 1
    print(set(sys.modules) - before)
"""
    assert run_new_python(code) == "set()\n"
