"""Buttons and doors: pressed by bounds, the flag in the step of the press, the panel from the next step on.

Those of whole episodes are in test_episodes.py.
"""

import numpy as np
import pytest
from tests.scenes import FORWARD, STRAIGHT, Scene

ROOMS = FIRST, SECOND, THIRD = range(3)
OPENING = [-1.2, -2.4, -3.6, -4.8]


def on_buttons(room):
    """Both agents stand on the buttons of a room; cubes are far away."""
    scene = Scene(1, seed=1)
    return_to(scene, room)
    for cube in range(5):
        scene.place_cube(cube, 100.0 + 10 * cube, 0.0)
    return scene


def return_to(scene, room):
    for agent in range(2):
        scene.place(agent, *scene.button_positions[:, 2 * room + agent, :2].T)


def leave(scene):
    for agent in range(2):
        scene.place(agent, -5.0 + 10 * agent, 1.5)


def heights(scene, room, steps):
    """Of the panel, after each of these steps."""
    found = []
    for _ in range(steps):
        scene.step()
        found.append(float(scene.doors[0, room, 2]))
    return found


def test_the_flag_opens_in_the_step_of_the_press_and_the_panel_moves_from_the_next():
    for room in ROOMS:
        scene = on_buttons(room)
        assert heights(scene, room, 1) == [0]
        assert scene.button_pressed[0].tolist() == [int(button // 2 == room) for button in range(6)]
        assert scene.door_open[0].tolist() == [int(door == room) for door in range(3)]
        assert scene.door_observations[0, :, 2].tolist() == [1, 1]
        assert heights(scene, room, 6) == pytest.approx([*OPENING, -4.8, -4.8], abs=1e-5)


def test_the_first_two_doors_stay_open_and_the_third_closes_when_a_button_is_left():
    for room in ROOMS:
        scene = on_buttons(room)
        scene.step(6)
        leave(scene)
        closing = [-4.8, -3.6, -2.4, -1.2, 0, 0] if room == THIRD else [-4.8] * 6
        assert heights(scene, room, 6) == pytest.approx(closing, abs=1e-5)
        assert not scene.button_pressed.any()
        assert scene.door_open[0, room] == (room != THIRD)


@pytest.mark.parametrize("agents", [1, 2])
def test_a_door_that_closes_does_not_push_back_agents_who_walk_through(agents):
    """One agent, or two beside each other, which the general solver moves. The panel spans y from 7.5 to 8.5."""
    for amount in (1, 2, 3):
        scene = Scene(256, num_agents=2).open_floor()
        scene.static_positions[:, scene.door_static[0, 2]] = [0, 8, -4.8]
        scene.door_open[:, 2] = 0
        generator = np.random.default_rng(7)
        y = generator.uniform(6.5, 9.5, 256)
        for agent in range(agents):
            x = generator.uniform(-0.3, 0.3, 256) + (2.8 * agent - 1.4) * (agents - 1)
            scene.place(agent, x, y, yaw=generator.uniform(-0.3, 0.3, 256))
        scene.act(amount, FORWARD, STRAIGHT, 0, agents=slice(0, agents))
        pushed_back = np.zeros((256, agents), dtype=bool)
        for _ in range(12):
            before = scene.body_positions[:, :agents, 1].copy()
            scene.step()
            after = scene.body_positions[:, :agents, 1]
            pushed_back |= after < before - 0.05
            assert np.abs(scene.body_positions[:, :agents, 2]).max() == 0
        assert pushed_back.mean() <= 0.02
        assert ((after > 9) | pushed_back | (y[:, None] < 6.6)).all()


def test_a_door_that_closes_puts_aside_agents_who_stand_in_it():
    scene = Scene(64).open_floor()
    scene.static_positions[:, scene.door_static[0, 2]] = [0, 8, -4.8]
    scene.door_open[:, 2] = 0
    y = np.linspace(6.6, 9.4, 64)
    scene.place(0, 0.0, y)
    scene.step(6)
    np.testing.assert_allclose(scene.body_positions[:, 0, 1], np.where(y < 8, 6.5, 9.5), atol=0.02)


def test_a_door_that_closes_leaves_no_sleeping_cube_in_its_panel():
    """Cubes at rest above the sunk panel, which spans y from 7.5 to 8.5, are lifted or put aside at once."""
    scene = Scene(64).open_floor()
    scene.static_positions[:, scene.door_static[0, 2]] = [0, 8, 0]
    scene.button_positions[:, 4:] = 0
    scene.step(6)
    y = np.linspace(6.05, 9.95, 64)
    cube = scene.place_cube(0, 0.0, y)
    scene.step(20)
    asleep = scene.body_positions[:, cube].copy()
    np.testing.assert_allclose(asleep[:, 1], y, atol=1e-3)
    scene.step(20)
    np.testing.assert_array_equal(scene.body_positions[:, cube], asleep)
    scene.place(0, 20.0, 0.0)
    for height in (-4.8, -3.6, -2.4, -1.2, 0, 0):
        scene.step()
        assert scene.doors[:, 2, 2] == pytest.approx(np.full(64, height), abs=1e-5)
        top = height + scene.static_sizes[:, scene.door_static[0, 2], 2]
        beside = np.abs(scene.body_positions[:, cube, 1] - 8) > 1.95
        above = scene.body_positions[:, cube, 2] - 1.5 > top - 0.05
        assert (beside | above).all()


def presses_a_button_at_the_origin(scene):
    scene.button_positions[0, 0] = [0, 0, 0]
    return scene.step().button_pressed[0, 0]


def test_a_button_is_pressed_where_bounds_along_the_world_axes_overlap():
    """Turned by 45 degrees an agent's bounds are 1.414 wide: its corner need not be over the plate."""
    places = [((1.64, 0), 0, 1), ((1.66, 0), 0, 0), ((-1.64, 0), 0, 1), ((-1.66, 0), 0, 0), ((0, 1.64), 0, 1)]
    places += [((0, 1.66), 0, 0), ((0, -1.64), 0, 1), ((0, -1.66), 0, 0), ((2.0, 2.0), np.pi / 4, 1)]
    for (x, y), yaw, is_pressed in places:
        scene = Scene().open_floor()
        scene.place(0, x, y, yaw=yaw)
        assert presses_a_button_at_the_origin(scene) == is_pressed


def test_a_body_above_the_plate_does_not_press():
    """A step falls at most 0.0157 m: 4 substeps of gravity from rest."""
    for height, is_pressed in ((0.1, 1), (0.9, 0)):
        scene = Scene().open_floor()
        scene.place(0, 20.0, 0.0)
        scene.place_cube(0, 0.0, 0.0, z=1.5 + height)
        assert presses_a_button_at_the_origin(scene) == is_pressed


def test_a_button_opens_the_door_it_is_linked_to_and_one_that_no_button_opens_stays_closed():
    """A level may not have such a door, but an edit may link all buttons to another one."""
    scene = Scene(16, seed=1)
    scene.button_doors[:] = 1
    for pressed in (0, 1):
        scene.button_positions[:] = 1000.0 * (1 - pressed)
        scene.place(0, 0.0, 0.0)
        scene.step()
        assert scene.door_open.tolist() == [[0, pressed, 0]] * 16
        assert not scene.doors[:, [FIRST, THIRD], 2].any()
