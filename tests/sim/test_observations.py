"""Observations equal the double-precision reference on states beyond those of episodes, for any number of agents."""

import numpy as np
import pytest
from tests.reference import constants as c
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


def test_flat_observations_may_be_left_out():
    scene = Scene(observations="by_name")
    assert "observations" not in scene.sim.tensors
    assert "final_observations" not in scene.sim.tensors


def test_bearings_are_positive_to_the_right_and_yaw_to_the_left_and_heights_do_not_count_as_distance():
    scene = Scene()
    scene.place(0, 0.0, 5.0, yaw=0.0)
    scene.place(1, 4.0, 5.0, z=7.0, yaw=np.pi / 2)
    scene.sim.refresh()
    np.testing.assert_allclose(scene.partner_observations[0, 0, 0], [0.1, 0.5, 0], atol=1e-6)
    np.testing.assert_allclose(scene.partner_observations[0, 1, 0], [0.1, 0.0, 0], atol=1e-6)
    np.testing.assert_allclose(scene.self_observations[0, :, 6], [0.0, 0.5], atol=1e-6)
    assert scene.self_observations[0, 1, 4] == pytest.approx(7 / 40)


def test_the_room_follows_from_y_and_stays_within_three():
    scene = Scene()
    for y, room in ((-3.0, 0), (13.3, 0), (13.4, 1), (26.6, 1), (26.7, 2), (41.0, 2), (75.0, 2)):
        scene.place(0, 1.0, y)
        scene.sim.refresh()
        assert scene.self_observations[0, 0, 1] == pytest.approx((y - room * c.ROOM_LENGTH) / c.ROOM_LENGTH, abs=1e-5)
        door = scene.doors[0, room]
        assert scene.door_observations[0, 0, 0] == pytest.approx(np.hypot(door[0] - 1.0, door[1] - y) / 40, abs=1e-5)


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
