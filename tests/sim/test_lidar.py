"""Lidar equals a brute-force search over all boxes, without assumptions about the level.

In float32 a ray that passes an edge within GROWTH may hit or miss. Such rays are found by casting against slightly
larger and slightly smaller boxes; they are excluded, and must be few.
"""

import numpy as np
import pytest
from tests.reference import constants as c
from tests.reference.boxes import random_quaternions
from tests.reference.lidar import cast
from tests.scenes import FAR, Scene, random_actions, random_state

GROWTH = 1e-4  # metres
SLACK = 2e-4  # metres, beyond the difference that GROWTH makes


def assert_lidar_equal(scene: Scene, most_left_out: float = 0.02) -> None:
    boxes = scene.boxes()
    positions = scene.body_positions[:, scene.agents].astype(np.float64)
    rotations = scene.body_rotations[:, scene.agents].astype(np.float64)
    exact, large, small = (cast(positions, rotations, boxes, growth) for growth in (0.0, GROWTH, -GROWTH))
    spread = np.abs(large.distances - small.distances)
    clear = (large.kinds == small.kinds) & (spread < 0.02)
    assert clear.mean() > 1 - most_left_out
    distances = scene.lidar[..., 0].astype(np.float64) * c.WORLD_LENGTH
    kinds = np.round(scene.lidar[..., 1] * 6).astype(int)
    np.testing.assert_array_equal(kinds[clear], exact.kinds[clear])
    wrong = clear & (np.abs(distances - exact.distances) > spread + SLACK)
    assert not wrong.any(), f"{wrong.sum()} rays, first at {np.argwhere(wrong)[0]}"


@pytest.mark.parametrize("num_agents", [1, 2, 3, 8])
def test_lidar_of_any_state_equals_brute_force(num_agents: int) -> None:
    scene = Scene(256, seed=1, num_agents=num_agents)
    for seed in range(3 if num_agents > 2 else 8):
        random_state(scene, 100 + seed)
        scene.sim.refresh()
        assert_lidar_equal(scene)


def test_lidar_along_episodes_equals_brute_force() -> None:
    scene = Scene(64, seed=2, episode_length=25)
    scene.sim.refresh()
    assert_lidar_equal(scene)
    for actions in random_actions(7, 60, 64):
        scene.actions[:] = actions
        scene.step()
        assert_lidar_equal(scene)


@pytest.mark.parametrize("room", [1, 2])
def test_lidar_among_cubes_equals_brute_force(room: int) -> None:
    scene = Scene(128, seed=3)
    scene.start_in_room(room)
    for actions in random_actions(8 + room, 60, 128):
        scene.actions[:] = actions
        scene.step()
    assert_lidar_equal(scene)


def test_lidar_of_tumbling_cubes_equals_brute_force() -> None:
    """Agents among cubes in every attitude, all within reach of their rays."""
    scene = Scene(256, seed=4)
    generator = np.random.default_rng(0)
    scene.remove_statics()
    scene.body_positions[:, 2:, :2] = generator.uniform(-12, 12, (256, 5, 2))
    scene.body_positions[:, 2:, 2] = generator.uniform(-1.5, 2.5, (256, 5))
    scene.body_rotations[:, 2:] = random_quaternions(generator, (256, 5))
    scene.place(0, 0.0, 0.0, yaw=generator.uniform(-3, 3, 256))
    scene.place(1, generator.uniform(-9, 9, 256), generator.uniform(-9, 9, 256), yaw=generator.uniform(-3, 3, 256))
    scene.sim.refresh()
    assert_lidar_equal(scene, most_left_out=0.03)


def test_rays_go_counter_clockwise_from_forward_twelve_degrees_apart() -> None:
    """A partner that only one ray hits determines the rays' order."""
    scene = Scene(30)
    scene.open_floor()
    angle = np.radians(12.0 * np.arange(30))
    scene.place(0, 0.0, 0.0, yaw=0.3)
    scene.place(1, -12 * np.sin(angle + 0.3), 12 * np.cos(angle + 0.3), yaw=angle + 0.3)
    scene.sim.refresh()
    seen = scene.lidar[:, 0, :, 1] > 0
    assert (seen == np.eye(30, dtype=bool)).all()
    np.testing.assert_allclose(scene.lidar[np.arange(30), 0, np.arange(30), 0], 11 / 40, atol=1e-5)


def test_a_miss_is_zero_zero() -> None:
    scene = Scene()
    scene.open_floor()
    scene.place(1, 0.0, FAR)
    scene.sim.refresh()
    assert not scene.lidar[0, 0].any()


@pytest.mark.parametrize(("distance", "seen"), [(199.9, True), (200.1, False)])
def test_rays_end_at_200(distance: float, seen: bool) -> None:
    scene = Scene()
    scene.open_floor()
    scene.place(1, 0.0, distance + 1.0)
    scene.sim.refresh()
    ray = scene.lidar[0, 0, 0]
    assert bool(ray[1]) is seen
    assert ray[0] == pytest.approx(distance / 40 if seen else 0.0, abs=1e-4)


def test_buttons_are_never_seen() -> None:
    scene = Scene(64, seed=6)
    for actions in random_actions(9, 30, 64):
        scene.actions[:] = actions
        scene.step()
        kinds = np.round(scene.lidar[..., 1] * 6).astype(int)
        assert np.isin(kinds, [c.NONE, c.CUBE, c.WALL, c.AGENT, c.DOOR]).all()


@pytest.mark.parametrize(("height", "seen"), [(0.0, True), (-1.2, True), (-3.6, True), (-3.88, False), (-4.8, False)])
def test_a_door_is_seen_while_it_rises_above_the_rays(height: float, seen: bool) -> None:
    scene = Scene()
    scene.open_floor()
    slot = scene.door_static[0, 0]
    scene.static_positions[0, slot] = [0.0, 6.0, height]
    scene.sim.refresh()
    expected = [np.float32(5.5 / 40), np.float32(c.DOOR / 6)] if seen else [0, 0]
    np.testing.assert_allclose(scene.lidar[0, 0, 0], expected, atol=1e-6)


def test_a_ray_that_starts_inside_a_box_does_not_see_it() -> None:
    scene = Scene()
    scene.open_floor()
    wall = int(np.flatnonzero(scene.static_kinds[0] == c.WALL)[0])
    scene.static_positions[0, wall], scene.static_sizes[0, wall] = [0, 0, 0], [10, 10, 5]
    scene.sim.refresh()
    assert not scene.lidar[0, 0].any()
