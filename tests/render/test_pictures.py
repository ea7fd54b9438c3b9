"""`Simulator.render` shows what the state says, from where it was asked to."""

import numpy as np
import pytest
from tests.refuses import assert_refused, refuses
from tests.render.golden_pictures import PICTURES, golden
from tests.render.level_worlds import full_level, mixed_levels, playing
from tests.render.pixels import AGENTS, CUBE, DOORS, FLOOR, GRID, LIT, WALL, at, has_hue, in_light, top_pixels

import doorstep
from doorstep import CameraPose, EntityKind, Simulator, levels
from doorstep.render import look

WORLD = 2


@pytest.fixture
def sim():
    with make() as made:
        yield made


def make(**settings):
    return Simulator(4, seed=5, num_threads=1, **settings)


def field(sim, name, world=WORLD):
    return getattr(sim.state, name).to_numpy()[world]


def level_bounds(sim, world=WORLD):
    """Of the walls, and the exit behind the last door or the goal."""
    positions, sizes = field(sim, "static_positions", world), field(sim, "static_sizes", world)
    low, high = (positions - sizes / 2)[:, :2].min(axis=0), (positions + sizes / 2)[:, :2].max(axis=0)
    goal = sim.levels[0].goal if sim.levels else None
    if goal is None:
        return low, high + np.array((0, look.EXIT_DEPTH))
    return np.minimum(low, (goal.min_x, goal.min_y)), np.maximum(high, (goal.max_x, goal.max_y))


def places(sim, points, picture, world=WORLD):
    return top_pixels(points, *level_bounds(sim, world), picture.shape[1], picture.shape[0])


def put(sim, body, position, yaw=0.0):
    field(sim, "body_positions")[body] = position
    field(sim, "body_rotations")[body] = (np.cos(yaw / 2), 0, 0, np.sin(yaw / 2))


def shows(picture, place, colour):
    return bool(has_hue(np.array(at(picture, place)), colour))


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_that_were_looked_at_are_what_they_were(name):
    far = np.abs(PICTURES[name]().astype(np.int32) - golden(name)).max(axis=-1)
    assert (far > 2).mean() < 1e-3  # another processor may round a few pixels on edges to the other side


# ---- From above


def check_from_above(sim, picture, world):
    """Everything has its colour where the state has it; returns how many things there are."""
    bodies, kinds, agents = field(sim, "body_positions", world), field(sim, "body_kinds", world), sim.num_agents
    statics, doors = field(sim, "static_positions", world), field(sim, "door_static", world)
    buttons = zip(field(sim, "button_doors", world), field(sim, "button_positions", world), strict=True)
    things = [
        *zip(AGENTS, bodies[:agents], strict=False),
        *((CUBE, place) for place in bodies[kinds == EntityKind.CUBE]),
        *((DOORS[door], statics[slot]) for door, slot in enumerate(doors)),
        *((DOORS[door], place) for door, place in buttons),
    ]
    for colour, point in things:
        assert shows(picture, places(sim, [point], picture, world)[0], colour), (colour, point)
    return len(things) - agents


@pytest.mark.parametrize("size", [(640, 480), (128, 512)])
def test_from_above_everything_is_where_the_state_says(size, sim):
    put(sim, 0, (3.0, 4.0, 0.0))
    put(sim, 1, (-4.0, 20.0, 0.0))
    picture = sim.render(WORLD, width=size[0], height=size[1])
    assert (picture.shape, picture.dtype) == ((size[1], size[0], 3), np.uint8)
    assert check_from_above(sim, picture, WORLD) > 10
    statics = field(sim, "static_positions")[field(sim, "static_kinds") == EntityKind.WALL]
    assert all(shows(picture, place, WALL) for place in places(sim, statics, picture))


