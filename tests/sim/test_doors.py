"""Buttons and doors: pressed by bounds, the flag in the step of the press, the panel from the next step on."""

import numpy as np
import pytest
from tests.reference import rules
from tests.scenes import FORWARD, STRAIGHT, Array, Scene, random_actions

FIRST, SECOND, THIRD = range(3)
OPENING = [-1.2, -2.4, -3.6, -4.8]


def on_buttons(room: int, num_worlds: int = 1) -> Scene:
    """Both agents stand on the buttons of a room; everything else is as generated."""
    scene = Scene(num_worlds, seed=1)
    for agent in range(2):
        button = scene.button_positions[:, 2 * room + agent]
        scene.place(agent, button[:, 0], button[:, 1])
    clear_cubes(scene)
    return scene


def clear_cubes(scene: Scene) -> None:
    for cube in range(5):
        scene.place_cube(cube, 100.0 + 10 * cube, 0.0)


def leave(scene: Scene) -> None:
    for agent in range(2):
        scene.place(agent, -5.0 + 10 * agent, 1.5)


def panel(scene: Scene, room: int) -> float:
    return float(scene.doors[0, room, 2])


@pytest.mark.parametrize("room", [FIRST, SECOND, THIRD])
def test_the_flag_opens_in_the_step_of_the_press_and_the_panel_moves_from_the_next(room: int) -> None:
    scene = on_buttons(room)
    scene.step()
    assert scene.button_pressed[0].tolist() == [int(button // 2 == room) for button in range(6)]
    assert scene.door_open[0].tolist() == [int(door == room) for door in range(3)]
    assert scene.door_observations[0, :, 2].tolist() == [1, 1]
    assert panel(scene, room) == 0
    heights = []
    for _ in range(6):
        scene.step()
        heights.append(panel(scene, room))
    np.testing.assert_allclose(heights, [*OPENING, -4.8, -4.8], atol=1e-5)


@pytest.mark.parametrize("room", [FIRST, SECOND, THIRD])
def test_one_button_is_not_enough(room: int) -> None:
    scene = on_buttons(room)
    scene.place(1, 5.0, 1.5)
    scene.step(3)
    assert scene.button_pressed[0, 2 * room] == 1
    assert scene.button_pressed[0, 2 * room + 1] == 0
    assert not scene.door_open.any()
    assert panel(scene, room) == 0


@pytest.mark.parametrize("room", [FIRST, SECOND])
def test_the_first_two_doors_stay_open(room: int) -> None:
    scene = on_buttons(room)
    scene.step()
    leave(scene)
    scene.step(10)
    assert not scene.button_pressed.any()
    assert scene.door_open[0, room] == 1
    assert panel(scene, room) == pytest.approx(-4.8, abs=1e-5)


def test_the_third_door_closes_when_a_button_is_left() -> None:
    scene = on_buttons(THIRD)
    scene.step(6)
    assert panel(scene, THIRD) == pytest.approx(-4.8, abs=1e-5)
    leave(scene)
    scene.step()
    assert scene.door_open[0, THIRD] == 0
    assert panel(scene, THIRD) == pytest.approx(-4.8, abs=1e-5)
    heights = []
    for _ in range(5):
        scene.step()
        heights.append(panel(scene, THIRD))
    np.testing.assert_allclose(heights, [-3.6, -2.4, -1.2, 0, 0], atol=1e-5)


def test_a_half_open_door_closes_from_where_it_is() -> None:
    scene = on_buttons(THIRD)
    scene.step(3)
    assert panel(scene, THIRD) == pytest.approx(-2.4, abs=1e-5)
    leave(scene)
    heights = []
    for _ in range(5):
        scene.step()
        heights.append(panel(scene, THIRD))
    np.testing.assert_allclose(heights, [-3.6, -2.4, -1.2, 0, 0], atol=1e-5)


@pytest.mark.parametrize("amount", [1, 2, 3])
@pytest.mark.parametrize("agents", [1, 2])
def test_a_door_that_closes_does_not_push_back_agents_who_walk_through(amount: int, agents: int) -> None:
    """One agent, or two beside each other, which the general solver moves. The panel spans y from 7.5 to 8.5."""
    scene = Scene(512, num_agents=2)
    scene.open_floor()
    scene.static_positions[:, scene.door_static[0, 2]] = [0, 8, -4.8]
    scene.door_open[:, 2] = 0
    generator = np.random.default_rng(7)
    y = generator.uniform(6.5, 9.5, 512)
    for agent in range(agents):
        scene.place(
            agent,
            generator.uniform(-0.3, 0.3, 512) + (2.8 * agent - 1.4) * (agents - 1),
            y,
            yaw=generator.uniform(-0.3, 0.3, 512),
        )
    scene.act(amount, FORWARD, STRAIGHT, 0, agents=slice(0, agents))
    pushed_back = np.zeros((512, agents), dtype=bool)
    for _ in range(12):
        before = scene.body_positions[:, :agents, 1].copy()
        scene.step()
        after = scene.body_positions[:, :agents, 1]
        pushed_back |= after < before - 0.05
        assert np.abs(scene.body_positions[:, :agents, 2]).max() == 0
    assert pushed_back.mean() <= 0.02
    assert ((after > 9) | pushed_back | (y[:, None] < 6.6)).all()


def test_a_door_that_closes_puts_aside_agents_who_stand_in_it() -> None:
    scene = Scene(64)
    scene.open_floor()
    scene.static_positions[:, scene.door_static[0, 2]] = [0, 8, -4.8]
    scene.door_open[:, 2] = 0
    y = np.linspace(6.6, 9.4, 64)
    scene.place(0, 0.0, y)
    scene.step(6)
    beside = np.where(y < 8, 6.5, 9.5)
    np.testing.assert_allclose(scene.body_positions[:, 0, 1], beside, atol=0.02)


def test_a_door_that_opens_and_closes_at_every_step_stays_in_its_range() -> None:
    scene = on_buttons(THIRD)
    heights = []
    for step in range(40):
        if step % 3 == 0:
            leave(scene)
        else:
            for agent in range(2):
                button = scene.button_positions[:, 4 + agent]
                scene.place(agent, button[:, 0], button[:, 1])
        scene.step()
        heights.append(panel(scene, THIRD))
    assert min(heights) > -4.81
    assert max(heights) <= 0


def test_cubes_press_buttons() -> None:
    scene = on_buttons(THIRD)
    leave(scene)
    for which in range(2):
        button = scene.button_positions[0, 4 + which]
        scene.place_cube(3 + which, button[0], button[1])
    scene.step()
    assert scene.button_pressed[0].tolist() == [0, 0, 0, 0, 1, 1]
    assert scene.door_open[0, THIRD] == 1


@pytest.mark.parametrize(("offset", "is_pressed"), [(1.64, True), (1.66, False), (-1.64, True), (-1.66, False)])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_button_is_pressed_where_bounds_overlap(offset: float, is_pressed: bool, axis: int) -> None:
    scene = Scene()
    scene.open_floor()
    scene.button_positions[0, 0] = [0, 0, 0]
    scene.place(0, *np.eye(2)[axis] * offset)
    scene.step()
    assert bool(scene.button_pressed[0, 0]) is is_pressed


def test_bounds_are_those_along_the_world_axes() -> None:
    """Turned by 45 degrees an agent's bounds are 1.414 wide: its corner need not be over the plate."""
    scene = Scene()
    scene.open_floor()
    scene.button_positions[0, 0] = [0, 0, 0]
    scene.place(0, 2.0, 2.0, yaw=np.pi / 4)
    scene.step()
    assert scene.button_pressed[0, 0] == 1


@pytest.mark.parametrize(("height", "is_pressed"), [(0.1, True), (0.9, False)])
def test_a_body_above_the_plate_does_not_press(height: float, is_pressed: bool) -> None:
    """A step falls at most 0.0157 m: 4 substeps of gravity from rest."""
    scene = Scene()
    scene.open_floor()
    scene.button_positions[0, 0] = [0, 0, 0]
    scene.place(0, 20.0, 0.0)
    scene.place_cube(0, 0.0, 0.0, z=1.5 + height)
    scene.step()
    assert bool(scene.button_pressed[0, 0]) is is_pressed


def test_a_button_opens_the_door_it_is_linked_to() -> None:
    scene = on_buttons(FIRST)
    scene.button_doors[0] = [1, 1, 0, 0, 2, 2]
    scene.step()
    assert scene.door_open[0].tolist() == [0, 1, 0]


def presses(scene: Scene, margin: float) -> Array:
    bodies = slice(0, scene.cubes.stop)
    return rules.pressed(
        scene.body_centres()[:, bodies],
        scene.body_rotations[:, bodies],
        scene.body_sizes[:, bodies],
        scene.button_positions,
        margin,
    )


@pytest.mark.parametrize("room", [0, 1, 2])
def test_presses_flags_and_panels_follow_the_rules_along_an_episode(room: int) -> None:
    scene = Scene(256, seed=21 + room)
    scene.start_in_room(room)
    for actions in random_actions(30 + room, 150, 256):
        scene.actions[:] = actions
        heights, was_open = scene.doors[:, :, 2].copy(), scene.door_open.copy()
        scene.step()
        certain = presses(scene, 1e-5) == presses(scene, -1e-5)
        assert certain.mean() > 0.99
        np.testing.assert_array_equal(scene.button_pressed[certain], presses(scene, 0.0)[certain])
        np.testing.assert_array_equal(scene.door_open, rules.open_doors(scene.button_pressed, was_open))
        np.testing.assert_allclose(scene.doors[:, :, 2], rules.move_panels(heights, was_open), atol=1e-5)
    assert scene.button_pressed.any()
