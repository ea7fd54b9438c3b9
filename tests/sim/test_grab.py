"""Grabbing is a toggle evaluated every step: a ray of length 2 from the eye, cubes only, one fixed joint."""

import numpy as np
import pytest
from tests.reference import constants as c
from tests.reference.boxes import rotation_matrices, yaw_of
from tests.scenes import BACK, FORWARD, HARD_LEFT, LEFT, RIGHT, STRAIGHT, Array, Scene, random_actions

GRAB = (0, FORWARD, STRAIGHT, 1)


def before_a_cube(distance: float = 1.5, num_worlds: int = 1) -> tuple[Scene, int]:
    """Agent 0 at the origin faces a cube whose near side is `distance` away."""
    scene = Scene(num_worlds)
    scene.open_floor()
    cube = scene.place_cube(0, 0.0, distance + c.CUBE_SIDE / 2)
    return scene, cube


def relative_pose(scene: Scene, cube: int) -> tuple[Array, Array]:
    """Position and yaw of the cube in the frame of agent 0, per world."""
    frame = rotation_matrices(scene.body_rotations[:, 0])
    offset = (scene.body_positions[:, cube] - scene.body_positions[:, 0]).astype(np.float64)
    turn = yaw_of(scene.body_rotations[:, cube]) - yaw_of(scene.body_rotations[:, 0])
    return np.einsum("nij,ni->nj", frame, offset), np.asarray(np.angle(np.exp(1j * turn)))


def test_grab_takes_the_cube_in_front_and_reports_it() -> None:
    scene, cube = before_a_cube()
    scene.act(*GRAB, agents=0)
    scene.step()
    assert scene.agent_grabs[0].tolist() == [cube, -1]
    assert scene.self_observations[0, :, 7].tolist() == [1, 0]
    assert scene.partner_observations[0, :, 0, 2].tolist() == [0, 1]


def test_holding_grab_alternates_between_grab_and_release() -> None:
    scene, cube = before_a_cube()
    scene.act(*GRAB, agents=0)
    held = []
    for _ in range(6):
        scene.step()
        held.append(int(scene.agent_grabs[0, 0]))
    assert held == [cube, -1] * 3


def test_without_the_bit_a_held_cube_stays_held() -> None:
    scene, cube = before_a_cube()
    scene.act(*GRAB, agents=0)
    scene.step()
    scene.act()
    scene.step(10)
    assert scene.agent_grabs[0, 0] == cube


@pytest.mark.parametrize(("distance", "grabbed"), [(1.01, True), (1.99, True), (2.01, False), (5.0, False)])
def test_the_ray_is_two_metres_long(distance: float, grabbed: bool) -> None:
    scene, _ = before_a_cube(distance)
    scene.act(*GRAB, agents=0)
    scene.step()
    assert (scene.agent_grabs[0, 0] >= 0) == grabbed


@pytest.mark.parametrize(("offset", "grabbed"), [(-1.45, True), (1.45, True), (-1.55, False), (1.55, False)])
def test_the_ray_goes_straight_ahead(offset: float, grabbed: bool) -> None:
    scene = Scene()
    scene.open_floor()
    scene.place(0, 0.0, 0.0, yaw=1.0)
    ahead, right = np.array([-np.sin(1.0), np.cos(1.0)]), np.array([np.cos(1.0), np.sin(1.0)])
    x, y = 3.1 * ahead + offset * right
    scene.place_cube(0, x, y, yaw=1.0)
    scene.act(*GRAB, agents=0)
    scene.step()
    assert (scene.agent_grabs[0, 0] >= 0) == grabbed


def test_a_raised_cube_passes_above_the_ray() -> None:
    scene, cube = before_a_cube()
    scene.body_positions[0, cube, 2] = 1.5 + 0.6
    scene.act(*GRAB, agents=0)
    scene.step()
    assert scene.agent_grabs[0, 0] == -1


def test_walls_doors_and_agents_block_the_grab() -> None:
    scene = Scene(4)
    scene.open_floor()
    cube = scene.place_cube(0, 0.0, 1.9 + c.CUBE_SIDE / 2)
    wall = int(np.flatnonzero(scene.static_kinds[0] == c.WALL)[0])
    door = int(scene.door_static[0, 0])
    scene.static_positions[1, wall], scene.static_sizes[1, wall] = [0, 1.5, 0], [1, 0.2, 5]
    scene.static_positions[2, door], scene.static_sizes[2, door] = [0, 1.5, 0], [1, 0.2, 4]
    scene.place(1, 0.0, 2.5, worlds=3)
    scene.act(*GRAB, agents=0)
    scene.step()
    assert scene.agent_grabs[:, 0].tolist() == [cube, -1, -1, -1]