def test_levels_are_shown_from_everywhere_and_those_without_walls_around_their_agents():
    with playing([full_level(8)], num_agents=8, num_threads=1) as sim:
        assert check_from_above(sim, sim.render(width=640, height=640), 0) > 20
    with playing(mixed_levels(2), num_threads=1) as sim:
        for world in range(0, sim.num_worlds, 3):
            for camera in ("top", "overview", "follow", "agent"):
                picture = sim.render(world, camera, width=80, height=60, samples=1)
                assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 20
    with playing([levels.Level(spawns=[levels.Spawn(-20, 30), levels.Spawn(4, 2)])], num_threads=1) as sim:
        picture, agents = sim.render(width=300, height=300), field(sim, "body_positions", 0)[:2, :2]
        for agent, place in enumerate(top_pixels(agents, agents.min(0) - 1, agents.max(0) + 1, 300, 300)):
            assert shows(picture, place, AGENTS[agent])
        assert len(np.unique(sim.render(camera="overview", width=80, height=60).reshape(-1, 3), axis=0)) > 20


def test_lines_of_the_floor_are_sharp_from_every_height_without_perspective(sim):
    down = (0.5**0.5, -(0.5**0.5), 0, 0)
    for height in (20.0, 2000.0):
        pose = CameraPose((-4.0, 3.0, height), down, view_height=1.5)
        picture = sim.render(WORLD, pose, width=120, height=120, shadows=False)
        is_line, is_floor = (np.abs(picture - in_light(colour, LIT)).max(axis=-1) < 4 for colour in (GRID, FLOOR))
        assert is_line.mean() > 0.02
        assert is_line.mean() + is_floor.mean() > 0.95


def test_an_open_door_is_gone_and_a_pressed_button_is_flat(sim):
    slot = int(field(sim, "door_static")[0])
    x, y, _ = (float(value) for value in field(sim, "static_positions")[slot])
    ahead = CameraPose.look_at((x, y - 6, 2.0), (x, y, 2.0))
    assert shows(sim.render(WORLD, ahead), (320, 240), DOORS[0])
    field(sim, "static_positions")[slot, 2] = -4.8
    assert not shows(sim.render(WORLD, ahead), (320, 240), DOORS[0])
    button, colour = field(sim, "button_positions")[0], DOORS[field(sim, "button_doors")[0]]
    field(sim, "button_positions")[1:, 1] = -50.0  # behind the camera
    field(sim, "static_kinds")[slot] = 0  # the door has the button's colour
    beside = CameraPose((button[0], button[1] - 2.0, 0.06), view_height=1.0)
    for pressed, rows in ((0, 12), (1, 3)):  # of 1 cm over 1.3 m
        field(sim, "button_pressed")[0] = pressed
        seen = has_hue(sim.render(WORLD, beside, width=200, height=100), colour).sum()
        assert seen / 130 == pytest.approx(rows, abs=1)


def test_a_pressed_button_glows_around_itself_and_no_other(sim):
    pictures = []
    for pressed in (0, 1):
        field(sim, "button_pressed")[1] = pressed
        pictures.append(sim.render(WORLD, width=300, height=600, shadows=False).astype(int))
    changed = np.argwhere(np.abs(pictures[1] - pictures[0]).max(axis=-1) > 2)
    (place,) = places(sim, [field(sim, "button_positions")[1]], pictures[0])
    metre = 600 / 1.04 / np.ptp(level_bounds(sim), axis=0)[1]
    far = np.linalg.norm(changed[:, ::-1] + 0.5 - place, axis=1) / metre
    assert look.BUTTON_SIDE < far.max() < look.GLOW_RADIUS + 1


def test_more_samples_come_nearer_to_the_smooth_picture(sim):
    smooth = sim.render(WORLD, width=160, height=120, samples=8).astype(int)
    errors = [np.abs(sim.render(WORLD, width=160, height=120, samples=n) - smooth).mean() for n in (1, 2, 4)]
    assert errors[2] / 0.6 < errors[1] < 0.6 * errors[0]


def test_shadows_make_some_of_the_floor_darker_and_nothing_brighter(sim):
    shaded, plain = (sim.render(WORLD, width=300, height=400, shadows=shadows).astype(int) for shadows in (True, False))
    assert (plain >= shaded - 1).all()
    assert 0.02 < (plain > 1.2 * shaded).all(axis=-1).mean() < 0.5


# ---- Poses


