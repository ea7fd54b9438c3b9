"""EscapeRoomEnv, beside what all environments do (test_contract.py): gymnasium's checker, a page; its name there."""

import copy
import re
import sys
import urllib.error
import urllib.request

import numpy as np
import pytest
from tests.envs.histories import actions_of, assert_example_learns
from tests.refuses import refuses

import doorstep

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from doorstep.envs import ENVIRONMENT_ID, EscapeRoomEnv, EscapeRoomVectorEnv  # noqa: E402

LENGTH = 5
RULES = {"episode_length": 3, "num_threads": 1}


def make(**arguments):
    return EscapeRoomEnv(**{"episode_length": LENGTH, "num_threads": 1, **arguments})


@pytest.mark.filterwarnings("ignore:.*A Box observation space (minimum|maximum) value is .*infinity")  # of cameras
def test_gymnasiums_checker_accepts_it():
    """Its warnings are errors, except that it regrets cameras' values without bounds."""
    cameras = doorstep.Cameras(width=16, height=8, segmentation=True, normals=True)
    for arguments in ({}, {"observations": "by_name", "num_agents": 1}, {"observations": "pixels", "cameras": cameras}):
        check_env(gymnasium.make(ENVIRONMENT_ID, render_mode="rgb_array", **arguments).unwrapped)


def test_people_see_each_step_in_a_page_that_closes_with_the_environment(capsys):
    pytest.importorskip("viser")
    actions = actions_of(1, 2 * LENGTH, 1, 2).reshape(2 * LENGTH, -1)

    def played(env):
        """The observations after each step, over two episodes."""
        seen = [env.reset(seed=3)[0]]
        for action in actions:
            observation, _, terminated, truncated, _ = env.step(action)
            seen.append(env.reset()[0] if terminated or truncated else observation)
        return seen

    env, plain = make(render_mode="human"), make()
    env.metadata = {**env.metadata, "render_fps": 1000.0}
    np.testing.assert_array_equal(played(env), played(plain))
    assert env.render() is None
    url = capsys.readouterr().out.strip()
    with urllib.request.urlopen(url, timeout=20) as page:
        assert b"<title>" in page.read()
    twin = copy.deepcopy(env)
    twin.step(actions[0])
    assert capsys.readouterr().out.strip() not in ("", url)
    for one in (twin, env, env, plain):
        one.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=20)


def test_without_viser_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    env = make(render_mode="human")
    refuses(re.escape('pip install "doorstep[view]"'), env.reset, error=doorstep.LibraryError)


def test_what_it_cannot_take_is_named():
    env = make()
    env.reset(seed=1, options={})
    before = env.simulator.hash()
    for options in ({"reset_mask": np.ones(1, bool)}, {"level": 3}, [1]):
        refuses("option", env.reset, options=options)
    for action in (np.zeros(4, int), np.zeros((1, 8), int), 0, None, [[0], [0, 0]], np.zeros(8), "forward"):
        refuses(r"^action", env.step, action)
    assert env.simulator.hash() == before
    refuses("render_mode is 'ansi'; it must be one of 'human', 'rgb_array'", make, render_mode="ansi")


# ---- Names in gymnasium


def test_importing_the_environments_registers_the_name_and_imports_no_framework(run_new_python):
    """The name with its module needs no import."""
    for imports in ("gymnasium, doorstep.envs", "doorstep.envs, gymnasium"):
        code = f"""
import {imports}, sys
doorstep.envs.EscapeRoomVectorEnv
print({ENVIRONMENT_ID!r} in gymnasium.registry)
print([name for name in ("torch", "jax", "pettingzoo", "stable_baselines3") if name in sys.modules])
"""
        assert run_new_python(code) == "True\n[]\n"
    code = """
import gymnasium, sys
assert not any(name.startswith("doorstep") for name in sys.modules)
env = gymnasium.make_vec("doorstep.envs:doorstep/EscapeRoom-v0", 4, vectorization_mode="vector_entry_point")
print(type(env).__name__, env.num_envs, env.spec.id)
env = gymnasium.make("doorstep.envs:doorstep/EscapeRoom-v0")
print(type(env.unwrapped).__name__, env.spec.id)
"""
    made = run_new_python(code).splitlines()
    assert made == ["EscapeRoomVectorEnv 4 doorstep/EscapeRoom-v0", "EscapeRoomEnv doorstep/EscapeRoom-v0"]


def test_making_passes_arguments_on():
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    env = gymnasium.make_vec(ENVIRONMENT_ID, num_envs=4, agents="rows", autoreset_mode=mode, seed=3, **RULES)
    assert isinstance(env, EscapeRoomVectorEnv)
    for each in (env, gymnasium.make_vec(env.spec)):
        assert (each.num_envs, each.metadata["autoreset_mode"]) == (4, mode)
        assert (each.simulator.num_worlds, each.simulator.seed, each.simulator.episode_length) == (2, 3, 3)
    single = gymnasium.make(ENVIRONMENT_ID, num_agents=4, render_mode="rgb_array")
    assert single.unwrapped.simulator.num_agents == 4
    single.reset()
    assert single.render().shape == (480, 640, 3)


def test_specs_tell_the_most_steps_of_an_episode():
    level = doorstep.levels.reference().replace(episode_length=(20, 90))
    for arguments, steps in (({}, 200), ({"episode_length": 500}, 500), ({"episode_length": 50, "levels": level}, 90)):
        made = gymnasium.make(ENVIRONMENT_ID, **arguments), gymnasium.make_vec(ENVIRONMENT_ID, 2, **arguments)
        for env in (*made, gymnasium.make(made[0].spec)):
            assert env.spec.max_episode_steps == steps
    env = gymnasium.make(ENVIRONMENT_ID, max_episode_steps=2)  # gymnasium's own limit stays
    env.reset()
    assert [env.step(env.action_space.sample())[3] for _ in range(2)] == [False, True]
    with pytest.raises(doorstep.ArgumentError, match=r"max_episode_steps is 50; .*pass episode_length"):
        gymnasium.make_vec(ENVIRONMENT_ID, num_envs=2, max_episode_steps=50)


def test_an_older_gymnasium_is_refused_by_name(run_python):
    code = """
import gymnasium, gymnasium.vector
gymnasium.__version__ = "0.29.1"
del gymnasium.vector.AutoresetMode
import doorstep, doorstep.envs
try:
    gymnasium.make("doorstep/EscapeRoom-v0")
except doorstep.LibraryError as error:
    print(error)
"""
    message = run_python(code)
    assert "needs gymnasium 1.1 or newer; 0.29.1 is installed" in message
    assert "gymnasium>=1.1" in message


@pytest.mark.nightly
def test_the_example_of_the_documentation_learns():
    assert_example_learns("gymnasium_vector.py", gain=0.25)
