"""The picture of worlds, read back as XML and compared with the state it was drawn from."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference.boxes import corners

import doorstep
from doorstep.picture import capture_scenes, draw_scenes

Array = NDArray[np.float64]
Element = ElementTree.Element

SVG = "{http://www.w3.org/2000/svg}"
WORLD = 3
MILLIMETRE = 0.001


def make() -> doorstep.Simulator:
    return doorstep.Simulator(6, seed=5, num_threads=1, world_offset=100)


def draw(sim: doorstep.Simulator, *worlds: int) -> Element:
    return ElementTree.fromstring(draw_scenes(capture_scenes(sim, worlds), "Title"))


def draw_panel(sim: doorstep.Simulator) -> Element:
    (panel,) = panels(draw(sim, WORLD))
    return panel


def panels(picture: Element) -> list[Element]:
    return picture.findall(f"{SVG}g[@class='world']")


def find(panel: Element, tag: str, style: str) -> list[Element]:
    return [element for element in panel.iter(SVG + tag) if element.get("class") == style]


def boxes(panel: Element, style: str) -> Array:
    """Centre and extents of rectangles: [count, 4], ordered by y, then x."""
    found = [[float(rect.get(key, "")) for key in ("x", "y", "width", "height")] for rect in find(panel, "rect", style)]
    x, y, width, height = np.array(found).reshape(-1, 4).T
    return in_order(np.stack([x + width / 2, y + height / 2, width, height], axis=1))


def in_order(rows: Array) -> Array:
    ordered: Array = rows[np.lexsort((rows[:, 0].round(2), rows[:, 1].round(2)))]
    return ordered


def test_there_is_a_panel_for_each_world_in_the_given_order() -> None:
    with make() as sim:
        numbers = [panel.get("data-world") for panel in panels(draw(sim, 4, 0, 2))]
        assert numbers == ["104", "100", "102"]


def test_panels_do_not_overlap_and_lie_within_the_picture() -> None:
    with make() as sim:
        picture = draw(sim, *range(6))
        _, _, width, height = (float(number) for number in picture.get("viewBox", "").split())
        corners_seen = []
        for panel in panels(picture):
            translate, scale = panel.get("transform", "").replace(")", "").split(" scale(")
            x, y = (float(number) for number in translate.removeprefix("translate(").split())
            pixels = float(scale.split()[0])
            floor = boxes(panel, "floor")[0]
            left, right = x + pixels * (floor[0] - floor[2] / 2), x + pixels * (floor[0] + floor[2] / 2)
            top, bottom = y - pixels * (floor[1] + floor[3] / 2), y - pixels * (floor[1] - floor[3] / 2)
            assert 0 <= left < right <= width
            assert 0 <= top < bottom <= height
            corners_seen.append((left, right, top, bottom))
        for i, (left, right, top, bottom) in enumerate(corners_seen):
            for other_left, other_right, other_top, other_bottom in corners_seen[:i]:
                assert left >= other_right or other_left >= right or top >= other_bottom or other_top >= bottom


def test_walls_are_where_the_state_says() -> None:
    with make() as sim:
        state = sim.state
        walls = state.static_kinds.to_numpy()[WORLD] == doorstep.EntityKind.WALL
        expected = np.concatenate(
            [state.static_positions.to_numpy()[WORLD, walls, :2], state.static_sizes.to_numpy()[WORLD, walls, :2]],
            axis=1,
        )
        assert boxes(draw_panel(sim), "wall") == pytest.approx(in_order(expected), abs=2 * MILLIMETRE)


def test_a_door_is_drawn_as_open_where_its_flag_is_set() -> None:
    with make() as sim:
        state = sim.state
        state.door_open.to_numpy()[WORLD] = (0, 1, 0)
        slots = state.door_static.to_numpy()[WORLD]
        panel_centres = state.static_positions.to_numpy()[WORLD, slots, :2]
        panel = draw_panel(sim)
        assert boxes(panel, "door closed")[:, :2] == pytest.approx(panel_centres[[0, 2]], abs=2 * MILLIMETRE)
        assert boxes(panel, "door open")[:, :2] == pytest.approx(panel_centres[[1]], abs=2 * MILLIMETRE)


def test_pressed_buttons_are_told_from_others() -> None:
    with make() as sim:
        pressed = np.array([True, False, False, True, True, False])
        sim.state.button_pressed.to_numpy()[WORLD] = pressed
        places = sim.state.button_positions.to_numpy()[WORLD, :, :2].astype(np.float64)
        panel = draw_panel(sim)
        assert boxes(panel, "button pressed")[:, :2] == pytest.approx(in_order(places[pressed]), abs=2 * MILLIMETRE)
        assert boxes(panel, "button")[:, :2] == pytest.approx(in_order(places[~pressed]), abs=2 * MILLIMETRE)
        assert boxes(panel, "button")[:, 2:] == pytest.approx(1.3)


def test_agents_stand_and_look_as_in_the_state() -> None:
    with make() as sim:
        yaws = np.radians([-70.0, 160.0])
        positions, rotations = sim.state.body_positions.to_numpy(), sim.state.body_rotations.to_numpy()
        rotations[WORLD, :2] = np.stack([np.cos(yaws / 2), 0 * yaws, 0 * yaws, np.sin(yaws / 2)], axis=1)
        agents = find(draw_panel(sim), "g", "agent")
        assert [agent.get("data-agent") for agent in agents] == ["0", "1"]
        for agent, element in enumerate(agents):
            translate, rotate = element.get("transform", "").replace(")", "").split(" rotate(")
            place = [float(number) for number in translate.removeprefix("translate(").split()]
            assert place == pytest.approx(positions[WORLD, agent, :2], abs=MILLIMETRE)
            # the panel's y points up, so that SVG's rotation is counter-clockwise there, as yaw is
            assert float(rotate) == pytest.approx(np.degrees(yaws[agent]), abs=0.01)


def test_an_arrow_points_out_of_the_front_of_an_agent() -> None:
    with make() as sim:
        for arrow in find(draw_panel(sim), "polygon", "facing"):
            points = outline(arrow)
            tip = points[np.argmax(points[:, 1])]
            assert tip[0] == 0
            assert tip[1] > np.abs(points[:, 0]).max()


def outline(polygon: Element) -> Array:
    return np.array([[float(number) for number in pair.split(",")] for pair in polygon.get("points", "").split()])


def test_cubes_are_drawn_as_their_shadow_however_they_lie() -> None:
    with make() as sim:
        state = sim.state
        cubes = np.flatnonzero(state.body_kinds.to_numpy()[WORLD] == doorstep.EntityKind.CUBE)
        tilted = np.array([0.8, 0.3, -0.2, 0.4])
        state.body_rotations.to_numpy()[WORLD, cubes[0]] = tilted / np.linalg.norm(tilted)
        drawn = find(draw_panel(sim), "polygon", "cube")
        assert len(drawn) == len(cubes)
        solid = corners(
            state.body_positions.to_numpy()[WORLD, cubes],
            state.body_rotations.to_numpy()[WORLD, cubes],
            state.body_sizes.to_numpy()[WORLD, cubes],
        )
        for polygon, expected in zip(drawn, solid[..., :2], strict=True):
            points = outline(polygon)
            # every corner of the outline is a corner of the cube, and every corner of the cube is inside the outline
            assert np.linalg.norm(points[:, None] - expected, axis=2).min(axis=1).max() < 2 * MILLIMETRE
            edges = np.roll(points, -1, axis=0) - points
            offsets = expected[:, None] - points
            left_of = edges[:, 0] * offsets[..., 1] - edges[:, 1] * offsets[..., 0]
            assert (left_of > -0.01).all()
        assert len(outline(drawn[0])) == 6
        assert len(outline(drawn[1])) == 4


def test_rays_are_those_of_the_lidar_of_the_agent_that_is_furthest() -> None:
    with make() as sim:
        positions = sim.state.body_positions.to_numpy()
        positions[WORLD, 1, 1] = 9.0
        sim.refresh()
        (group,) = find(draw_panel(sim), "g", "lidar")
        assert group.get("data-agent") == "1"
        rays = find(group, "line", "ray")
        depths = sim.lidar.to_numpy()[WORLD, 1, :, 0] * 40
        kinds = np.rint(sim.lidar.to_numpy()[WORLD, 1, :, 1] * 6)
        hit = depths > 0
        assert [ray.get("data-hit") for ray in rays] == [
            doorstep.EntityKind(int(kind)).name.lower() for kind in kinds[hit]
        ]
        ends = np.array([[float(ray.get(key, "")) for key in ("x1", "y1", "x2", "y2")] for ray in rays])
        assert ends[:, :2] == pytest.approx(np.tile(positions[WORLD, 1, :2], (len(rays), 1)), abs=MILLIMETRE)
        assert np.linalg.norm(ends[:, 2:] - ends[:, :2], axis=1) == pytest.approx(depths[hit], abs=2 * MILLIMETRE)


def test_rays_end_on_what_they_hit() -> None:
    """Checks directions: a ray that is said to hit a wall or a door ends on the edge of one."""
    with make() as sim:
        panel = draw_panel(sim)
        solid = {"wall": boxes(panel, "wall"), "door": boxes(panel, "door closed")}
        checked = 0
        for ray in find(panel, "line", "ray"):
            if ray.get("data-hit") in solid:
                end = np.array([float(ray.get("x2", "")), float(ray.get("y2", ""))])
                box = solid[ray.get("data-hit", "")]
                beyond = np.abs(end - box[:, :2]) - box[:, 2:] / 2
                assert np.abs(beyond.max(axis=1)).min() < 0.01
                checked += 1
        assert checked > 10


def test_a_grab_links_agent_and_cube() -> None:
    with make() as sim:
        assert not find(draw_panel(sim), "line", "grab")
        sim.state.agent_grabs.to_numpy()[WORLD, 1] = 4
        (link,) = find(draw_panel(sim), "line", "grab")
        ends = [float(link.get(key, "")) for key in ("x1", "y1", "x2", "y2")]
        positions = sim.state.body_positions.to_numpy()[WORLD]
        assert ends == pytest.approx([*positions[1, :2], *positions[4, :2]], abs=MILLIMETRE)


def test_a_scene_stays_what_it_was() -> None:
    with make() as sim:
        scenes = capture_scenes(sim, range(6))
        before = draw_scenes(scenes, "Title")
        for _ in range(10):
            sim.actions.to_numpy()[:] = (3, 0, 3, 0)
            sim.step()
        assert draw_scenes(scenes, "Title") == before
        assert draw_scenes(capture_scenes(sim, range(6)), "Title") != before


def test_the_picture_needs_nothing_from_elsewhere() -> None:
    with make() as sim:
        text = draw_scenes(capture_scenes(sim, [0, 1]), "<Title> & more")
        assert "href" not in text
        assert "url(http" not in text
        assert "@import" not in text
        assert ElementTree.fromstring(text).findtext(f"{SVG}title") == "<Title> & more"


def test_the_legend_explains_every_colour() -> None:
    with make() as sim:
        words = {text.text for text in draw(sim, 0).findall(f"{SVG}text")}
        assert {
            "agent 0",
            "agent 1",
            "cube",
            "wall",
            "door, closed",
            "door, open",
            "button",
            "button, pressed",
        } <= words


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one scene"):
        draw_scenes([], "Title")
