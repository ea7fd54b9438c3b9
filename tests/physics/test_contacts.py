"""Solid bodies do not overlap, stay on the floor and in their rooms under all actions, and gain no energy."""

import numpy as np
import pytest
from tests.adversaries import HIGHEST, POLICIES, ShutRooms, violations
from tests.reference import constants as c
from tests.reference.boxes import corners, overlap_depth, random_quaternions, rotation_matrices
from tests.scenes import FORWARD, HARD_LEFT, HARD_RIGHT, STRAIGHT, Scene

RESTING_SPEED = 2 * 9.8 * 0.01  # gravity gives it in two substeps: slower contacts count as at rest


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_leaves_a_closed_room(policy):
    """Of any room; crowds, too."""
    for room, worlds, agents in ((0, 64, 2), (1, 64, 2), (2, 64, 2), (0, 16, 8)):
        scene = Scene(worlds, seed=room, num_agents=agents, strict=True)
        scene.start_in_room(room)
        shut = ShutRooms(scene)
        for step in range(120):
            scene.actions[:] = POLICIES[policy](step, worlds, agents)
            scene.step()
            shut.watch()
            if step % 4 == 0:
                assert not violations(scene) + shut.broken_laws()
        if agents == 2:
            assert not shut.flew[:, scene.agents].any()
            assert shut.flew.mean() < 0.03
            assert not scene.sim.health.dropped_contacts


def test_a_rammed_wall_is_not_entered_from_any_angle():
    """Full speed at a thin wall: 1 m a step against 1 m of wall, at every angle and at every phase of the step."""
    scene = Scene(36 * 10).open_floor()
    scene.place_wall([0, 8, 0], [60, 1, 5])
    yaw = np.repeat(np.radians(np.arange(36) * 10.0), 10)
    scene.place(0, 0.0, 4.0 + np.tile(np.linspace(0, 0.9, 10), 36), yaw=yaw)
    world_direction = np.round(-yaw / (np.pi / 4)).astype(int)  # the move angle closest to +y
    scene.actions[:, 0, 0] = 3
    scene.actions[:, 0, 1] = (-world_direction) % 8
    for _ in range(12):
        scene.step()
        assert scene.body_positions[:, 0, 1].max() < 7.5
        assert scene.body_positions[:, 0, 1].min() > -12
    arrived = scene.body_positions[:, 0, 1] + np.abs(np.cos(yaw)) + np.abs(np.sin(yaw)) > 7.3
    assert arrived.mean() > 0.5


@pytest.mark.parametrize("partner", [False, True])
def test_a_cube_rammed_at_a_wall_stays_in_front_of_it(partner):
    """One agent, or two side by side, press a cube against a wall, at many angles and offsets."""
    scene = Scene(60).open_floor()
    scene.place_wall([0, 8, 0], [60, 1, 5])
    generator = np.random.default_rng(3)
    cube = scene.place_cube(0, generator.uniform(-1, 1, 60), 5.0, yaw=generator.uniform(-0.8, 0.8, 60))
    scene.place(0, -1.1 if partner else 0.0, 1.0, yaw=generator.uniform(-0.2, 0.2, 60))
    if partner:
        scene.place(1, 1.1 + 0.3, 1.0, yaw=generator.uniform(-0.2, 0.2, 60))
    scene.act(3, FORWARD, STRAIGHT, 0)
    for _ in range(60):
        scene.step()
        assert scene.body_positions[:, cube, 1].max() < 7.5
        assert scene.body_positions[:, 0, 1].max() < 7.5
        assert not violations(scene)


def test_a_grabbed_cube_swung_and_driven_into_walls_stays_on_this_side():
    scene = Scene(64).open_floor()
    scene.place_wall([0, 8, 0], [80, 1, 5])
    generator = np.random.default_rng(4)
    scene.place(0, 0.0, 3.0, yaw=np.pi / 2)
    cube = scene.place_cube(0, -3.0, 3.0)
    scene.act(0, FORWARD, STRAIGHT, 1, agents=0).step()
    assert (scene.agent_grabs[:, 0] == cube).all()
    for _ in range(12):
        scene.act()
        scene.actions[:, 0, 0] = generator.integers(0, 4, 64)
        scene.actions[:, 0, 1] = generator.integers(0, 8, 64)
        scene.actions[:, 0, 2] = generator.choice([HARD_LEFT, HARD_RIGHT, 1, 3], 64)
        for _ in range(8):
            before = scene.body_positions[:, [0, cube], 1].copy()
            scene.step()
            crossed = (before < 8) & (scene.body_positions[:, [0, cube], 1] > 8)
            assert not (crossed & ~(np.abs(scene.body_positions[:, [0, cube], 0]) > 38)).any()
            assert not violations(scene)


@pytest.mark.parametrize("body", ["agent", "cube"])
def test_a_door_that_closes_over_a_body_does_not_launch_it(body):
    scene = Scene(32).open_floor()
    scene.static_positions[:, scene.door_static[0, 2]] = [0, 8, -4.8]
    generator = np.random.default_rng(6)
    pose = generator.uniform(-2, 2, 32), generator.uniform(7.0, 9.0, 32)
    place = scene.place_cube if body == "cube" else scene.place
    index = place(0, *pose, yaw=generator.uniform(-3, 3, 32)) or 0
    scene.door_open[:, 2] = 0
    for _ in range(100):
        scene.step()
        assert not violations(scene)
        assert np.abs(scene.body_positions[:, index, :2] - [0, 8]).max() < 9
    assert scene.body_positions[:, index, 2].max() < 4.375 + c.CUBE_SIDE


