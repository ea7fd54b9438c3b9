"""Environments on the CPU are pickled and deep-copied whole: their worlds go on in the copy."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from tests.envs.every import ENVIRONMENTS, begin, make, same_everywhere, simulators, step, tensors

import doorstep

gymnasium: Any = pytest.importorskip("gymnasium")

LEVELS: list[Any] = [doorstep.levels.reference(), doorstep.levels.curated()["one door"]]
COPIES = {"pickle": lambda env: pickle.loads(pickle.dumps(env)), "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_copy_goes_on_as_the_original_does(name: str, way: str) -> None:
    env = make(name, levels=LEVELS, level_weights=(1, 3), seed=5)
    begin(env)
    step(env)
    other = COPIES[way](env)
    assert other.np_random_seed == 5
    for one, two in zip(simulators(env), simulators(other), strict=True):
        assert one is not two
        assert one.config == two.config
        np.testing.assert_array_equal(one.level_weights.to_numpy(), two.level_weights.to_numpy())
    for _ in range(3):
        assert same_everywhere(step(env), step(other))
        for one, two in zip(tensors(env), tensors(other), strict=True):
            np.testing.assert_array_equal(one, two)
    for each in (env, other):
        begin(each, 9)
    for one, two in zip(tensors(env), tensors(other), strict=True):
        np.testing.assert_array_equal(one, two)
    env.close()
    other.close()


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_a_copy_begins_the_next_episode_when_the_original_does(mode: str) -> None:
    env = make("EscapeRoomVectorEnv", autoreset_mode=mode)
    env.reset()
    for _ in range(4):
        step(env)  # the last one ends the episodes
    other = copy.deepcopy(env)
    if mode == "disabled":
        for each in (env, other):
            with pytest.raises(doorstep.StateError, match="has ended"):
                step(each)
            each.reset(options={"reset_mask": np.ones(2, bool)})
    for _ in range(6 if mode != "disabled" else 4):
        assert same_everywhere(step(env), step(other))
    env.close()
    other.close()


def test_a_copy_before_the_first_reset_begins_with_the_same_levels() -> None:
    env = make("EscapeRoomEnv")
    other = copy.deepcopy(env)
    np.testing.assert_array_equal(other.reset()[0], env.reset()[0])
    env.close()
    other.close()


def test_pictures_of_cameras_are_in_the_copy() -> None:
    cameras = doorstep.Cameras(width=8, height=6)
    env = make("EscapeRoomVectorEnv", observations="pixels", cameras=cameras)
    env.reset()
    step(env)
    other = pickle.loads(pickle.dumps(env))
    np.testing.assert_array_equal(env.simulator.rgb.to_numpy(), other.simulator.rgb.to_numpy())
    assert same_everywhere(step(env), step(other))
    env.close()
    other.close()


def test_environments_of_jax_are_copied_with_their_arguments() -> None:
    jax = pytest.importorskip("jax")
    env = doorstep.envs.EscapeRoomJaxEnv(agents="rows", episode_length=9, levels=LEVELS)
    other = pickle.loads(pickle.dumps(env))
    assert other.default_params == env.default_params
    key = jax.random.key(1)
    np.testing.assert_array_equal(other.reset(key)[0], env.reset(key)[0])


def test_a_step_that_runs_is_waited_for_first() -> None:
    env = make("AsyncEscapeRooms")
    env.async_reset()
    *_, info = env.recv()
    env.send(np.zeros(env.action_space.shape, int), info["env_id"])
    with pytest.raises(doorstep.StateError, match="a step is running"):
        pickle.dumps(env)
    env.close()
