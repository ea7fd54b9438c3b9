"""EscapeRoomEnv, beside what all environments do (test_contract.py): gymnasium's checker, a page."""

import copy
import re
import sys
import urllib.error
import urllib.request

import numpy as np
import pytest
from tests.envs.histories import actions_of
from tests.refuses import refuses

import doorstep

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from doorstep.envs import ENVIRONMENT_ID, EscapeRoomEnv  # noqa: E402

LENGTH = 5


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
