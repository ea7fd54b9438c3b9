"""`Simulator.render` shows what the state says, from where it was asked to."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from tests.render.pixels import (
    AGENTS,
    CUBE,
    DOORS,
    FLOOR,
    GRID,
    GROUND,
    LIT,
    WALL,
    at,
    has_hue,
    hue,
    in_light,
    top_pixels,
)

import doorstep
from doorstep import CameraPose, EntityKind, Simulator
from doorstep.render import look

WORLD = 2
Picture = NDArray[np.uint8]


def make(**settings: Any) -> Simulator:
    return Simulator(4, seed=5, num_threads=1, **settings)


def level_bounds(sim: Simulator, world: int = WORLD) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of the walls, and the exit behind the last door."""
    positions, sizes = sim.state.static_positions.to_numpy()[world], sim.state.static_sizes.to_numpy()[world]
    low, high = (positions - sizes / 2)[:, :2].min(axis=0), (positions + sizes / 2)[:, :2].max(axis=0)
    return low, high + np.array((0, look.EXIT_DEPTH))


def is_level(picture: Picture) -> NDArray[np.bool_]:
    """Which pixels show anything but the floor around the level; without shadows."""
    return np.abs(picture - in_light(GROUND, LIT)).max(axis=-1) > 7.5  # type: ignore[no-any-return]


def places(sim: Simulator, points: Any, picture: Picture) -> NDArray[Any]:
    return top_pixels(points, *level_bounds(sim), picture.shape[1], picture.shape[0])


def put(sim: Simulator, body: int, position: tuple[float, float, float], yaw: float = 0.0) -> None:
    sim.state.body_positions.to_numpy()[WORLD, body] = position
    sim.state.body_rotations.to_numpy()[WORLD, body] = (np.cos(yaw / 2), 0, 0, np.sin(yaw / 2))


# ---- From above


@pytest.mark.parametrize("size", [(640, 480), (300, 480), (128, 512), (90, 90)])
def test_from_above_everything_is_where_the_state_says(size: tuple[int, int]) -> None:
    with make() as sim:
        put(sim, 0, (3.0, 4.0, 0.0))
        put(sim, 1, (-4.0, 20.0, 0.0))
        picture = sim.render(WORLD, width=size[0], height=size[1])
        assert picture.shape == (size[1], size[0], 3)
        assert picture.dtype == np.uint8

        state = sim.state
        bodies, kinds = state.body_positions.to_numpy()[WORLD], state.body_kinds.to_numpy()[WORLD]
        for place in places(sim, bodies[kinds == EntityKind.CUBE], picture):
            assert has_hue(np.array(at(picture, place)), CUBE)
        for agent, place in enumerate(places(sim, bodies[:2], picture)):
            assert has_hue(np.array(at(picture, place)), AGENTS[agent])
        statics, kinds = state.static_positions.to_numpy()[WORLD], state.static_kinds.to_numpy()[WORLD]
        for place in places(sim, statics[kinds == EntityKind.WALL], picture):
            assert has_hue(np.array(at(picture, place)), WALL)
        for door, place in enumerate(places(sim, statics[state.door_static.to_numpy()[WORLD]], picture)):
            assert has_hue(np.array(at(picture, place)), DOORS[door])
        buttons, doors = state.button_positions.to_numpy()[WORLD], state.button_doors.to_numpy()[WORLD]
        for door, place in zip(doors, places(sim, buttons, picture), strict=True):
            assert has_hue(np.array(at(picture, place)), DOORS[door])


def test_the_level_fills_the_picture_whatever_its_shape() -> None:
    with make() as sim:
        for width, height in ((640, 480), (200, 700), (700, 100), (64, 64)):
            picture = sim.render(WORLD, width=width, height=height, shadows=False)
            corners = places(sim, level_bounds(sim), picture)
            assert corners.min() >= 0
            assert (corners <= (width, height)).all()
            extent = np.abs(corners[1] - corners[0]) / (width, height)
            assert extent.max() == pytest.approx(1 / 1.04)
            level = np.argwhere(is_level(picture))
            seen = (level.max(axis=0) - level.min(axis=0) + 1)[::-1]
            assert seen == pytest.approx(np.abs(corners[1] - corners[0]), abs=2)