def test_a_camera_looks_along_y_with_x_to_the_right_and_z_up_and_its_field_of_view_is_vertical(sim):
    put(sim, 0, (0.0, 8.0, 0.0))
    put(sim, 1, (3.0, 8.0, 0.0))
    field(sim, "body_positions")[2] = (-4.0, 8.0, 3.5)
    picture = sim.render(WORLD, CameraPose((0.0, 1.0, 1.0), view_height=8.0), width=400, height=200)
    # 25 pixels a metre
    for place, colour in (((200, 100), AGENTS[0]), ((275, 100), AGENTS[1]), ((100, 100 - 25 * 2.5), CUBE)):
        assert shows(picture, place, colour)
    field(sim, "body_positions")[:3] = [(50.0, -80.0, 0.0), (60.0, -80.0, 0.0), (0.0, 8.0, 1.5)]
    picture = sim.render(WORLD, CameraPose((0.0, 1.0, 1.5), fov=90.0), width=400, height=200, shadows=False)
    # The near face is 5.5 m away and 3 m wide; half of the view is 5.5 m high there.
    assert np.ptp(np.nonzero(has_hue(picture, CUBE)), axis=1) + 1 == pytest.approx(3 / 11 * 200, abs=2)


@pytest.mark.parametrize("eye", [(9.0, 2.0, 7.0), (-8.0, 11.0, 3.0), (1.0, 12.0, 9.0), (2.0, 6.0, 40.0)])
def test_what_is_looked_at_is_in_the_middle_and_upright(eye, sim):
    pose = CameraPose.look_at(eye, (2.0, 6.0, 1.5))
    put(sim, 2, (2.0, 6.0, 1.5))
    assert shows(sim.render(WORLD, pose, width=201, height=201), (100.5, 100.5), CUBE)
    field(sim, "body_positions")[3] = (2.0, 6.0 + (eye[2] == 40.0), 6.0)
    rows = np.nonzero(has_hue(sim.render(WORLD, pose, width=201, height=201), CUBE))[0]
    assert np.median(rows) < 100.5  # what is above it, or ahead where the camera looks down, is higher up


def test_a_pose_is_what_it_was_made_of():
    same = CameraPose((1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0), 45.0)
    pose = CameraPose([1, 2, 3], np.array([0, 0, 0, 1.0]), 45)
    assert (pose, hash(pose)) == (same, hash(same))
    assert pose != CameraPose((1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0), 46.0)
    ahead = CameraPose.look_at((1, 2, 3), (1, 9, 3), fov=45, view_height=5)
    assert (ahead.position, ahead.fov, ahead.view_height) == ((1.0, 2.0, 3.0), 45.0, 5.0)


# ---- Cameras with a name


def test_without_a_name_the_agent_that_got_furthest_is_followed(sim):
    small = {"width": 60, "height": 45}
    for furthest in (1, 0):
        field(sim, "agent_max_y")[:] = (9.0 - 6 * furthest, 3.0 + 6 * furthest)
        followed = [sim.render(WORLD, "follow", agent=agent, **small) for agent in (None, furthest, 1 - furthest)]
        assert np.array_equal(followed[0], followed[1])
        assert not np.array_equal(followed[0], followed[2])


def test_an_agents_eyes_are_where_its_camera_is_and_it_does_not_see_itself(sim):
    put(sim, 1, (-2.0, 3.0, 0.0), yaw=-0.5)
    seen = sim.render(WORLD, "agent", agent=1, width=100, height=100)
    pose = CameraPose((-2.0, 3.0, 1.5), (np.cos(-0.25), 0, 0, np.sin(-0.25)), fov=100.0)
    put(sim, 1, (50.0, -80.0, 0.0))
    assert np.array_equal(seen, sim.render(WORLD, pose, width=100, height=100, shadows=True))


# ---- Around it


def test_a_world_looks_the_same_wherever_it_is_simulated_and_drawing_changes_nothing(sim):
    small = {"width": 64, "height": 48}
    with make() as twin, Simulator(1, seed=5, world_offset=WORLD) as one:
        for each in (sim, twin, one):
            each.actions.to_numpy()[:] = (3, 0, 3, 1)
        for _ in range(5):
            for each in (sim, twin, one):
                each.step()
            sim.render(WORLD, **small)
            assert sim.hash() == twin.hash()
        assert np.array_equal(sim.render(WORLD, **small), one.render(0, **small))
        assert not np.array_equal(sim.render(WORLD, **small), sim.render(WORLD + 1, **small))
        sim.step_async()  # a picture shows the end of a step that was begun
        picture = sim.render(WORLD, **small)
        twin.step()
        assert np.array_equal(picture, twin.render(WORLD, **small))


