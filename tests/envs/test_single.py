"""EscapeRoomEnv: gymnasium's checker, one world's episodes, bad input."""

from __future__ import annotations

import copy
import re
import sys
import urllib.error
import urllib.request
from typing import Any

import numpy as np
import pytest
from tests.envs.histories import PARTS, Worlds, actions_of

import doorstep

gymnasium: Any = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from doorstep.envs import ENVIRONMENT_ID, EscapeRoomEnv  # noqa: E402

LENGTH = 5


def make(**arguments: Any) -> Any:
    return EscapeRoomEnv(**{"episode_length": LENGTH, "num_threads": 1, **arguments})


@pytest.mark.filterwarnings("ignore:.*A Box observation space (minimum|maximum) value is .*infinity")  # of cameras
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"num_agents": 1},
        {"num_agents": 3, "observations": "by_name"},
        {"observations": "by_name", "num_agents": 1},
        {"observations": "pixels", "cameras": doorstep.Cameras(width=16, height=8, depth=False)},
        {"observations": "pixels", "cameras": doorstep.Cameras(width=16, height=8, segmentation=True, normals=True)},
    ],
    ids=str,
)
def test_gymnasiums_checker_accepts_it(arguments: dict[str, Any]) -> None:
    """Its warnings are errors, except that it regrets cameras' values without bounds."""
    env = gymnasium.make(ENVIRONMENT_ID, render_mode="rgb_array", **arguments)
    check_env(env.unwrapped)
    env.close()


@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
@pytest.mark.parametrize("num_agents", [1, 3])
def test_episodes_are_those_of_a_plain_simulator(kind: str, num_agents: int) -> None:
    env = make(observations=kind, num_agents=num_agents)
    worlds = Worlds(1, num_agents=num_agents, seed=6, episode_length=LENGTH)
    names = [name for name in PARTS if name != "partner_observations" or num_agents > 1]
    actions = actions_of(1, 4 * LENGTH, 1, num_agents)

    def check(found: Any, expected: dict[str, Any]) -> None:
        assert found in env.observation_space
        if kind != "by_name":
            np.testing.assert_array_equal(found, agents_of(expected["observations"]))
            return
        assert list(found) == names
        for name in names:
            np.testing.assert_array_equal(found[name], agents_of(expected[name]))

    def agents_of(array: Any) -> Any:
        """Of the world; a single agent has no dimension."""
        return array[0] if num_agents > 1 else array[0, 0]

    for episode in range(4):
        if episode:
            worlds.reset(np.array([True]))
        check(env.reset(seed=None if episode else 6)[0], worlds.observe())
        for step in range(LENGTH):
            taken = actions[episode * LENGTH + step]
            found, reward, terminated, truncated, info = env.step(taken.reshape(-1))
            told = worlds.step(taken)
            check(found, told.observations)
            assert reward == pytest.approx(told.rewards.mean(), rel=1e-6, abs=1e-9)
            assert (type(reward), terminated, truncated) == (float, False, step == LENGTH - 1)
        assert info == {"episode_returns": pytest.approx(told.returns.mean(), rel=1e-5), "episode_lengths": LENGTH}
    env.close()


def test_what_is_returned_is_not_overwritten() -> None:
    env = make()
    kept = [env.reset(seed=1)[0]]
    kept += [env.step(env.action_space.sample())[0] for _ in range(3)]
    copies = [array.copy() for array in kept]
    env.reset()
    for array, kept_copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(array, kept_copy)
    env.close()


def test_a_picture_is_the_simulators() -> None:
    env = make(render_mode="rgb_array")
    env.reset(seed=1)
    np.testing.assert_array_equal(env.render(), env.simulator.render(0, "overview", samples=1))
    env.close()
    env = make()
    env.reset()
    assert env.render() is None
    env.close()


def test_people_see_each_step_in_a_page_that_closes_with_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("viser")
    actions = actions_of(1, 2 * LENGTH, 1, 2).reshape(2 * LENGTH, -1)

    def played(env: Any) -> list[Any]:
        """The positions after each step, over two episodes."""
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


def test_without_viser_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    env = make(render_mode="human")
    with pytest.raises(doorstep.LibraryError, match=re.escape('pip install "doorstep[view]"')):
        env.reset()
    env.close()


def test_an_ended_episode_is_not_stepped() -> None:
    env = make(episode_length=1)
    with pytest.raises(doorstep.StateError, match="reset"):
        env.step(env.action_space.sample())
    env.reset()
    env.step(env.action_space.sample())
    before = env.simulator.hash()
    with pytest.raises(doorstep.StateError, match="reset"):
        env.step(env.action_space.sample())
    assert env.simulator.hash() == before
    env.reset()
    env.step(env.action_space.sample())
    env.close()


@pytest.mark.parametrize(
    "action", [np.zeros(4, int), np.zeros((1, 8), int), 0, None, [0] * 7, [[0], [0, 0]], np.zeros(8), "forward"]
)
def test_bad_actions_are_refused_and_change_nothing(action: Any) -> None:
    env = make()
    env.reset(seed=1)
    before = env.simulator.hash()
    with pytest.raises(doorstep.ArgumentError) as caught:
        env.step(action)
    assert caught.value.argument in ("action", "actions")
    assert env.simulator.hash() == before
    env.close()


@pytest.mark.parametrize("options", [{"reset_mask": np.ones(1, bool)}, {"level": 3}, [1]])
def test_there_are_no_options(options: Any) -> None:
    env = make()
    with pytest.raises(doorstep.ArgumentError) as caught:
        env.reset(options=options)
    assert caught.value.argument == "options"
    env.reset(options={})
    env.close()


@pytest.mark.parametrize("seed", [-1, 2**32, "1", 1.0])
def test_bad_seeds_are_refused_and_change_nothing(seed: Any) -> None:
    env = make()
    env.reset(seed=1)
    before = env.simulator.hash()
    with pytest.raises(doorstep.ArgumentError) as caught:
        env.reset(seed=seed)
    assert caught.value.argument == "seed"
    assert env.simulator.hash() == before
    env.close()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"render_mode": "ansi"}, "render_mode"),
        ({"observations": "image"}, "observations"),
        ({"observations": "pixels"}, "cameras"),
        ({"num_agents": 9}, "num_agents"),
    ],
    ids=str,
)
def test_the_constructor_names_the_bad_argument(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        make(**arguments)
    assert caught.value.argument == named


def test_a_closed_environment_says_so() -> None:
    env = make()
    env.close()
    env.close()
    for call in (env.reset, lambda: env.reset(seed=1)):
        with pytest.raises(doorstep.ClosedError):
            call()


def test_wrappers_of_single_environments_accept_it() -> None:
    wrappers = gymnasium.wrappers
    env = gymnasium.make(ENVIRONMENT_ID, observations="by_name", episode_length=LENGTH)
    env = wrappers.NormalizeObservation(wrappers.FlattenObservation(wrappers.RecordEpisodeStatistics(env)))
    env.reset(seed=1)
    for _ in range(LENGTH):
        observation, *_, info = env.step(env.action_space.sample())
    assert observation.shape == env.observation_space.shape
    assert info["episode"]["l"] == LENGTH == info["episode_lengths"]
    assert info["episode"]["r"] == pytest.approx(info["episode_returns"], rel=1e-5)
    env.close()