def test_lit_faces_have_the_colours_of_the_look_and_shadows_fall_away_from_the_sun() -> None:
    with make() as sim:
        put(sim, 0, (8.0, 17.0, 0.0))
        put(sim, 1, (-8.0, 17.0, 0.0))
        put(sim, 2, (0.0, 6.0, 1.5))
        with_shadows = sim.render(WORLD, width=800, height=1600)
        without = sim.render(WORLD, width=800, height=1600, shadows=False)
        # the shadow of a point moves by this, per metre of its height
        along = -np.array(look.TO_SUN[:2]) / look.TO_SUN[2]
        sign = np.sign(along)
        corner = np.array([0.0, 6.0]) + 1.5 * sign
        top, shadow, bright, behind = places(
            sim, [(0.0, 6.0), corner + 1.2 * along, (4.5, 5.5), (0.0, 6.0) - 2.2 * sign], with_shadows
        )
        assert at(with_shadows, top) == pytest.approx(in_light(CUBE, LIT), abs=1)
        assert at(with_shadows, bright) == pytest.approx(in_light(FLOOR, LIT), abs=2)
        assert max(at(with_shadows, shadow)) < min(in_light(FLOOR, look.SKY)) + 1
        assert min(at(without, shadow)) > min(in_light(GRID, LIT)) - 1
        assert min(at(with_shadows, behind)) > max(in_light(FLOOR, look.SKY))  # only its corner is darker


def test_the_floor_is_darker_the_nearer_it_is_to_a_wall() -> None:
    with make() as sim:
        put(sim, 2, (5.0, 6.0, 1.5))
        picture = sim.render(WORLD, width=800, height=1600)
        # the sun comes from +x: the wall whose side is at x = -10 throws its shadow away from the room
        levels = [min(at(picture, place)) for place in places(sim, [(x, 6.5) for x in (-9.7, -9.3, -8.5)], picture)]
        assert levels[0] < levels[1] - 3 < levels[2] - 6


def test_shadows_have_soft_borders() -> None:
    with make() as sim:
        put(sim, 2, (0.0, 6.0, 1.5))
        picture = sim.render(WORLD, CameraPose((-2.5, 8.0, 30.0), (0.5**0.5, -(0.5**0.5), 0, 0), view_height=4.0))
        levels = np.unique(picture[..., 0])
        assert len(levels) > 60


def test_agents_can_be_told_apart() -> None:
    with make(num_agents=8) as sim:
        for agent in range(8):
            put(sim, agent, (-7.0 + 2 * agent, 3.0 + agent % 2, 0.0))
        picture = sim.render(WORLD, width=640, height=1280, shadows=False)
        seen = hue(
            [at(picture, place) for place in places(sim, sim.state.body_positions.to_numpy()[WORLD, :8], picture)]
        )
        apart = np.linalg.norm(seen[:, None] - seen, axis=-1) + np.eye(8)
        assert apart.min() > 0.04


def test_an_open_door_is_gone_and_a_pressed_button_is_flat() -> None:
    with make() as sim:
        state = sim.state
        slot = int(state.door_static.to_numpy()[WORLD, 0])
        x, y, _ = (float(value) for value in state.static_positions.to_numpy()[WORLD, slot])
        ahead = CameraPose.look_at((x, y - 6, 2.0), (x, y, 2.0))
        assert has_hue(np.array(at(sim.render(WORLD, ahead), (320, 240))), DOORS[0])
        state.static_positions.to_numpy()[WORLD, slot, 2] = -4.8
        assert not has_hue(np.array(at(sim.render(WORLD, ahead), (320, 240))), DOORS[0])

        button = state.button_positions.to_numpy()[WORLD, 0]
        colour = DOORS[state.button_doors.to_numpy()[WORLD, 0]]
        state.button_positions.to_numpy()[WORLD, 1:, 1] = -50.0  # behind the camera
        state.static_kinds.to_numpy()[WORLD, slot] = 0  # the door has the button's colour
        beside = CameraPose((button[0], button[1] - 2.0, 0.06), view_height=1.0)
        upright = has_hue(sim.render(WORLD, beside, width=200, height=100), colour).sum()
        state.button_pressed.to_numpy()[WORLD, 0] = 1
        flat = has_hue(sim.render(WORLD, beside, width=200, height=100), colour).sum()
        assert upright / 130 == pytest.approx(12, abs=1)  # rows of 1 cm over 1.3 m
        assert flat / 130 == pytest.approx(3, abs=1)


