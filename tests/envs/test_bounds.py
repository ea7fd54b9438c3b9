"""Bounds of observation spaces are finite, and observations are between them."""

import numpy as np
import pytest
from tests.envs.histories import PARTS

import doorstep
from doorstep.levels import Level, Room, Spawn

gymnasium = pytest.importorskip("gymnasium")

from doorstep.envs import EscapeRoomEnv, EscapeRoomVectorEnv  # noqa: E402

# As far away, as strong and as short as levels may be
SPAWNS, ROOMS = (Spawn(-990, 990, 0), Spawn(990, -990, 0)), (Room(-1000, -999.9), Room(-999.9, 1000))
FAR = Level(spawns=SPAWNS, rooms=ROOMS, physics=doorstep.levels.Physics(walking_force=2000), episode_length=40)


@pytest.mark.parametrize("levels", ["reference", "curated", FAR], ids=["reference", "curated", "far"])
def test_observations_are_between_finite_bounds(levels):
    for kind in (doorstep.OBSERVATIONS, "by_name"):
        env = EscapeRoomVectorEnv(2, observations=kind, levels=levels, num_threads=1, episode_length=30, seed=1)
        space = env.single_observation_space
        for part in space.spaces.values() if kind == "by_name" else [space]:
            assert np.isfinite(part.low).all()
            assert np.isfinite(part.high).all()
        env.action_space.seed(1)
        observations, _ = env.reset()
        for _ in range(60):
            assert observations in env.observation_space
            actions = env.action_space.sample()
            actions[0] = (3, 0, 2, 0) * 2  # as far as it goes
            observations = env.step(actions)[0]


@pytest.mark.parametrize("num_agents", [1, 2, 8])
def test_bounds_of_flat_observations_are_those_of_their_parts(num_agents):
    made = [EscapeRoomVectorEnv(2, observations=kind, num_agents=num_agents) for kind in (PARTS[1:], "by_name")]
    flat, parts = (env.single_observation_space for env in made)
    for side in ("low", "high"):
        of_parts = [getattr(parts[name], side).reshape(num_agents, -1) for name in PARTS[1:] if name in parts.spaces]
        np.testing.assert_array_equal(getattr(flat, side).reshape(num_agents, -1), np.concatenate(of_parts, 1))


def test_spaces_follow_the_parts_of_observations():
    rules = {"levels": ["reference", FAR], "seed": 1}
    order = (("physics", 2), "agent_index", ("lidar", 0.5), "steps_remaining")
    env, lidar = EscapeRoomVectorEnv(2, observations=order, **rules), EscapeRoomVectorEnv(2, observations=("lidar",))
    space, of_lidar = env.single_observation_space, lidar.single_observation_space
    assert space.shape == (2, 67)
    np.testing.assert_array_equal(space.high[:, 6:-1], of_lidar.high * 0.5)
    assert (space.high[:, 2] == 4).all()  # twice the largest force, and a scale of 2
    assert (space.low[:, -1].tolist(), space.high[:, -1].tolist()) == ([0, 0], [1, 1])
    assert env.reset()[0] in env.observation_space


def test_what_is_rescaled_is_between_its_bounds():
    wrapped = gymnasium.wrappers.RescaleObservation(EscapeRoomEnv(), np.float32(-1), np.float32(1))
    observation, _ = wrapped.reset(seed=1)
    assert np.abs(observation).max() <= 1
