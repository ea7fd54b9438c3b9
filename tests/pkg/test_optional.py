"""Libraries that only parts of doorstep need: where one is missing, a LibraryError names the extra that installs it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import RunPython

import doorstep
from doorstep.envs import _ENVIRONMENTS

PACKAGE = Path(doorstep.__file__).parent
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
MISSING = (
    "aiohttp", "av", "gymnasium", "jax", "matplotlib", "matplotlib.figure", "minari", "pettingzoo", "pufferlib", "ray",
    "rsl_rl", "shtab", "skrl", "stable_baselines3", "tensordict", "torch", "torchrl", "viser", "yaml",
)  # fmt: skip

# What needs one, and the extra.
PLACES = {
    "doorstep.train('run')": "train",
    "doorstep.resume('run')": "train",
    "from doorstep.training import PPOConfig": "train",
    "import doorstep.torch": "torch",
    "import doorstep.jax": "jax",
    "doorstep.rollouts.TrajectoryDataset": "torch",
    "doorstep.policy.Branch": "torch",
    "doorstep.policy.Heads": "torch",
    "doorstep.Simulator(1).rewards.to_torch()": "torch",
    "doorstep.Simulator(1).rewards.to_jax()": "jax",
    "doorstep.envs._arrays.torch_arrays('cpu')": "torch",
    "madrona.Tensor(numpy.zeros(3)).to_torch()": "torch",
    "madrona.Tensor(numpy.zeros(3)).to_jax()": "jax",
    "madrona._shapes({})": "jax",
    "doorstep.policy.arrays.TorchArrays(0)": "torch",
    "doorstep.view()": "view",
    "import doorstep.serve": "serve",
    "doorstep.plots.figures.load_matplotlib()": "plot",
    "doorstep.record('run.rec', steps=1).render('run.gif')": "video",
    "doorstep.rollouts.write_minari('mine-v0', [])": "minari",
    "doorstep.ray.RayRolloutEngine(doorstep.SimulatorConfig(1))": "ray",
    "doorstep.SimulatorConfig(1).to_yaml()": "yaml",
    "doorstep.SimulatorConfig.from_yaml('num_worlds: 1')": "yaml",
    "doorstep.cli._print_completion(None, 'bash')": "cli",
    **{f"doorstep.envs.{name}": extra for name, (_, extra, _packages) in _ENVIRONMENTS.items()},
}

CODE = f"""
import json, os, sys, tempfile
for name in {MISSING!r}:
    sys.modules[name] = None
import numpy
import doorstep, doorstep.cli, doorstep.envs, doorstep.plots.figures, doorstep.policy, doorstep.ray, doorstep.rollouts
import doorstep.envs._arrays, doorstep.policy.arrays
from doorstep.compat.madrona_escape_room import madrona
os.chdir(tempfile.mkdtemp())
said = {{}}
for place in {list(PLACES)!r}:
    try:
        exec(place)
    except doorstep.LibraryError as error:
        said[place] = str(error)
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """What each place says in a process without any of them."""
    from tests.forks import server

    done = server().run(CODE, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    messages: dict[str, str] = json.loads(done.stdout)
    return lambda place: messages.get(place, "nothing")


@pytest.mark.parametrize(("place", "extra"), PLACES.items())
def test_what_is_missing_is_named_with_its_extra(said: Callable[[str], str], place: str, extra: str) -> None:
    assert re.fullmatch(rf'.* needs? .*\(pip install "doorstep\[{extra}\]"\)', said(place))


def test_what_can_be_imported_without_any_of_them_can_be_looked_at(run_new_python: RunPython) -> None:
    code = f"""
import importlib, inspect, pkgutil, pydoc, sys
for name in {MISSING!r}:
    sys.modules[name] = None
import doorstep
for module in pkgutil.iter_modules(doorstep.__path__, "doorstep."):
    if "._" not in module.name:
        try:
            importlib.import_module(module.name)
        except doorstep.LibraryError as error:
            print(module.name)
for name, module in sorted(sys.modules.items()):
    if name.startswith("doorstep") and "._" not in name:
        pydoc.render_doc(module)
        inspect.getmembers(module)
        exec(f"from {{name}} import *", {{}})
"""
    assert run_new_python(code).split() == ["doorstep.jax", "doorstep.serve", "doorstep.torch", "doorstep.training"]


def test_the_extras_that_errors_name_exist() -> None:
    _, _, section = PYPROJECT.read_text("utf-8").partition("[project.optional-dependencies]\n")
    declared = set(re.findall(r"^([\w-]+) = \[", section.partition("\n[")[0], re.MULTILINE))
    sources = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    named = set(re.findall(r"doorstep\[([\w-]+)\]", sources)) | set(PLACES.values())
    assert named <= declared
    assert len(named) > 10


def test_a_broken_library_keeps_its_own_message(run_python: RunPython) -> None:
    code = """
import sys, types
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "jax":
            raise ImportError("libjax.so: cannot open shared object file")
sys.meta_path.insert(0, Broken())
import doorstep
try:
    doorstep.Simulator(1).rewards.to_jax()
except doorstep.LibraryError as error:
    print(error)
"""
    assert run_python(code) == (
        "to_jax() needs JAX, which cannot be imported: libjax.so: cannot open shared object file"
        ' (pip install "doorstep[jax]")\n'
    )