def test_more_samples_come_nearer_to_the_smooth_picture() -> None:
    with make() as sim:
        smooth = sim.render(WORLD, width=160, height=120, samples=8).astype(int)
        errors = [np.abs(sim.render(WORLD, width=160, height=120, samples=n) - smooth).mean() for n in (1, 2, 4)]
        assert errors[1] < 0.6 * errors[0]
        assert errors[2] < 0.6 * errors[1]


# ---- Poses


def test_without_a_rotation_a_camera_looks_along_y_with_x_to_the_right_and_z_up() -> None:
    with make() as sim:
        put(sim, 0, (0.0, 8.0, 0.0))
        put(sim, 1, (3.0, 8.0, 0.0))
        sim.state.body_positions.to_numpy()[WORLD, 2] = (-4.0, 8.0, 3.5)
        picture = sim.render(WORLD, CameraPose((0.0, 1.0, 1.0), view_height=8.0), width=400, height=200)
        # 25 pixels a metre
        assert has_hue(np.array(at(picture, (200, 100))), AGENTS[0])
        assert has_hue(np.array(at(picture, (275, 100))), AGENTS[1])
        assert has_hue(np.array(at(picture, (100, 100 - 25 * 2.5))), CUBE)


def test_a_field_of_view_is_vertical() -> None:
    with make() as sim:
        sim.state.body_positions.to_numpy()[WORLD, 2] = (0.0, 8.0, 1.5)
        picture = sim.render(WORLD, CameraPose((0.0, 1.0, 1.5), fov=90.0), width=400, height=200, shadows=False)
        rows, columns = np.nonzero(has_hue(picture, CUBE))
        # the near face is 5.5 m away and 3 m wide; half of the view is 5.5 m high there
        assert np.ptp(columns) + 1 == pytest.approx(3 / 11 * 200, abs=2)
        assert np.ptp(rows) + 1 == pytest.approx(3 / 11 * 200, abs=2)


@pytest.mark.parametrize("eye", [(9.0, 2.0, 7.0), (-8.0, 11.0, 3.0), (1.0, 12.0, 9.0), (2.0, 6.0, 40.0)])
def test_what_is_looked_at_is_in_the_middle_and_upright(eye: tuple[float, float, float]) -> None:
    with make() as sim:
        put(sim, 2, (2.0, 6.0, 1.5))
        picture = sim.render(WORLD, CameraPose.look_at(eye, (2.0, 6.0, 1.5)), width=201, height=201)
        assert has_hue(np.array(at(picture, (100.5, 100.5))), CUBE)
        sim.state.body_positions.to_numpy()[WORLD, 3] = (2.0, 6.0 + (eye[2] == 40.0), 6.0)
        columns = np.nonzero(
            has_hue(sim.render(WORLD, CameraPose.look_at(eye, (2.0, 6.0, 1.5)), width=201, height=201), CUBE)
        )
        assert np.median(columns[0]) < 100.5  # what is above it, or ahead where the camera looks down, is higher up


def test_a_pose_is_what_it_was_made_of() -> None:
    pose = CameraPose([1, 2, 3], np.array([0, 0, 0, 1.0]), 45)
    assert pose == CameraPose((1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0), 45.0)
    assert hash(pose) == hash(CameraPose((1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0), 45.0))


# ---- Cameras with a name


@pytest.mark.parametrize("size", [(640, 480), (300, 600), (800, 200)])
def test_an_overview_shows_the_whole_level_large(size: tuple[int, int]) -> None:
    with make() as sim:
        picture = sim.render(WORLD, "overview", width=size[0], height=size[1], shadows=False)
        rows, columns = np.nonzero(is_level(picture))
        margins = (columns.min(), rows.min(), size[0] - 1 - columns.max(), size[1] - 1 - rows.max())
        assert min(margins) > 0
        assert max(np.ptp(columns) / size[0], np.ptp(rows) / size[1]) > 0.6
        for colour, least in ((CUBE, 30), (DOORS[0], 15), *((tint, 4) for tint in AGENTS[:2])):
            assert has_hue(picture, colour).sum() > least * picture.size / 640 / 480


