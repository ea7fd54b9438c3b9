"""The next step uses all edits of `sim.state`; impossible indices are clamped and counted."""

import numpy as np
import pytest
from tests.reference import constants as c
from tests.reference.boxes import corners, yaw_quaternion
from tests.scenes import FORWARD, STRAIGHT, Scene, random_actions

import doorstep


def test_moved_agents_continue_from_their_new_position() -> None:
    scene = Scene(4)
    scene.place(0, 0.0, [16.0, 17.0, 18.0, 19.0], yaw=np.pi / 2)
    scene.act(3, FORWARD, STRAIGHT, 0, agents=0)
    scene.step()
    np.testing.assert_allclose(scene.body_positions[:, 0, 0], -0.9995, atol=1e-3)
    np.testing.assert_allclose(scene.body_positions[:, 0, 1], [16, 17, 18, 19], atol=1e-3)


def test_edits_show_in_observations_after_refresh() -> None:
    scene = Scene()
    scene.place(0, 4.0, 20.0)
    before = scene.self_observations.copy()
    scene.sim.refresh()
    assert (scene.self_observations != before).any()
    assert scene.self_observations[0, 0, 2:4] == pytest.approx([0.1, 0.5])


def test_a_cube_lifted_into_the_air_falls_and_comes_to_rest_on_the_floor() -> None:
    scene = Scene()
    scene.open_floor()
    scene.step(5)
    cube = scene.place_cube(2, 10.0, 3.0, z=4.0)
    scene.step()
    assert scene.body_positions[0, cube, 2] < 4.0
    assert scene.body_linear_velocities[0, cube, 2] == pytest.approx(-9.8 * 0.04, rel=1e-3)
    scene.step(100)
    np.testing.assert_allclose(scene.body_positions[0, cube], [10, 3, 1.5], atol=0.02)


def test_a_cube_given_a_velocity_slides_until_friction_stops_it() -> None:
    scene = Scene()
    scene.open_floor()
    cube = scene.place_cube(0, 0.0, 10.0)
    scene.step(5)
    scene.body_linear_velocities[0, cube] = [4.0, 0, 0]
    scene.step()
    assert scene.body_positions[0, cube, 0] > 0.1
    scene.step(200)
    assert 0.3 < scene.body_positions[0, cube, 0] < 8
    assert np.abs(scene.body_linear_velocities[0, cube]).max() < 0.05


def test_a_moved_wall_stops_an_agent() -> None:
    scene = Scene(2)
    scene.open_floor()
    wall = int(np.flatnonzero(scene.static_kinds[0] == c.WALL)[0])
    scene.static_positions[0, wall], scene.static_sizes[0, wall] = [0, 5, 0], [20, 1, 5]
    scene.act(3, FORWARD, STRAIGHT, 0, agents=0)
    scene.step(10)
    assert scene.body_positions[0, 0, 1] == pytest.approx(3.5, abs=0.15)
    assert scene.body_positions[1, 0, 1] == pytest.approx(9.995, abs=0.02)


def test_a_static_without_kind_has_no_effect() -> None:
    scene = Scene()
    scene.open_floor()
    wall = int(np.flatnonzero(scene.static_kinds[0] == c.WALL)[0])
    scene.static_positions[0, wall], scene.static_sizes[0, wall] = [0, 5, 0], [20, 1, 5]
    scene.static_kinds[0, wall] = c.NONE
    scene.act(3, FORWARD, STRAIGHT, 0, agents=0)
    scene.step(10)
    assert scene.body_positions[0, 0, 1] == pytest.approx(9.995, abs=0.02)
    assert not scene.lidar[0, 0].any()


def test_door_flags_can_be_set_by_hand() -> None:
    scene = Scene()
    scene.door_open[0, 0] = 1
    scene.step(4)
    assert scene.doors[0, 0, 2] == pytest.approx(-4.8, abs=1e-5)
    assert scene.door_open[0, 0] == 1


def test_a_grab_set_by_hand_holds() -> None:
    scene = Scene()
    scene.open_floor()
    cube = scene.place_cube(0, 0.0, 2.7)
    scene.act(0, FORWARD, STRAIGHT, 1, agents=0)
    scene.step()
    scene.agent_grabs[0, 0] = -1
    scene.act(3, 4, STRAIGHT, 0, agents=0)
    before = scene.body_positions[0, cube].copy()
    scene.step(5)
    np.testing.assert_allclose(scene.body_positions[0, cube], before, atol=1e-3)
    assert scene.self_observations[0, 0, 7] == 0


