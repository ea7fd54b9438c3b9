"""doorstep/EscapeRoom-v0: names in gymnasium."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import RunPython

import doorstep

gymnasium: Any = pytest.importorskip("gymnasium")

from doorstep.envs import ENVIRONMENT_ID, EscapeRoomEnv, EscapeRoomVectorEnv  # noqa: E402

MODES = ("vector_entry_point", "sync", "async")
RULES: dict[str, Any] = {"episode_length": 3, "num_threads": 1}


def test_the_name_with_its_module_needs_no_import(run_new_python: RunPython) -> None:
    name = "doorstep.envs:doorstep/EscapeRoom-v0"
    code = f"""
import gymnasium, sys
assert not any(name.startswith("doorstep") for name in sys.modules)
env = gymnasium.make_vec({name!r}, num_envs=4, vectorization_mode="vector_entry_point")
print(type(env).__name__, env.num_envs, env.spec.id)
env = gymnasium.make({name!r})
print(type(env.unwrapped).__name__, env.spec.id)
"""
    assert run_new_python(code).splitlines() == [
        "EscapeRoomVectorEnv 4 doorstep/EscapeRoom-v0",
        "EscapeRoomEnv doorstep/EscapeRoom-v0",
    ]


@pytest.mark.parametrize("imports", ["gymnasium, doorstep.envs", "doorstep.envs, gymnasium"])
def test_importing_the_environments_registers_the_name(run_new_python: RunPython, imports: str) -> None:
    assert run_new_python(f"import {imports}; print({ENVIRONMENT_ID!r} in gymnasium.registry)") == "True\n"


def test_other_frameworks_are_imported_only_when_they_are_used(run_new_python: RunPython) -> None:
    code = """
import sys, doorstep, doorstep.envs
doorstep.envs.EscapeRoomVectorEnv
print([name for name in ("torch", "jax", "pettingzoo", "stable_baselines3") if name in sys.modules])
"""
    assert run_new_python(code) == "[]\n"


@pytest.mark.parametrize("mode", MODES)
def test_make_vec_steps_in_every_mode(mode: str) -> None:
    env = gymnasium.make_vec(ENVIRONMENT_ID, num_envs=2, vectorization_mode=mode, num_agents=1, **RULES)
    env.action_space.seed(1)
    observations, _ = env.reset(seed=1)
    assert observations.shape == (2, 91)
    for step in range(5):
        truncations = env.step(env.action_space.sample())[3]
        assert truncations.tolist() == [step == 2] * 2
    env.close()


def test_make_vec_passes_arguments_on() -> None:
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    env = gymnasium.make_vec(ENVIRONMENT_ID, num_envs=4, agents="rows", autoreset_mode=mode, seed=3, **RULES)
    assert isinstance(env, EscapeRoomVectorEnv)
    assert env.metadata["autoreset_mode"] is mode
    assert (env.simulator.num_worlds, env.simulator.seed, env.simulator.episode_length) == (2, 3, 3)
    again = gymnasium.make_vec(env.spec)
    assert (again.num_envs, again.metadata["autoreset_mode"], again.simulator.config) == (4, mode, env.simulator.config)
    env.close()
    again.close()


def test_make_passes_arguments_on() -> None:
    env = gymnasium.make(ENVIRONMENT_ID, num_agents=4, render_mode="rgb_array")
    assert isinstance(env.unwrapped, EscapeRoomEnv)
    assert env.unwrapped.simulator.num_agents == 4
    env.reset()
    assert env.render().shape == (480, 640, 3)
    env.close()


def test_a_framework_that_is_not_installed_is_named(run_python: RunPython) -> None:
    code = """
import sys
sys.modules["gymnasium"] = None
import doorstep, doorstep.envs
try:
    doorstep.envs.EscapeRoomVectorEnv
except doorstep.LibraryError as error:
    print(error)
"""
    message = run_python(code)
    assert "gymnasium" in message
    assert 'pip install "doorstep[gymnasium]"' in message


def test_a_gymnasium_that_cannot_be_imported_stops_only_those_who_need_it(
    run_new_python: RunPython, tmp_path: Path
) -> None:
    (tmp_path / "gymnasium.py").write_text("raise RuntimeError('half an installation')", "utf-8")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import doorstep.envs
from doorstep.envs import *
doorstep.envs.MultiDiscrete
try:
    doorstep.envs.EscapeRoomEnv
except RuntimeError as error:
    print(error)
"""
    assert run_new_python(code) == "half an installation\n"


@pytest.mark.parametrize(
    "statement", ["doorstep.envs.EscapeRoomEnv", 'gymnasium.make("doorstep/EscapeRoom-v0")'], ids=["name", "make"]
)
def test_an_older_gymnasium_is_refused_by_name(run_python: RunPython, statement: str) -> None:
    code = f"""
import gymnasium, gymnasium.vector
gymnasium.__version__ = "0.29.1"
del gymnasium.vector.AutoresetMode
import doorstep, doorstep.envs
try:
    {statement}
except doorstep.LibraryError as error:
    print(error)
"""
    message = run_python(code)
    assert "needs gymnasium 1.1 or newer; 0.29.1 is installed" in message
    assert "gymnasium>=1.1" in message


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        ({}, 200),
        ({"episode_length": 500}, 500),
        ({"episode_length": 50, "levels": doorstep.levels.reference().replace(episode_length=(20, 90))}, 90),
    ],
    ids=str,
)
def test_specs_tell_the_most_steps_of_an_episode(arguments: dict[str, Any], steps: int) -> None:
    for env in (gymnasium.make(ENVIRONMENT_ID, **arguments), gymnasium.make_vec(ENVIRONMENT_ID, 2, **arguments)):
        assert env.spec.max_episode_steps == steps
        env.close()
    again = gymnasium.make(gymnasium.make(ENVIRONMENT_ID, **arguments).spec)
    assert again.unwrapped.spec.max_episode_steps == steps
    again.close()


def test_gymnasiums_own_time_limit_stays() -> None:
    env = gymnasium.make(ENVIRONMENT_ID, max_episode_steps=2)
    assert env.spec.max_episode_steps == 2
    env.reset()
    truncations = [env.step(env.action_space.sample())[3] for _ in range(2)]
    assert truncations == [False, True]
    env.close()


def test_vectors_refuse_another_length_than_that_of_the_rules() -> None:
    with pytest.raises(doorstep.ArgumentError, match="pass episode_length") as caught:
        gymnasium.make_vec(ENVIRONMENT_ID, num_envs=2, max_episode_steps=50)
    assert caught.value.argument == "max_episode_steps"


@pytest.mark.slow
def test_the_example_of_the_documentation_learns() -> None:
    example = Path(__file__).resolve().parents[2] / "docs" / "examples" / "gymnasium_vector.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    returns = [float(line.split()[-1]) for line in done.stdout.splitlines()]
    assert returns[-1] > returns[0] + 0.25