def project(eye: ArrayLike, target: ArrayLike, fov: float, point: ArrayLike, size: int) -> NDArray[Any]:
    """A perspective camera by hand: (column, row) in a square picture."""
    forward, offset = np.subtract(target, eye), np.subtract(point, eye)
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, (0, 0, 1))
    right = right / np.linalg.norm(right)
    scale = size / 2 / np.tan(np.radians(fov) / 2) / (offset @ forward)
    return np.array([size / 2 + scale * (offset @ right), size / 2 - scale * (offset @ np.cross(right, forward))])


@pytest.mark.parametrize("y", [1.2, 6.0, 14.5, 30.0])
@pytest.mark.parametrize("agent", [0, 1])
def test_a_followed_agent_is_seen_even_from_behind_a_wall(y: float, agent: int) -> None:
    with make() as sim:
        put(sim, agent, (0.0, y, 0.0), yaw=1.0)
        put(sim, 1 - agent, (6.0, y, 0.0))
        picture = sim.render(WORLD, "follow", agent=agent, width=200, height=200)
        place = project((0, y - 9, 10), (0, y + 2.5, 0), 55.0, (0, y, 1), 200)
        assert has_hue(np.array(at(picture, place)), AGENTS[agent])


def test_no_wall_hides_a_part_of_a_followed_agent() -> None:
    with make() as sim:
        put(sim, 0, (0.0, 4.0, 0.0))
        put(sim, 1, (50.0, -80.0, 0.0))
        state = sim.state
        state.static_kinds.to_numpy()[WORLD] = 0

        def agent_pixels() -> NDArray[Any]:
            return has_hue(sim.render(WORLD, "follow", agent=0, width=200, height=200, shadows=False), AGENTS[0])

        alone = agent_pixels()
        state.static_kinds.to_numpy()[WORLD, 0] = EntityKind.WALL
        # From 9 m behind and 10 m above it would hide the agent's lower half; the line to the middle passes over it.
        state.static_positions.to_numpy()[WORLD, 0] = (0.0, 2.0, 0.0)
        state.static_sizes.to_numpy()[WORLD, 0] = (10.0, 0.2, 2.7)
        assert (alone & ~agent_pixels()).sum() < 0.03 * alone.sum()
        # What remains of it is low; one on the agent's other side is as high as it was.
        heights = []
        for y in (2.0, 5.5):
            state.static_positions.to_numpy()[WORLD, 0] = (0.0, y, 0.0)
            whole = sim.render(WORLD, "follow", agent=0, width=200, height=200)
            state.static_positions.to_numpy()[WORLD, 0, 2] = -5.0
            heights.append((sim.render(WORLD, "follow", agent=0, width=200, height=200) != whole).any(axis=-1).sum())
        assert heights[1] > 1.5 * heights[0]


def test_without_a_name_the_agent_that_got_furthest_is_followed() -> None:
    with make() as sim:
        sim.state.agent_max_y.to_numpy()[WORLD] = (3.0, 9.0)
        assert np.array_equal(sim.render(WORLD, "follow"), sim.render(WORLD, "follow", agent=1))
        assert not np.array_equal(sim.render(WORLD, "follow"), sim.render(WORLD, "follow", agent=0))


def test_an_agents_eyes_are_where_its_camera_is_and_it_does_not_see_itself() -> None:
    with make() as sim:
        put(sim, 1, (-2.0, 3.0, 0.0), yaw=-0.5)
        seen = sim.render(WORLD, "agent", agent=1, width=100, height=100)
        pose = CameraPose((-2.0, 3.0, 1.5), (np.cos(-0.25), 0, 0, np.sin(-0.25)), fov=100.0)
        put(sim, 1, (50.0, -80.0, 0.0))
        assert np.array_equal(seen, sim.render(WORLD, pose, width=100, height=100, shadows=True))


# ---- Around it


