"""Bounds of observation spaces are finite, and observations are between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.envs.every import make
from tests.envs.histories import PARTS

import doorstep
from doorstep.levels import Level, Room, Spawn

gymnasium: Any = pytest.importorskip("gymnasium")

# As far away, as strong and as short as levels may be
FAR = Level(
    spawns=(Spawn(-990, 990, 0), Spawn(990, -990, 0)),
    rooms=(Room(-1000, -999.9), Room(-999.9, 1000)),
    physics=doorstep.levels.Physics(walking_force=2000),
    episode_length=40,
)


def leaves(space: Any) -> list[Any]:
    return list(space.spaces.values()) if isinstance(space, gymnasium.spaces.Dict) else [space]


@pytest.mark.parametrize("levels", ["reference", "curated", FAR], ids=["reference", "curated", "far"])
@pytest.mark.parametrize("kind", [doorstep.OBSERVATIONS, "by_name"])
def test_observations_are_between_finite_bounds(kind: str, levels: Any) -> None:
    env = make("EscapeRoomVectorEnv", observations=kind, levels=levels, num_threads=2, episode_length=30, seed=1)
    spaces = leaves(env.single_observation_space)
    assert all(np.isfinite(space.low).all() and np.isfinite(space.high).all() for space in spaces)
    env.action_space.seed(1)
    observations, _ = env.reset()
    for _ in range(60):
        assert observations in env.observation_space
        actions = env.action_space.sample()
        actions[0] = (3, 0, 2, 0) * 2  # as far as it goes
        observations = env.step(actions)[0]
    env.close()


@pytest.mark.parametrize("num_agents", [1, 2, 8])
def test_bounds_of_flat_observations_are_those_of_their_parts(num_agents: int) -> None:
    flat, parts = (
        make("EscapeRoomVectorEnv", observations=kind, num_agents=num_agents).single_observation_space
        for kind in (doorstep.OBSERVATIONS, "by_name")
    )
    for side in ("low", "high"):
        of_parts = [
            getattr(parts[name], side).reshape(num_agents, -1)
            for name in PARTS
            if name in parts.spaces and name != "steps_remaining"
        ]
        expected = np.concatenate([*of_parts, np.full((num_agents, 2), side == "high", np.float32)], 1)
        np.testing.assert_array_equal(getattr(flat, side).reshape(num_agents, -1), expected)


def test_spaces_follow_the_parts_of_observations() -> None:
    order = (("physics", 2), "agent_index", ("lidar", 0.5))
    rules = {"observations": order, "levels": ["reference", FAR], "seed": 1}
    env, lidar = make("EscapeRoomVectorEnv", **rules), make("EscapeRoomVectorEnv", observations=("lidar",))
    space, of_lidar = env.single_observation_space, lidar.single_observation_space
    assert space.shape == (2, 66)
    np.testing.assert_array_equal(space.high[:, 6:], of_lidar.high * 0.5)
    assert (space.high[:, 2] == 4).all()  # twice the largest force, and a scale of 2
    assert env.reset()[0] in env.observation_space
    env.close()
    lidar.close()


def test_what_is_rescaled_is_between_its_bounds() -> None:
    wrapped = gymnasium.wrappers.RescaleObservation(make("EscapeRoomEnv"), np.float32(-1), np.float32(1))
    observation, _ = wrapped.reset(seed=1)
    assert np.abs(observation).max() <= 1
    wrapped.close()