def test_a_resting_cube_stays_at_rest():
    scene = Scene(64, seed=2, episode_length=100000)
    before = scene.body_positions[:, scene.cubes].copy()
    scene.step(300)
    np.testing.assert_allclose(scene.body_positions[:, scene.cubes], before, atol=1e-3)
    assert np.abs(scene.body_linear_velocities[:, scene.cubes]).max() < 0.05


def test_a_tilted_cube_that_is_dropped_settles_flat():
    scene = Scene(48, episode_length=100000).open_floor()
    cube = scene.place_cube(0, 0.0, 30.0, z=np.linspace(2.7, 4.7, 48))
    scene.body_rotations[:, cube] = random_quaternions(np.random.default_rng(7), (48,))
    scene.step(300)
    up = np.abs(rotation_matrices(scene.body_rotations[:, cube])[:, 2]).max(axis=-1)
    np.testing.assert_allclose(up, 1.0, atol=2e-3)
    np.testing.assert_allclose(scene.body_positions[:, cube, 2], 1.5, atol=0.02)
    assert np.abs(scene.body_linear_velocities[:, cube]).max() < RESTING_SPEED
    assert np.abs(scene.body_angular_velocities[:, cube]).max() < RESTING_SPEED


def test_a_falling_cube_gains_no_energy():
    """Per unit of mass: g z + v^2 / 2 + w^2 / 3 (the cube's moment of inertia is 2/3 of its mass)."""
    scene = Scene(48, episode_length=100000).open_floor()
    cube, generator = scene.place_cube(0, 0.0, 30.0, z=5.0), np.random.default_rng(8)
    scene.body_rotations[:, cube] = random_quaternions(generator, (48,))
    scene.body_linear_velocities[:, cube] = generator.uniform(-3, 3, (48, 3))
    scene.body_angular_velocities[:, cube] = generator.uniform(-3, 3, (48, 3))

    def energy():
        linear = scene.body_linear_velocities[:, cube].astype(np.float64)
        angular = scene.body_angular_velocities[:, cube].astype(np.float64)
        return 9.8 * scene.body_positions[:, cube, 2] + (linear**2).sum(-1) / 2 + (angular**2).sum(-1) / 3

    start = energy()
    for _ in range(200):
        scene.step()
        assert (energy() < start * 1.02 + 0.5).all()
    assert (energy() < start / 2).all()


def test_bodies_that_start_inside_one_another_are_not_launched():
    """Agents over cubes, cubes over cubes, agents over agents and in walls: pushed apart, not shot into the air."""
    scene, generator = Scene(256, seed=3), np.random.default_rng(9)
    scene.body_positions[:, :, :2] = generator.uniform((-6, 2), (6, 10), (256, scene.body_positions.shape[1], 2))
    for _ in range(60):
        scene.step()
        assert not violations(scene)
        assert scene.body_positions[..., 2].max() < HIGHEST
        assert np.abs(scene.body_linear_velocities).max() < 30


def test_agents_started_in_cubes_come_out():
    scene, generator = Scene(128).open_floor(), np.random.default_rng(10)
    scene.place(0, 0.0, 0.0, yaw=generator.uniform(-3, 3, 128))
    cube = scene.place_cube(0, generator.uniform(-2, 2, 128), generator.uniform(-2, 2, 128))
    scene.step(150)
    assert scene.body_positions[:, cube, 2].max() < 6
    depth = overlap_depth(
        scene.body_centres()[:, 0], scene.body_rotations[:, 0], scene.body_sizes[:, 0],
        scene.body_centres()[:, cube], scene.body_rotations[:, cube], scene.body_sizes[:, cube],
    )  # fmt: skip
    assert np.median(depth) < 0.05
    assert depth.max() < 0.5


def test_a_cube_may_stand_on_another():
    """It may slide a little: friction between cubes acts on one point after the other, and never quite stops it."""
    scene = Scene(64).open_floor()
    offset = np.random.default_rng(11).uniform(-0.5, 0.5, (2, 64))
    lower = scene.place_cube(0, 0.0, 20.0)
    upper = scene.place_cube(1, offset[0], 20.0 + offset[1], z=4.5)
    scene.step(150)
    np.testing.assert_allclose(scene.body_positions[:, lower, 2], 1.5, atol=0.03)
    np.testing.assert_allclose(scene.body_positions[:, upper, 2], 4.5, atol=0.06)
    np.testing.assert_allclose(scene.body_positions[:, lower, :2], [[0.0, 20.0]] * 64, atol=1.0)


def test_agents_stay_on_the_floor_while_pushing_and_pulling():
    scene = Scene(64, seed=1)
    scene.start_in_room(1)
    for step in range(150):
        scene.actions[:] = POLICIES["grab and ram"](step, 64, 2)
        scene.step()
        assert np.percentile(scene.body_positions[:, :2, 2], 99) < 0.5
        low = corners(scene.body_centres()[:, :2], scene.body_rotations[:, :2], scene.body_sizes[:, :2])[..., 2]
        assert low.min() > -0.15
