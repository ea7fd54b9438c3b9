"""Spaces of all environments: bounds of observations are finite, and observations are between them; an action as four
components, as one number of 320, or as a tuple, beside their equal steps (test_contract.py)."""

import re

import numpy as np
import pytest
from tests.envs.every import KINDS, MISSING, Case, played
from tests.envs.histories import PARTS
from tests.refuses import refuses

import doorstep
from doorstep.levels import Level, Room, Spawn

pytest.importorskip("gymnasium")

from doorstep.envs import EscapeRoomVectorEnv

# ---- Observations

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


# ---- Actions


def test_spaces_of_numbers():
    one, two = "Discrete(320)", "MultiDiscrete([320 320])"
    for arguments, single, rows in (({"num_agents": 1}, one, two), ({"agents": "rows"}, one, two), ({}, two, "Box")):
        env = EscapeRoomVectorEnv(2, actions="discrete", **arguments)
        assert str(env.single_action_space) == single
        assert str(env.action_space).startswith(rows)
        assert env.action_space.sample() in env.action_space


def test_a_tuple_is_by_component_and_an_array_by_row():
    """Sample Factory and rl_games give arrays, gymnasium gives tuples."""
    components = np.arange(4) * np.array([[0], [1], [1], [0]])  # [4, rows]
    for actions in (tuple(components), list(components), components.T):
        env = EscapeRoomVectorEnv(4, agents="rows", actions="tuple", seed=1)
        env.reset()
        env.step(actions)
        np.testing.assert_array_equal(env.simulator.actions[:].reshape(4, 4), components.T)


SHAPES = {
    "AsyncEscapeRooms": [1, 8],
    "EscapeRoomEnv": [8],
    "EscapeRoomParallelEnv": [4],
    "EscapeRoomSkrlEnv": [4, 4],
    "EscapeRoomSkrlMultiAgentEnv": [2, 4],
    "EscapeRoomTorchRLEnv": [2, 2, 4],
    "EscapeRoomVecEnv": [4, 4],
    "EscapeRoomVectorEnv": [2, 8],
    "TorchEscapeRoomVectorEnv": [2, 8],
}


@pytest.mark.parametrize("name", SHAPES)
def test_messages_have_the_words_of_the_environment(name):
    """Shapes are not those of the simulator behind it."""
    if name in MISSING:
        pytest.importorskip(KINDS[name].module)
    worlds = min(2, max(KINDS[name].worlds))
    shape, view = SHAPES[name], "joint" if SHAPES[name][-1] == 8 else "rows"
    if "tuple" not in KINDS[name].forms:
        refuses("actions is 'tuple'", played, name, Case(worlds, 2, view, "tuple"))
    each = played(name, Case(worlds, 2, view))
    each.reset()
    told = re.escape(f"of the shape {shape}'; it must be integers of the shape {shape}")
    refuses(told, each.step, np.full((worlds, 2, 4), 0.5))
    each = played(name, Case(worlds, 2, view, "discrete"))
    each.reset()
    for number, action in ((-1, (0, 0, 0, -1)), (80 * 2**24, (2**24, 0, 0, 0))):
        refuses(rf"actions is {number}; it must be .* 0 to 319", each.step, np.broadcast_to(action, (worlds, 2, 4)))