@pytest.mark.parametrize(
    ("field", "index", "value"),
    [
        ("agent_grabs", (0, 0), 10**6), ("agent_grabs", (0, 0), -5), ("agent_grabs", (0, 1), 0),
        ("button_doors", (0, 3), 77), ("button_doors", (0, 3), -1),
        ("door_static", (0, 1), 500), ("door_static", (0, 1), -2),
        ("static_kinds", (0, 2), 99), ("static_kinds", (0, 2), -1),
    ],
)  # fmt: skip
def test_impossible_indices_are_clamped_and_counted(field: str, index: tuple[int, int], value: int) -> None:
    scene = Scene(3)
    getattr(scene, field)[index] = value
    scene.step()
    assert getattr(scene, field)[index] != value
    assert scene.sim.health.repaired_indices == 1
    scene.step()
    assert scene.sim.health.repaired_indices == 1
    scene.sim.save()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e38])
@pytest.mark.parametrize("field", ["body_positions", "body_rotations", "body_linear_velocities", "static_positions"])
def test_absurd_values_do_not_spread_to_other_worlds(field: str, value: float) -> None:
    scene, twin = Scene(40, seed=1), Scene(40, seed=1)
    getattr(scene, field)[3] = value
    _ = getattr(twin, field)
    for actions in random_actions(1, 20, 40):
        for one in (scene, twin):
            one.actions[:] = actions
            one.step()
    others = np.arange(40) != 3
    np.testing.assert_array_equal(scene.body_positions[others], twin.body_positions[others])
    np.testing.assert_array_equal(scene.lidar[others], twin.lidar[others])
    scene.sim.reset([3])
    assert np.isfinite(scene.body_positions).all()
    assert np.isfinite(scene.self_observations).all()


def test_holding_views_of_the_state_changes_no_result() -> None:
    plain, watched = Scene(32, seed=9), Scene(32, seed=9)
    _ = watched.body_positions, watched.static_sizes, watched.agent_grabs
    for actions in random_actions(2, 60, 32):
        for one in (plain, watched):
            one.actions[:] = actions
            one.step()
    assert plain.sim.hash() == watched.sim.hash()


def test_a_tilted_cube_never_leaves_the_floor() -> None:
    scene = Scene(64)
    scene.open_floor()
    generator = np.random.default_rng(1)
    cube = scene.place_cube(0, 0.0, 20.0, z=3.0)
    axis = generator.normal(size=(64, 4))
    scene.body_rotations[:, cube] = axis / np.linalg.norm(axis, axis=1, keepdims=True)
    for _ in range(100):
        scene.step()
        low = corners(scene.body_positions[:, cube], scene.body_rotations[:, cube], scene.body_sizes[:, cube])
        assert low[..., 2].min() > -0.1


def test_agents_only_yaw_whatever_is_written_into_their_velocities() -> None:
    scene = Scene()
    scene.open_floor()
    scene.body_rotations[0, 0] = yaw_quaternion(0.5)
    scene.body_angular_velocities[0, 0] = [3.0, -2.0, 0.0]
    scene.step(3)
    np.testing.assert_allclose(scene.body_rotations[0, 0], yaw_quaternion(0.5), atol=1e-5)


@pytest.mark.parametrize(
    "field", ["agent_max_y", "static_positions", "static_sizes", "button_positions", "body_positions"]
)
def test_values_that_are_not_finite_are_noticed_wherever_they_are_written(field: str) -> None:
    scene = Scene(3, strict=True)
    getattr(scene, field)[1, 0] = np.nan
    scene.step()
    assert scene.sim.health.nonfinite_values >= 1
    with pytest.raises(doorstep.SimulationError, match="not finite: world 1"):
        scene.step()


def test_an_agent_beyond_the_world_does_not_grab_unused_slots() -> None:
    """Far away, at the position of unused slots, with a quaternion that is not a rotation."""
    scene = Scene()
    scene.body_positions[0, 2:] = 1e9
    scene.body_positions[0, 0] = [1e9 + 320, 1e9 + 320, 1e9]
    scene.body_rotations[0, 0] = [10, 0, 0, 10]
    scene.act(0, FORWARD, STRAIGHT, 1)
    scene.step(3)
    assert scene.agent_grabs[0, 0] < scene.body_positions.shape[1]


def test_contacts_beyond_the_capacity_are_dropped_and_counted() -> None:
    scene = Scene(4)
    scene.body_positions[:, 0], scene.body_positions[:, 1] = [-5, 5, 0], [5, 5, 0]
    scene.static_positions[:], scene.static_sizes[:] = [0, 5, 0], [20, 1, 5]
    scene.step()
    health = scene.sim.health
    assert health.dropped_contacts > 0
    assert health.culprit_body in (0, 1)
    scene.step(5)
    assert scene.sim.world_hashes().size == 4