def test_a_world_looks_the_same_wherever_it_is_simulated() -> None:
    with make() as many, Simulator(1, seed=5, world_offset=WORLD) as one:
        for sim in (many, one):
            sim.actions.to_numpy()[:] = (3, 0, 3, 1)
            for _ in range(5):
                sim.step()
        assert np.array_equal(many.render(WORLD), one.render(0))
        assert not np.array_equal(many.render(WORLD), many.render(WORLD + 1))


def test_drawing_changes_nothing() -> None:
    with make() as sim, make() as twin:
        for _ in range(3):
            for each in (sim, twin):
                each.actions.to_numpy()[:] = (3, 0, 1, 1)
                each.step()
            sim.render(WORLD)
            assert sim.hash() == twin.hash()


def test_a_picture_shows_the_end_of_a_step_that_was_begun() -> None:
    with make() as sim, make() as twin:
        for each in (sim, twin):
            each.actions.to_numpy()[:] = (3, 0, 2, 0)
        sim.step_async()
        picture = sim.render(WORLD)
        twin.step()
        assert np.array_equal(picture, twin.render(WORLD))


def test_pictures_can_be_drawn_while_others_step() -> None:
    with make() as sim:
        ended = threading.Event()

        def step() -> None:
            while not ended.is_set():
                sim.step()

        thread = threading.Thread(target=step)
        thread.start()
        try:
            for _ in range(5):
                assert sim.render(WORLD, width=40, height=30).shape == (30, 40, 3)
        finally:
            ended.set()
            thread.join()


def test_ctrl_c_ends_a_picture_that_takes_seconds(run_python: Callable[..., str]) -> None:
    code = """
import doorstep, os, signal, threading, time
def interrupt():
    global sent
    sent = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
with doorstep.Simulator(1) as sim:
    sim.render(width=8, height=8)
    try:
        threading.Timer(0.1, interrupt).start()
        sim.render(width=2000, height=2000, samples=8)
    except KeyboardInterrupt:
        print(time.monotonic() - sent)
"""
    assert float(run_python(code)) < 1.0  # 0.03 where the processors are free; the whole picture takes seconds


def test_a_picture_of_many_calls_has_the_bits_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with make() as sim:
        together = sim.render(WORLD, width=50, height=37)
        monkeypatch.setattr("doorstep._native.render._RAYS_PER_CALL", 1)  # a call for each row
        assert np.array_equal(sim.render(WORLD, width=50, height=37), together)


def test_bodies_that_are_nowhere_are_left_out() -> None:
    with make() as sim:
        sim.state.body_positions.to_numpy()[WORLD, 2] = np.nan
        sim.state.body_rotations.to_numpy()[WORLD, 3] = 0
        picture = sim.render(WORLD, shadows=False)
        cubes = sim.state.body_positions.to_numpy()[WORLD, 4:7]
        assert all(has_hue(np.array(at(picture, place)), CUBE) for place in places(sim, cubes, picture))


