"""Observations equal the double-precision reference on states beyond those of episodes, for any number of agents."""

import numpy as np
import pytest
from tests.reference import observations as reference
from tests.reference.boxes import yaw_quaternion
from tests.scenes import OBSERVATIONS, Scene, play, random_actions, random_state
from tests.sim.agreement import assert_observations_equal, flat_observations


@pytest.mark.parametrize("num_agents", [1, 2, 3, 8])
def test_observations_of_any_state_equal_the_reference(num_agents):
    scene = Scene(200, seed=1, num_agents=num_agents, episode_length=40)
    parts = (*OBSERVATIONS, "steps_remaining", "agent_index")
    for seed in range(3):
        scene.step(seed)
        random_state(scene, seed)
        scene.sim.refresh()
        assert_observations_equal(scene)
        np.testing.assert_allclose(scene.observations, flat_observations(scene, "", parts, 40), rtol=2e-6, atol=1e-7)
    assert scene.observations.shape[-1] == reference.flat_size(num_agents)


def test_refresh_changes_nothing_but_observations():
    scene = Scene(16, seed=8)
    play(random_actions(2, 10, 16), scene)
    before, observed = scene.sim.hash(), scene.snapshot(*OBSERVATIONS, "rewards", "steps_remaining")
    scene.sim.refresh()
    assert scene.sim.hash() == before
    for name, values in observed.items():
        np.testing.assert_array_equal(getattr(scene, name), values)


def test_a_quaternion_and_its_negative_give_the_same_observations():
    scene = Scene()
    scene.place(0, 0.0, 5.0, yaw=2.0)
    scene.sim.refresh()
    before = scene.self_observations.copy()
    scene.body_rotations[0, 0] = -yaw_quaternion(2.0)
    scene.sim.refresh()
    np.testing.assert_allclose(scene.self_observations, before, atol=1e-6)
