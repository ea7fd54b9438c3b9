"""Pushing covers the distances measured in the reference environment; pulling is tested in test_ensembles.py.

The order in which contacts are solved is not specified, so agreement means 10% for pushing a cube, 2% for pushing the
other agent.
"""

import numpy as np
import pytest
from tests.scenes import FORWARD, STRAIGHT, Scene

STEPS = 40


def test_pushing_a_cube_or_the_other_agent():
    """A world per amount of the push: with a cube, which at first moves straight, or with the other agent ahead."""
    scene = Scene(6).open_floor()
    cube = scene.place_cube(0, [0.0] * 3 + [500.0] * 3, 3.0)
    scene.place(1, 0.0, 2.5, worlds=slice(3, 6))
    scene.act()
    scene.actions[:, 0] = [(amount, FORWARD, STRAIGHT, 0) for amount in (1, 2, 3, 1, 2, 3)]
    scene.step(5)
    # Pushing from behind is unstable: rounding makes the cube drift sideways after a while
    assert np.abs(scene.body_positions[:, 0, 0]).max() < 0.1
    assert np.abs(scene.body_positions[:3, cube, 0]).max() < 0.1
    assert np.abs(scene.body_rotations[:3, cube, 3]).max() < 0.03
    scene.step(STEPS - 5)
    assert scene.body_positions[:3, 0, 1] == pytest.approx([7.9, 20.1, 30.6], rel=0.10)
    assert scene.body_positions[3:, 0, 1] == pytest.approx([6.9, 13.6, 20.2], rel=0.02)


def test_a_push_off_the_middle_turns_the_cube():
    """Pushed at its right half the cube turns to the left, and vice versa."""
    scene = Scene(2).open_floor()
    cube = scene.place_cube(0, [-1.0, 1.0], 3.0)
    scene.act(2, FORWARD, STRAIGHT, 0, agents=0).step(5)
    assert scene.body_rotations[0, cube, 3] > 0.01
    assert scene.body_rotations[1, cube, 3] < -0.01


def test_opposite_pushes_cancel():
    scene = Scene().open_floor()
    cube = scene.place_cube(0, 0.0, 0.0)
    scene.place(0, 0.0, -2.6)
    scene.place(1, 0.0, 2.6, yaw=3.14159265)
    scene.act(3, FORWARD, STRAIGHT, 0).step(STEPS)
    assert abs(scene.body_positions[0, cube, 1]) < 1.5  # a single agent covers 30
    assert scene.body_positions[0, 0, 1] < scene.body_positions[0, cube, 1] < scene.body_positions[0, 1, 1]
