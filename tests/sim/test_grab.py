"""Grabbing is a toggle evaluated every step: a ray of length 2 from the eye, cubes only, one fixed joint.

Those of whole episodes are in test_episodes.py.
"""

import numpy as np
from tests.reference import constants as c
from tests.reference.boxes import rotation_matrices, yaw_of
from tests.scenes import BACK, FORWARD, LEFT, RIGHT, STRAIGHT, Scene

GRAB = (0, FORWARD, STRAIGHT, 1)


def before_a_cube(distance=1.5, num_worlds=1):
    """Agent 0 at the origin faces a cube whose near side is `distance` away."""
    scene = Scene(num_worlds).open_floor()
    return scene, scene.place_cube(0, 0.0, distance + c.CUBE_SIDE / 2)


def holding_a_cube(*arguments):
    scene, cube = before_a_cube(*arguments)
    return scene.act(*GRAB, agents=0).step(), cube


def relative_pose(scene, cube):
    """Position and yaw of the cube in the frame of agent 0, per world."""
    frame = rotation_matrices(scene.body_rotations[:, 0])
    offset = (scene.body_positions[:, cube] - scene.body_positions[:, 0]).astype(np.float64)
    turn = yaw_of(scene.body_rotations[:, cube]) - yaw_of(scene.body_rotations[:, 0])
    return np.einsum("nij,ni->nj", frame, offset), np.asarray(np.angle(np.exp(1j * turn)))


def test_holding_grab_alternates_between_grab_and_release():
    scene, cube = before_a_cube()
    scene.act(*GRAB, agents=0)
    for held in (cube, -1) * 3:
        scene.step()
        assert scene.agent_grabs[0].tolist() == [held, -1]
        assert scene.self_observations[0, :, 7].tolist() == [held > 0, 0]
        assert scene.partner_observations[0, :, 0, 2].tolist() == [0, held > 0]


def test_without_the_bit_a_held_cube_stays_held_until_it_is_released_or_a_reset_comes():
    scene, cube = holding_a_cube()
    scene.act().step(10)
    assert scene.agent_grabs[0, 0] == cube
    scene.act(*GRAB, agents=0).step()
    scene.act(3, BACK, STRAIGHT, 0, agents=0)
    place = scene.body_positions[0, 2].copy()
    scene.step(5)
    np.testing.assert_allclose(scene.body_positions[0, 2], place, atol=1e-3)
    scene.agent_grabs[0, 1] = cube
    scene.sim.reset()
    assert (scene.agent_grabs == -1).all()
    assert not scene.self_observations[0, :, 7].any()


def test_the_ray_is_two_metres_long_and_passes_below_a_raised_cube():
    for distance, raised, grabbed in ((1.01, 0, 1), (1.99, 0, 1), (2.01, 0, 0), (5.0, 0, 0), (1.5, 0.6, 0)):
        scene, cube = before_a_cube(distance)
        scene.body_positions[0, cube, 2] += raised
        scene.act(*GRAB, agents=0).step()
        assert (scene.agent_grabs[0, 0] >= 0) == grabbed


def test_the_ray_goes_straight_ahead():
    for offset, grabbed in ((-1.45, True), (1.45, True), (-1.55, False), (1.55, False)):
        scene = Scene().open_floor()
        scene.place(0, 0.0, 0.0, yaw=1.0)
        ahead, right = np.array([-np.sin(1.0), np.cos(1.0)]), np.array([np.cos(1.0), np.sin(1.0)])
        scene.place_cube(0, *(3.1 * ahead + offset * right), yaw=1.0)
        scene.act(*GRAB, agents=0).step()
        assert (scene.agent_grabs[0, 0] >= 0) == grabbed


def test_walls_doors_and_agents_block_the_grab_and_cannot_be_grabbed():
    for with_cube in (True, False):
        scene = Scene(4).open_floor()
        cube = scene.place_cube(0, 0.0, 1.9 + c.CUBE_SIDE / 2 if with_cube else 30.0)
        wall = int(np.flatnonzero(scene.static_kinds[0] == c.WALL)[0])
        door = int(scene.door_static[0, 0])
        scene.static_positions[1, wall], scene.static_sizes[1, wall] = [0, 1.5, 0], [1, 0.2, 5]
        scene.static_positions[2, door], scene.static_sizes[2, door] = [0, 1.5, 0], [1, 0.2, 4]
        scene.place(1, 0.0, 2.5, worlds=3)
        scene.act(*GRAB, agents=0).step()
        assert scene.agent_grabs[:, 0].tolist() == [cube if with_cube else -1, -1, -1, -1]


def test_both_agents_may_hold_the_same_cube():
    scene = Scene().open_floor()
    cube = scene.place_cube(0, 0.0, 0.0)
    scene.place(0, 0.0, -3.0)
    scene.place(1, 0.0, 3.0, yaw=np.pi)
    scene.act(*GRAB).step()
    assert scene.agent_grabs[0].tolist() == [cube, cube]


def test_a_held_cube_keeps_its_pose_relative_to_the_agent():
    """A joint without compliance: it may stretch while it is pulled, and recovers. A world per move and turn."""
    ways = [(1, move, turn, 0) for move in (BACK, LEFT, RIGHT, FORWARD) for turn in (1, 2, 3)]
    scene, cube = holding_a_cube(1.2, len(ways))
    place, yaw = relative_pose(scene, cube)
    scene.act()
    scene.actions[:, 0] = ways
    for _ in range(30):
        scene.step()
        moved, turned = relative_pose(scene, cube)
        assert np.abs(moved - place).max() < 0.35
        assert np.abs(turned - yaw).max() < 0.25
    scene.act().step(15)
    moved, turned = relative_pose(scene, cube)
    assert np.abs(moved - place).max() < 0.05
    assert np.abs(turned - yaw).max() < 0.03


def test_a_grabbed_cube_does_not_jump():
    """A new joint is satisfied: grabbing without moving moves neither body."""
    for distance in (1.35, 1.5, 1.7, 1.95):
        scene, cube = before_a_cube(distance)
        scene.body_rotations[0, cube] = [np.cos(0.1), 0, 0, np.sin(0.1)]
        scene.step()
        before = scene.body_positions.copy()
        scene.act(*GRAB, agents=0).step()
        assert scene.agent_grabs[0, 0] == cube
        scene.act().step(20)
        np.testing.assert_allclose(scene.body_positions, before, atol=0.03)
