"""Observations equal the double-precision reference on states beyond those of episodes, for any number of agents."""

from dataclasses import replace

import numpy as np
import pytest
from tests.reference import constants as c
from tests.reference import observations as reference
from tests.reference.boxes import yaw_quaternion
from tests.scenes import OBSERVATIONS, Array, Scene, random_actions, random_state

from doorstep import Simulator
from doorstep.levels import GeneratedLevel, Physics

ANGLE_TURN = 2.0  # bearings and yaws are in units of pi: -1 and 1 are the same direction
NEAR = 0.1 / c.WORLD_LENGTH  # closer than 10 cm a bearing is not comparable in float32


def assert_polar_equal(measured: Array, expected: Array) -> None:
    """Compares (distance, bearing, flag) triples, bearings modulo a full turn."""
    np.testing.assert_allclose(measured[..., 0], expected[..., 0], atol=1e-6, rtol=0)
    np.testing.assert_array_equal(measured[..., 2], expected[..., 2].astype(np.float32))
    off = (measured[..., 1] - expected[..., 1] + ANGLE_TURN / 2) % ANGLE_TURN - ANGLE_TURN / 2
    comparable = (expected[..., 0] > NEAR) | (expected[..., 0] == 0)
    np.testing.assert_allclose(off[comparable], 0.0, atol=2e-5)
    assert (np.abs(measured[..., 1]) <= 1).all()


def assert_observations_equal(scene: Scene) -> None:
    situation = scene.situation()
    expected = reference.self_observations(situation)
    measured = scene.self_observations
    plain = [0, 1, 2, 3, 4, 5, 7]
    np.testing.assert_allclose(measured[..., plain], expected[..., plain], atol=1e-6, rtol=1e-6)
    off = (measured[..., 6] - expected[..., 6] + 1) % ANGLE_TURN - 1
    np.testing.assert_allclose(off, 0.0, atol=1e-6)
    assert_polar_equal(scene.partner_observations, reference.partner_observations(situation))
    assert_polar_equal(scene.room_entity_observations, reference.room_entity_observations(situation))
    assert_polar_equal(scene.door_observations, reference.door_observations(situation))


@pytest.mark.parametrize("num_agents", [1, 2, 3, 8])
def test_observations_of_any_state_equal_the_reference(num_agents: int) -> None:
    scene = Scene(256, seed=1, num_agents=num_agents)
    for seed in range(4):
        random_state(scene, seed)
        scene.sim.refresh()
        assert_observations_equal(scene)


@pytest.mark.parametrize("num_agents", [1, 2, 5])
def test_observations_after_steps_equal_the_reference(num_agents: int) -> None:
    scene = Scene(128, seed=2, num_agents=num_agents, episode_length=30)
    for actions in random_actions(5, 70, 128, num_agents):
        scene.actions[:] = actions
        scene.step()
        assert_observations_equal(scene)


@pytest.mark.parametrize("num_agents", [1, 2, 3, 8])
def test_shapes_follow_the_number_of_agents(num_agents: int) -> None:
    scene = Scene(3, num_agents=num_agents)
    a = num_agents
    assert scene.self_observations.shape == (3, a, 8)
    assert scene.partner_observations.shape == (3, a, a - 1, 3)
    assert scene.room_entity_observations.shape == (3, a, 6, 3)
    assert scene.door_observations.shape == (3, a, 3)
    assert scene.lidar.shape == (3, a, 30, 2)
    assert scene.observations.shape == (3, a, reference.flat_size(a))


def test_two_agents_have_94_features() -> None:
    assert reference.flat_size(2) == 94
    assert Scene().observations.shape[-1] == 94


@pytest.mark.parametrize("num_agents", [1, 2, 3, 8])
def test_flat_observations_are_the_parts_concatenated(num_agents: int) -> None:
    scene = Scene(64, seed=3, num_agents=num_agents, episode_length=40)
    for actions in random_actions(6, 60, 64, num_agents):
        scene.actions[:] = actions
        scene.step()
    parts = [getattr(scene, name).reshape(64, num_agents, -1) for name in OBSERVATIONS]
    index = np.arange(num_agents, dtype=np.float32) / np.float32(max(num_agents - 1, 1))
    parts.append(scene.steps_remaining.astype(np.float32) / np.float32(40))
    parts.append(np.broadcast_to(index[None, :, None], (64, num_agents, 1)))
    np.testing.assert_allclose(scene.observations, np.concatenate(parts, axis=-1), rtol=1e-7)


@pytest.mark.parametrize("num_agents", [1, 2, 8])
def test_parts_are_in_the_given_order_and_multiplied_by_their_scales(num_agents: int) -> None:
    order = ("agent_index", ("lidar", 0.5), "steps_remaining", ("self_observations", 3), ("door_observations", 1e-3))
    scene = Scene(16, seed=3, num_agents=num_agents, episode_length=15, observations=order)
    for actions in random_actions(6, 40, 16, num_agents):
        scene.actions[:] = actions
        scene.step()
    for prefix in ("", "final_"):

        def of(name: str, scale: float, prefix: str = prefix) -> Array:
            part = getattr(scene, prefix + name).reshape(16, num_agents, -1).astype(np.float32)
            scaled: Array = part * np.float32(scale)
            return scaled

        index = np.arange(num_agents, dtype=np.float32) / np.float32(max(num_agents - 1, 1))
        expected = [
            np.broadcast_to(index[None, :, None], (16, num_agents, 1)),
            of("lidar", 0.5),
            of("steps_remaining", 1) / np.float32(15),
            of("self_observations", 3),
            of("door_observations", 1e-3),
        ]
        np.testing.assert_array_equal(getattr(scene, f"{prefix}observations"), np.concatenate(expected, -1))


