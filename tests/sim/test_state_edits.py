"""The next step uses all edits of `sim.state`; impossible indices are clamped and counted."""

import numpy as np
import pytest
from tests.reference import constants as c
from tests.reference.boxes import yaw_quaternion
from tests.scenes import FORWARD, STRAIGHT, Scene, play, random_actions


def test_a_cube_given_a_velocity_slides_until_friction_stops_it():
    scene = Scene().open_floor()
    cube = scene.place_cube(0, 0.0, 10.0)
    scene.step(5)
    scene.body_linear_velocities[0, cube] = [4.0, 0, 0]
    scene.step()
    assert scene.body_positions[0, cube, 0] > 0.1
    scene.step(200)
    assert 0.3 < scene.body_positions[0, cube, 0] < 8
    assert np.abs(scene.body_linear_velocities[0, cube]).max() < 0.05


def test_a_moved_wall_stops_an_agent_and_a_static_without_kind_does_not():
    scene = Scene(3).open_floor()
    wall = scene.place_wall([0, 5, 0], [20, 1, 5], worlds=slice(0, 2))
    scene.static_kinds[1, wall] = c.NONE
    scene.act(3, FORWARD, STRAIGHT, 0, agents=0).step(10)
    np.testing.assert_allclose(scene.body_positions[:, 0, 1], [3.5, 9.995, 9.995], atol=0.03)
    assert not scene.lidar[1:, 0].any()


def test_a_grab_set_by_hand_holds():
    scene = Scene().open_floor()
    cube = scene.place_cube(0, 0.0, 2.7)
    scene.act(0, FORWARD, STRAIGHT, 1, agents=0).step()
    scene.agent_grabs[0, 0] = -1
    scene.act(3, 4, STRAIGHT, 0, agents=0)
    before = scene.body_positions[0, cube].copy()
    scene.step(5)
    np.testing.assert_allclose(scene.body_positions[0, cube], before, atol=1e-3)
    assert scene.self_observations[0, 0, 7] == 0


def test_impossible_indices_are_clamped_and_counted():
    impossible = {"agent_grabs": (10**6, -5, 0), "button_doors": (77, -1), "door_static": (500, -2)}
    impossible["static_kinds"] = (99, -1)
    for field, values in impossible.items():
        for value in values:
            scene = Scene(70)
            getattr(scene, field)[3, 1] = value
            scene.step()
            assert getattr(scene, field)[3, 1] != value
            health = scene.sim.health
            assert (health.repaired_indices, health.culprit_world, health.culprit_body) == (1, 3, None)
            scene.step()
            assert scene.sim.health.repaired_indices == 1
            scene.sim.save()


def test_the_latest_error_names_its_world_and_step():
    scene, steps = Scene(70), []
    for number, world in enumerate((5, 60, 2), 1):
        scene.agent_grabs[world, 1] = 99
        scene.step()
        health = scene.sim.health
        assert (health.repaired_indices, health.culprit_world) == (number, world)
        steps.append(health.culprit_step)
    assert np.diff(steps).tolist() == [1, 1]


@pytest.mark.parametrize("field", ["body_positions", "body_rotations", "body_linear_velocities", "static_positions"])
def test_absurd_values_do_not_spread_to_other_worlds(field):
    absurd = {3: np.nan, 17: np.inf, 38: -np.inf, 39: 1e38}
    scene, twin = Scene(70, seed=1), Scene(70, seed=1)
    for world, value in absurd.items():
        getattr(scene, field)[world] = value
    _ = getattr(twin, field)
    play(random_actions(1, 20, 70), scene, twin)
    others = ~np.isin(np.arange(70), list(absurd))
    np.testing.assert_array_equal(scene.body_positions[others], twin.body_positions[others])
    np.testing.assert_array_equal(scene.lidar[others], twin.lidar[others])
    scene.sim.reset(list(absurd))
    assert np.isfinite(scene.body_positions).all()
    assert np.isfinite(scene.self_observations).all()


def test_holding_views_of_the_state_changes_no_result():
    plain, watched = Scene(32, seed=9), Scene(32, seed=9)
    _ = watched.body_positions, watched.static_sizes, watched.agent_grabs
    play(random_actions(2, 60, 32), plain, watched)
    assert plain.sim.hash() == watched.sim.hash()


def test_agents_only_yaw_whatever_is_written_into_their_velocities():
    scene = Scene().open_floor()
    scene.body_rotations[0, 0] = yaw_quaternion(0.5)
    scene.body_angular_velocities[0, 0] = [3.0, -2.0, 0.0]
    scene.step(3)
    np.testing.assert_allclose(scene.body_rotations[0, 0], yaw_quaternion(0.5), atol=1e-5)


def test_an_agent_beyond_the_world_does_not_grab_unused_slots():
    """Far away, at the position of unused slots, with a quaternion that is not a rotation."""
    scene = Scene()
    scene.body_positions[0, 2:] = 1e9
    scene.body_positions[0, 0] = [1e9 + 320, 1e9 + 320, 1e9]
    scene.body_rotations[0, 0] = [10, 0, 0, 10]
    scene.act(0, FORWARD, STRAIGHT, 1).step(3)
    assert scene.agent_grabs[0, 0] < scene.body_positions.shape[1]


def test_contacts_beyond_the_capacity_are_dropped_and_counted():
    scene = Scene(4)
    scene.body_positions[:, 0], scene.body_positions[:, 1] = [-5, 5, 0], [5, 5, 0]
    scene.static_positions[:], scene.static_sizes[:] = [0, 5, 0], [20, 1, 5]
    scene.step()
    health = scene.sim.health
    assert health.dropped_contacts > 0
    assert health.culprit_body in (0, 1)
    scene.step(5)
    assert scene.sim.world_hashes().size == 4