def test_walls_doors_and_agents_cannot_be_grabbed() -> None:
    scene = Scene(3)
    scene.open_floor()
    wall = int(np.flatnonzero(scene.static_kinds[0] == c.WALL)[0])
    door = int(scene.door_static[0, 0])
    scene.static_positions[0, wall], scene.static_sizes[0, wall] = [0, 2.0, 0], [4, 1, 5]
    scene.static_positions[1, door], scene.static_sizes[1, door] = [0, 2.0, 0], [4, 1, 5]
    scene.place(1, 0.0, 2.5, worlds=2)
    scene.act(*GRAB, agents=0)
    scene.step()
    assert (scene.agent_grabs == -1).all()


def test_release_grabs_nothing_in_the_same_step() -> None:
    scene, _ = before_a_cube()
    scene.act(*GRAB, agents=0)
    scene.step(2)
    assert scene.agent_grabs[0, 0] == -1
    scene.act(3, BACK, STRAIGHT, 0, agents=0)
    place = scene.body_positions[0, 2].copy()
    scene.step(5)
    np.testing.assert_allclose(scene.body_positions[0, 2], place, atol=1e-3)


def test_both_agents_may_hold_the_same_cube() -> None:
    scene = Scene()
    scene.open_floor()
    cube = scene.place_cube(0, 0.0, 0.0)
    scene.place(0, 0.0, -3.0)
    scene.place(1, 0.0, 3.0, yaw=np.pi)
    scene.act(*GRAB)
    scene.step()
    assert scene.agent_grabs[0].tolist() == [cube, cube]


def test_a_reset_ends_every_grab() -> None:
    scene, _ = before_a_cube()
    scene.act(*GRAB, agents=0)
    scene.step()
    scene.sim.reset()
    assert (scene.agent_grabs == -1).all()
    assert not scene.self_observations[0, :, 7].any()


@pytest.mark.parametrize("move", [BACK, LEFT, RIGHT, FORWARD])
@pytest.mark.parametrize("turn", [1, 2, 3])
def test_a_held_cube_keeps_its_pose_relative_to_the_agent(move: int, turn: int) -> None:
    """A joint without compliance: it may stretch while it is pulled, and recovers."""
    scene, cube = before_a_cube(1.2)
    scene.act(*GRAB, agents=0)
    scene.step()
    place, yaw = relative_pose(scene, cube)
    scene.act(1, move, turn, 0, agents=0)
    for _ in range(30):
        scene.step()
        moved, turned = relative_pose(scene, cube)
        assert np.abs(moved - place).max() < 0.35
        assert np.abs(turned - yaw).max() < 0.25
    scene.act()
    scene.step(15)
    moved, turned = relative_pose(scene, cube)
    assert np.abs(moved - place).max() < 0.05
    assert np.abs(turned - yaw).max() < 0.03


def test_a_grabbed_cube_does_not_jump() -> None:
    """A new joint is satisfied: grabbing without moving moves neither body."""
    for distance in (1.35, 1.5, 1.7, 1.95):
        scene, cube = before_a_cube(distance)
        scene.body_rotations[0, cube] = [np.cos(0.1), 0, 0, np.sin(0.1)]
        scene.step()
        before = scene.body_positions.copy()
        scene.act(*GRAB, agents=0)
        scene.step()
        assert scene.agent_grabs[0, 0] == cube
        scene.act()
        scene.step(20)
        np.testing.assert_allclose(scene.body_positions, before, atol=0.03)


def test_a_held_cube_follows_a_turning_agent() -> None:
    scene, cube = before_a_cube(1.5)
    scene.act(*GRAB, agents=0)
    scene.step()
    scene.act(0, FORWARD, HARD_LEFT, 0, agents=0)
    scene.step(20)
    assert scene.agent_grabs[0, 0] == cube
    angle = np.arctan2(*(scene.body_positions[0, cube, :2] - scene.body_positions[0, 0, :2]))
    assert angle < -0.15  # to the left, as far as floor friction on 13 kg allows


def test_random_actions_grab_only_cubes() -> None:
    scene = Scene(256, seed=12)
    scene.start_in_room(2)
    grabbed = 0
    for actions in random_actions(3, 120, 256):
        scene.actions[:] = actions
        scene.step()
        held = scene.agent_grabs
        assert (((held >= 2) & (held < 7)) | (held == -1)).all()
        grabbed += int((held >= 0).sum())
    assert grabbed > 0
