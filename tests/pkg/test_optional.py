"""Libraries that only parts of doorstep need: where one is missing, a LibraryError names the extra that installs it."""

import json
import re
from pathlib import Path

from tests.forks import server

import doorstep
from doorstep.envs import _ENVIRONMENTS

PACKAGE = Path(doorstep.__file__).parent
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
MISSING = (
    "aiohttp", "av", "gymnasium", "jax", "matplotlib", "matplotlib.figure", "minari", "pettingzoo", "pufferlib", "ray",
    "rsl_rl", "shtab", "skrl", "stable_baselines3", "tensordict", "torch", "torchrl", "viser", "yaml",
)  # fmt: skip
TRAINERS = {"pufferlib", "ray", "rllib", "rsl-rl", "skrl", "stable-baselines3", "torchrl"}  # their pins conflict

# What needs one, by the extra.
NEEDING = {
    "cli": ["doorstep.cli._print_completion(None, 'bash')"],
    "jax": ["import doorstep.jax", "doorstep.Simulator(1).rewards.to_jax()", "madrona._shapes({})"],
    "minari": ["doorstep.rollouts.write_minari('mine-v0', [])"],
    "plot": ["doorstep.plots.figures.load_matplotlib()"],
    "ray": ["doorstep.ray.RayRolloutEngine(doorstep.SimulatorConfig(1))"],
    "serve": ["import doorstep.serve"],
    "torch": [
        *("import doorstep.torch", "doorstep.rollouts.TrajectoryDataset", "doorstep.policy.Branch"),
        *("doorstep.policy.Heads", "doorstep.Simulator(1).rewards.to_torch()", "doorstep.policy.arrays.TorchArrays(0)"),
        *("doorstep.envs._arrays.torch_arrays('cpu')", "madrona.Tensor(numpy.zeros(3)).to_torch()"),
    ],
    "train": ["doorstep.train('run')", "doorstep.resume('run')", "from doorstep.training import PPOConfig"],
    "video": ["doorstep.record('run.rec', steps=1).render('run.gif')"],
    "view": ["doorstep.view()"],
    "yaml": ["doorstep.SimulatorConfig(1).to_yaml()", "doorstep.SimulatorConfig.from_yaml('num_worlds: 1')"],
}
PLACES = {place: extra for extra, places in NEEDING.items() for place in places}
PLACES |= {"madrona.Tensor(numpy.zeros(3)).to_jax()": "jax"}
PLACES |= {f"doorstep.envs.{name}": extra for name, (_, extra, _packages) in _ENVIRONMENTS.items()}

USE_ALL = f"""
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


def test_what_is_missing_is_named_with_its_extra():
    done = server().run(USE_ALL, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    for place, extra in PLACES.items():
        assert re.fullmatch(rf'.* needs? .*\(pip install "doorstep\[{extra}\]"\)', said.get(place, "nothing")), place


def test_what_can_be_imported_without_any_of_them_can_be_looked_at(run_new_python):
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


def test_the_extras_that_errors_name_exist_and_all_has_them():
    section = PYPROJECT.read_text("utf-8").partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    declared = dict(re.findall(r"^([\w-]+) = \[(.*)\]", section, re.MULTILINE))
    sources = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    named = set(re.findall(r"doorstep\[([\w-]+)\]", sources)) | set(PLACES.values())
    assert named <= declared.keys()
    assert len(named) > 10
    assert set(re.fullmatch(r'"doorstep\[(.*)\]"', declared.pop("all"))[1].split(",")) == declared.keys() - TRAINERS


def test_a_broken_library_keeps_its_own_message(run_python):
    code = """
import sys
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
    says = "to_jax() needs JAX, which cannot be imported: libjax.so: cannot open shared object file (pip install "
    assert run_python(code).startswith(says)