def test_ctrl_c_ends_a_picture_that_takes_seconds(run_python):
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


def test_a_picture_of_many_calls_has_the_bits_of_one(monkeypatch, sim):
    together = sim.render(WORLD, width=50, height=37)
    monkeypatch.setattr("doorstep._native.render._RAYS_PER_CALL", 1)  # a call for each row
    assert np.array_equal(sim.render(WORLD, width=50, height=37), together)


def test_what_is_nowhere_is_left_out(sim):
    field(sim, "body_positions")[2] = np.nan
    field(sim, "body_rotations")[3] = 0
    picture, cubes = sim.render(WORLD, shadows=False), field(sim, "body_positions")[4:7]
    assert all(shows(picture, place, CUBE) for place in places(sim, cubes, picture))
    for value in (np.nan, np.inf):  # no wall that is nowhere hides an agent
        field(sim, "static_positions")[1] = value
        field(sim, "static_sizes")[2] = value
        assert sim.render(WORLD, "follow", width=8, height=8).shape == (8, 8, 3)


# ---- Bad input


def test_a_wrong_argument_is_named(sim):
    cameras = "'top', 'overview', 'follow', 'agent' or a CameraPose"
    wrong = [
        ("world", 4, "an integer, 0 to 3"), ("camera", "side", cameras), ("agent", 0, "None, unless camera is"),
        ("width", 0, "an integer, 1 to 4096"), ("height", 4097, "an integer, 1 to 4096"),
        ("samples", 9, "an integer, 1 to 8"), ("shadows", 1, "True or False"),
    ]  # fmt: skip
    rows = [({name: value}, f"{name} is {value!r}; it must be {must}") for name, value, must in wrong]
    assert_refused(sim.render, [*rows, ({"agent": 2, "camera": "follow"}, "agent is 2; it must be an integer, 0 to 1")])
    sim.close()
    refuses(None, sim.render, error=doorstep.ClosedError)


def test_an_impossible_pose_is_refused():
    places = ((0, 0), "123", (0, 0, 1e300), (0, True, 0), {1, 2, 3})
    wrong = [
        *(("position", place, "3 finite numbers") for place in places),
        ("rotation", (0, 0, 0, 0), "a unit quaternion (w, x, y, z) ((1, 0, 0, 0) is no rotation)"),
        ("rotation", (1, 1, 0, 0), "a unit quaternion (w, x, y, z) (divide it by its length)"),
        *(("fov", fov, "a number of degrees, more than 0 and less than 180") for fov in (180, 179.99999999, np.nan)),
        *(("view_height", height, "a number of metres, more than 0") for height in (0, 1e-50)),
    ]  # fmt: skip
    rows = [({name: value}, f"{name} is {value!r}; it must be {must}") for name, value, must in wrong]
    assert_refused(lambda **given: CameraPose(**{"position": (0, 0, 0), **given}), rows)
    refuses("target is", CameraPose.look_at, (1, 2, 3), (1, 2, 3))


def test_a_world_that_a_camera_cannot_show_is_named(sim):
    field(sim, "static_kinds")[:] = EntityKind.WALL
    for camera, name, index, value, says in (
        ("top", "static_positions", 3, (np.nan, 0, 0), r"camera 'top' .* world 2: its static_positions\[3\] is \[nan,"),
        ("overview", "static_sizes", 0, (1, np.inf, 1), r"world 2: its static_sizes\[0\] is \[1.0, inf, 1.0\]"),
        ("follow", "body_positions", 1, (0, 3e38, 0), r"world 2: its body_positions\[1\]"),
        ("agent", "body_rotations", 1, (np.nan, 0, 0, 1), r"its body_rotations\[1\] is .* must be a unit quaternion"),
    ):
        before = field(sim, name)[index].copy()
        field(sim, name)[index] = value
        with pytest.raises(doorstep.SimulationError, match=says) as caught:
            sim.render(WORLD, camera, agent=1 if camera in ("follow", "agent") else None)
        assert (caught.value.argument, f"edit state.{name}" in caught.value.hint) == ("world", True)
        assert sim.render(WORLD, CameraPose((0, 8, 30)), width=8, height=8).shape == (8, 8, 3)
        field(sim, name)[index] = before
