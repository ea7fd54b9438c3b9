"""Lidar equals a brute-force search over all boxes, without assumptions about the level.

Along episodes it is compared in test_episodes.py.
"""

import numpy as np
import pytest
from tests.reference import constants as c
from tests.reference.boxes import random_quaternions
from tests.scenes import FAR, Scene, random_state
from tests.sim.agreement import assert_lidar_equal


@pytest.mark.parametrize("num_agents", [1, 2, 3, 8])
def test_lidar_of_any_state_equals_brute_force(num_agents):
    scene = Scene(128, seed=1, num_agents=num_agents)
    for seed in range(1 if num_agents > 2 else 3):
        random_state(scene, 100 + seed)
        scene.sim.refresh()
        assert_lidar_equal(scene)


def test_lidar_of_tumbling_cubes_equals_brute_force():
    """Agents among cubes in every attitude, all within reach of their rays."""
    scene, generator = Scene(256, seed=4), np.random.default_rng(0)
    scene.remove_statics()
    scene.body_positions[:, 2:, :2] = generator.uniform(-12, 12, (256, 5, 2))
    scene.body_positions[:, 2:, 2] = generator.uniform(-1.5, 2.5, (256, 5))
    scene.body_rotations[:, 2:] = random_quaternions(generator, (256, 5))
    scene.place(0, 0.0, 0.0, yaw=generator.uniform(-3, 3, 256))
    scene.place(1, generator.uniform(-9, 9, 256), generator.uniform(-9, 9, 256), yaw=generator.uniform(-3, 3, 256))
    scene.sim.refresh()
    assert_lidar_equal(scene, most_left_out=0.03)


def test_rays_go_counter_clockwise_from_forward_twelve_degrees_apart():
    """A partner that only one ray hits determines the rays' order; a miss is (0, 0)."""
    scene, angle = Scene(30).open_floor(), np.radians(12.0 * np.arange(30))
    scene.place(0, 0.0, 0.0, yaw=0.3)
    scene.place(1, -12 * np.sin(angle + 0.3), 12 * np.cos(angle + 0.3), yaw=angle + 0.3)
    scene.sim.refresh()
    seen = np.eye(30, dtype=bool)
    np.testing.assert_allclose(scene.lidar[:, 0][seen], [(11 / 40, np.float32(c.AGENT / 6))] * 30, atol=1e-5)
    assert not scene.lidar[:, 0][~seen].any()


def test_rays_end_at_200():
    for distance, seen in ((199.9, True), (200.1, False), (-FAR, False)):
        scene = Scene().open_floor()
        scene.place(1, 0.0, distance + 1.0)
        scene.sim.refresh()
        ray = scene.lidar[0, 0, 0]
        assert bool(ray[1]) is seen
        assert ray[0] == pytest.approx(distance / 40 if seen else 0.0, abs=1e-4)