# ---- Bad input


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"world": 4}, "world is 4; it must be an integer, 0 to 3"),
        ({"world": -1}, "world is -1; it must be an integer, 0 to 3"),
        ({"world": 1.0}, "world is 1.0; it must be an integer, 0 to 3"),
        ({"camera": "side"}, "camera is 'side'; it must be 'top', 'overview', 'follow', 'agent' or a CameraPose"),
        ({"camera": None}, "camera is None"),
        ({"camera": "follow", "agent": 2}, "agent is 2; it must be an integer, 0 to 1"),
        ({"agent": 0}, "agent is 0; it must be None, unless camera is"),
        ({"width": 0}, "width is 0; it must be an integer, 1 to 4096"),
        ({"height": 4097}, "height is 4097; it must be an integer, 1 to 4096"),
        ({"width": "640"}, "width is '640'; it must be an integer, 1 to 4096"),
        ({"samples": 9}, "samples is 9; it must be an integer, 1 to 8"),
        ({"shadows": 1}, "shadows is 1; it must be True or False"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], says: str) -> None:
    with make() as sim, pytest.raises(doorstep.ArgumentError) as caught:
        sim.render(**arguments)
    assert says in str(caught.value)
    assert caught.value.argument in arguments


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"position": (0, 0)}, "position is (0, 0); it must be 3 finite numbers"),
        ({"position": (0, 0, np.inf)}, "it must be 3 finite numbers"),
        ({"position": "above"}, "position is 'above'; it must be 3 finite numbers"),
        ({"position": "123"}, "position is '123'; it must be 3 finite numbers"),
        ({"position": (10**400, 0, 0)}, "it must be 3 finite numbers"),
        ({"position": (0, 0, 1e300)}, "position is (0, 0, 1e+300); it must be 3 finite numbers"),
        ({"position": (0, True, 0)}, "position is (0, True, 0); it must be 3 finite numbers"),
        ({"position": {1, 2, 3}}, "position is {1, 2, 3}; it must be 3 finite numbers"),
        ({"position": (0, 0, 0), "rotation": (0, 0, 0, 0)}, "(w, x, y, z) ((1, 0, 0, 0) is no rotation)"),
        ({"position": (0, 0, 0), "fov": 179.99999999}, "fov is 179.99999999; it must be a number of degrees"),
        ({"position": (0, 0, 0), "view_height": 1e-50}, "view_height is 1e-50; it must be a number of metres"),
        ({"position": (0, 0, 0), "rotation": (1, 1, 0, 0)}, "rotation is (1, 1, 0, 0); it must be a unit quaternion"),
        (
            {"position": (0, 0, 0), "fov": 180},
            "fov is 180; it must be a number of degrees, more than 0 and less than 180",
        ),
        ({"position": (0, 0, 0), "fov": np.nan}, "fov is nan"),
        ({"position": (0, 0, 0), "view_height": 0}, "view_height is 0; it must be a number of metres, more than 0"),
    ],
)
def test_an_impossible_pose_is_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        CameraPose(**arguments)
    assert says in str(caught.value)


def test_a_camera_cannot_look_at_itself() -> None:
    with pytest.raises(doorstep.ArgumentError, match="target is"):
        CameraPose.look_at((1, 2, 3), (1, 2, 3))


def test_a_closed_simulator_has_no_pictures() -> None:
    sim = make()
    sim.close()
    with pytest.raises(doorstep.ClosedError):
        sim.render()


@pytest.mark.parametrize(
    ("camera", "field", "index", "value", "says"),
    [
        ("top", "static_positions", 3, (np.nan, 0, 0), r"camera 'top' .* world 2: its static_positions\[3\] is \[nan,"),
        ("overview", "static_sizes", 0, (1, np.inf, 1), r"world 2: its static_sizes\[0\] is \[1.0, inf, 1.0\]"),
        ("follow", "body_positions", 1, (0, np.nan, 0), r"world 2: its body_positions\[1\] is \[0.0, nan, 0.0\]"),
        ("follow", "body_positions", 1, (0, 3e38, 0), r"world 2: its body_positions\[1\]"),
        ("agent", "body_positions", 1, (-np.inf, 0, 0), r"world 2: its body_positions\[1\]"),
        ("agent", "body_rotations", 1, (np.nan, 0, 0, 1), r"its body_rotations\[1\] is .* must be a unit quaternion"),
    ],
)
def test_a_world_that_a_camera_cannot_show_is_named(
    camera: Any, field: str, index: int, value: tuple[float, ...], says: str
) -> None:
    agent = 1 if camera in ("follow", "agent") else None
    with make() as sim:
        sim.state.static_kinds.to_numpy()[WORLD, index] = EntityKind.WALL
        getattr(sim.state, field).to_numpy()[WORLD, index] = value
        with pytest.raises(doorstep.SimulationError, match=says) as caught:
            sim.render(WORLD, camera, agent=agent)
        assert caught.value.argument == "world"
        assert f"edit state.{field}" in caught.value.hint
        assert sim.render(WORLD, CameraPose((0, 8, 30)), width=8, height=8).shape == (8, 8, 3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_walls_that_are_nowhere_do_not_hide_an_agent(value: float) -> None:
    with make() as sim:
        sim.state.static_positions.to_numpy()[WORLD, 1] = value
        sim.state.static_sizes.to_numpy()[WORLD, 2] = value
        assert sim.render(WORLD, "follow", width=8, height=8).shape == (8, 8, 3)