def test_physics_are_relative_to_the_references() -> None:
    physics = Physics(cube_mass=(5, 50), friction=(0.5, 1.5), walking_force=1500, turning_torque=160, door_speed=60)
    level = replace(GeneratedLevel(), physics=physics)
    with Simulator(8, levels=["reference", level], observations=("physics", "agent_index"), num_threads=1) as sim:
        reference_worlds = sim.level_indices.to_numpy()[:, 0] == 0
        assert 0 < reference_worlds.sum() < 8
        observed, drawn = sim.observations.to_numpy()[..., :5], sim.state.physics.to_numpy()
        np.testing.assert_array_equal(observed[reference_worlds], 1)
        np.testing.assert_array_equal(observed, np.broadcast_to(drawn[:, None] / drawn[reference_worlds][0], (8, 2, 5)))
        np.testing.assert_allclose(observed[~reference_worlds][..., 2:], [[[1.5, 0.5, 2]] * 2] * sum(~reference_worlds))


def test_flat_observations_may_be_left_out() -> None:
    scene = Scene(observations="by_name")
    assert "observations" not in scene.sim.tensors
    assert "final_observations" not in scene.sim.tensors


def test_bearings_are_positive_to_the_right_and_yaw_to_the_left() -> None:
    scene = Scene()
    scene.place(0, 0.0, 5.0, yaw=0.0)
    scene.place(1, 4.0, 5.0, yaw=np.pi / 2)
    scene.sim.refresh()
    np.testing.assert_allclose(scene.partner_observations[0, 0, 0], [0.1, 0.5, 0], atol=1e-6)
    np.testing.assert_allclose(scene.partner_observations[0, 1, 0], [0.1, 0.0, 0], atol=1e-6)
    np.testing.assert_allclose(scene.self_observations[0, :, 6], [0.0, 0.5], atol=1e-6)


def test_heights_do_not_count_as_distance() -> None:
    scene = Scene()
    scene.place(0, 0.0, 5.0)
    scene.place(1, 0.0, 9.0, z=7.0)
    scene.sim.refresh()
    np.testing.assert_allclose(scene.partner_observations[0, 0, 0, :2], [0.1, 0.0], atol=1e-6)
    assert scene.self_observations[0, 1, 4] == pytest.approx(7 / 40)


@pytest.mark.parametrize(("y", "room"), [(-3.0, 0), (13.3, 0), (13.4, 1), (26.6, 1), (26.7, 2), (41.0, 2), (75.0, 2)])
def test_the_room_follows_from_y_and_stays_within_three(y: float, room: int) -> None:
    scene = Scene()
    scene.place(0, 1.0, y)
    scene.sim.refresh()
    assert scene.self_observations[0, 0, 1] == pytest.approx((y - room * c.ROOM_LENGTH) / c.ROOM_LENGTH, abs=1e-5)
    door = scene.doors[0, room]
    assert scene.door_observations[0, 0, 0] == pytest.approx(np.hypot(door[0] - 1.0, door[1] - y) / 40, abs=1e-5)


def test_empty_slots_are_zero_one_zero() -> None:
    scene = Scene(4)
    np.testing.assert_array_equal(
        scene.room_entity_observations[:, :, 2:], np.broadcast_to(np.array([0, 1, 0], dtype=np.float32), (4, 2, 4, 3))
    )


def test_a_cube_belongs_to_its_room_wherever_it_is_pushed() -> None:
    scene = Scene()
    scene.place(0, 0.0, 15.0)
    scene.place_cube(0, 5.0, 5.0)
    scene.sim.refresh()
    cubes = scene.room_entity_observations[0, 0]
    assert cubes[2, 2] == np.float32(c.CUBE / 6)
    assert cubes[2, 0] == pytest.approx(np.hypot(5.0, 10.0) / 40, abs=1e-6)


def test_yaw_stays_within_one_turn_while_spinning() -> None:
    scene = Scene(2)
    scene.open_floor()
    scene.actions[0, :] = [0, 0, 0, 0]
    scene.actions[1, :] = [0, 0, 4, 0]
    for _ in range(60):
        scene.step()
        assert (np.abs(scene.self_observations[..., 6]) <= 1).all()


def test_refresh_changes_nothing_but_observations() -> None:
    scene = Scene(16, seed=8)
    for actions in random_actions(2, 10, 16):
        scene.actions[:] = actions
        scene.step()
    before, observed = scene.sim.hash(), scene.snapshot(*OBSERVATIONS)
    scene.sim.refresh()
    assert scene.sim.hash() == before
    for name, values in observed.items():
        np.testing.assert_array_equal(getattr(scene, name), values)


def test_a_quaternion_and_its_negative_give_the_same_observations() -> None:
    scene = Scene()
    scene.place(0, 0.0, 5.0, yaw=2.0)
    scene.sim.refresh()
    before = scene.self_observations.copy()
    scene.body_rotations[0, 0] = -yaw_quaternion(2.0)
    scene.sim.refresh()
    np.testing.assert_allclose(scene.self_observations, before, atol=1e-6)
