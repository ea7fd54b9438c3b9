"""Cameras of browsers show what they should in windows of every shape; a reload finds the page as it was."""

import itertools
import math

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.running import PATIENCE, Visitor, until

import doorstep
from doorstep import EntityKind
from doorstep.viewer.page import PRESETS, Lens, place_behind, preset_place
from doorstep.viewer.world_arrays import Layout


def seen_from(points, place, lens):
    """Where points are in the picture, whose borders are at -1 and 1; NaN: behind the camera."""
    position, target = place
    ahead = (target - position) / np.linalg.norm(target - position)
    right = np.cross(ahead, (0, 0, 1)) / np.linalg.norm(np.cross(ahead, (0, 0, 1)))
    x, y, depth = np.stack([right, np.cross(right, ahead), ahead]) @ (points - position).T
    depth = np.where(depth > 0, depth, np.nan)
    return np.stack([x / lens.aspect, y]) / depth / math.tan(lens.field_of_view / 2)


def test_what_a_preset_shows_just_fits_the_picture_and_is_seen_from_its_side():
    with doorstep.Simulator(1) as sim:
        layout = Layout.of(sim, 16)
    low, high = np.array([-11, -1, 0]), np.array([11, 40, 5])  # of a level with its walls
    corners = np.array(list(itertools.product(*zip(low, high, strict=True))))
    shapes = itertools.product((0.5, math.radians(75), 2), (0.3, 0.75, 4 / 3, 16 / 9, 4))
    for name, lens in itertools.product(PRESETS, itertools.starmap(Lens, shapes)):
        shown = np.concatenate([corners + layout.offsets[cell] for cell in (range(16) if name == "all" else [6])])
        at = seen_from(shown, preset_place(name, layout, 6, lens), lens)
        widest = at[np.argmax(np.ptp(at, axis=1))]
        # Nothing is cut off, little is given away, and it is in the middle.
        assert (np.abs(at).max(), widest.max(), widest.min()) == pytest.approx((0.92, 0.92, -0.92), abs=1e-3)
    for name, side in {"top": (0, 0, 1), "left": (-1, 0, 1), "right": (1, 0, 1), "all": (0, -1, 1)}.items():
        position, target = preset_place(name, layout, 0, Lens())
        assert np.sign(np.round((position - target) / np.linalg.norm(position - target), 1)).tolist() == list(side)
        assert target[2] == pytest.approx(0)


def test_a_followed_agent_is_seen_from_behind_along_the_level_or_where_it_looks(sim):
    sim.state.body_positions.to_numpy()[2, 1] = (3.0, 20.0, 0.5)
    sim.state.body_rotations.to_numpy()[2, 1] = (np.cos(0.6), 0, 0, np.sin(0.6))
    for turning, yaw in ((False, 0.0), (True, 1.2)):
        position, target = place_behind(sim, 2, 1, np.array([100.0, 50.0, 0.0]), turning)
        ahead, beyond = np.array([-np.sin(yaw), np.cos(yaw), 0.0]), target - (103.0, 70.0, 0.5)
        assert position == pytest.approx((103.0, 70.0, 11.5) - 6 * ahead, abs=1e-4)
        assert beyond == pytest.approx(max(1, np.linalg.norm(beyond)) * ahead, abs=1e-4)


@pytest.mark.parametrize("window", [{"image_height": 0}, {"image_width": 10**9}, {"fov": 0.0}, {"fov": 100.0}], ids=str)
def test_a_window_of_any_size_gets_a_finite_camera(open_viewer, window):
    with open_viewer(worlds=4, policy="idle", rate=0) as running, Visitor(running) as visitor:
        camera = running.client().camera
        visitor.look(**window)
        until(lambda: all(getattr(camera, name) == value for name, value in window.items()))
        visitor.set(running.control("look_from"), "all")
        until(lambda: camera.position[2] > 1)
        assert np.isfinite(camera.position).all()
        for change, fits in (
            (lambda: visitor.set(running.control("camera"), "follow"), False),
            (lambda: visitor.set(running.control("look_from"), "left"), True),
            (lambda: visitor.look(position=(9.0, 9.0, 9.0), image_height=99), False),  # it was moved
            (lambda: visitor.set(running.control("look_from"), "right"), True),
            (visitor.__exit__, False),
        ):  # whether it is fitted to its window then
            change()
            until(lambda fits=fits: running.ask(lambda viewer: bool(viewer._page._fits)) == fits)
        assert running.error() == ""


def wall_corners(viewer):
    """Corners [C, 3] of all walls of the worlds that are shown, where the picture has them."""
    names, state = ("static_positions", "static_sizes", "static_kinds"), viewer._sim.state
    positions, sizes, kinds = (getattr(state, name).copy_to_host()[list(viewer._shown)] for name in names)
    sides = np.array(list(itertools.product((-0.5, 0.5), (-0.5, 0.5), (0.0, 1.0))))
    corners = positions[:, :, None] + sides * sizes[:, :, None] + viewer._layout.offsets[:, None, None]
    return corners[kinds == EntityKind.WALL].reshape(-1, 3)


def fills(points, page, camera):
    """Whether all points are on the screen beside the panel, and take up most of what there is of it."""
    beside = page.get_by_role("button", name="single step").bounding_box()["x"]
    across, upwards = seen_from(points, (camera.position, camera.look_at), Lens(camera.fov, camera.aspect))
    across = (across + 1) * camera.image_width / min(beside, camera.image_width) - 1  # of what is beside the panel
    inside = max(np.abs(across).max(), np.abs(upwards).max()) <= 1
    return bool(inside and max(np.ptp(across), np.ptp(upwards)) > 2 * 0.85)


@pytest.mark.slow
@pytest.mark.parametrize("worlds", [16, 70])
def test_all_worlds_are_seen_beside_the_panel_whatever_the_window_and_by_a_second_visitor(watch, browser, worlds):
    with watch(worlds=worlds, policy="idle", rate=0) as watched:
        points, server, first = watched.ask(wall_corners), watched.running.server, watched.running.client()
        for width, height in ((1280, 720), (1024, 768), (1920, 1080), (700, 900)):
            watched.page.set_viewport_size({"width": width, "height": height})
            until(lambda: fills(points, watched.page, watched.running.client().camera))
        with browser.new_page(viewport={"width": 1600, "height": 500}) as second_page:
            second_page.goto(watched.running.url)
            until(lambda: len(server.get_clients()) == 2)
            (second,) = (client for client in server.get_clients().values() if client is not first)
            until(lambda: fills(points, second_page, second.camera))
            assert fills(points, watched.page, first.camera)


@pytest.mark.slow
def test_drawings_are_whole_after_a_reload(watch):
    def whole():
        """Whether the panel shows lidar, observations and a curve of returns."""
        shown = {one.get_attribute("aria-label") for one in watched.page.locator("svg[role=img]").all()}
        labels = {"lidar, seen from above", "observations", "return of the last steps"}
        return labels <= shown and watched.page.locator("svg[role=img] polyline").count() > 0

    with watch(worlds=2, policy="random", rate=100) as watched:
        until(whole)
        watched.page.reload()
        until(whole)
        watched.click("pause")
        watched.page.get_by_role("button", name="resume").wait_for()
        watched.page.reload()
        until(whole)


@pytest.mark.slow
def test_a_click_on_the_floor_of_a_world_chooses_it_and_gets_closer(watch):
    with watch(worlds=4, policy="idle", rate=0) as watched:
        watched.click("all")
        client = watched.running.client()
        until(lambda: client.camera.position[2] > 30)
        far = float(client.camera.position[2])
        canvas = watched.page.locator("canvas").first.bounding_box()
        for across, down in ((0.7, 0.7), (0.65, 0.75), (0.75, 0.65), (0.6, 0.8)):  # a cube may stand there
            watched.page.mouse.click(canvas["x"] + across * canvas["width"], canvas["y"] + down * canvas["height"])
            watched.page.wait_for_timeout(1000)
            if watched.ask(lambda viewer: viewer.world):
                break
        assert watched.ask(lambda viewer: viewer.world) == 3
        until(lambda: float(client.camera.position[2]) < far)


@pytest.mark.slow
def test_the_page_loads_nothing_from_other_servers(watch, browser):
    with watch(worlds=1, policy="idle") as watched:
        asked, failures, url = [], [], watched.running.url
        with browser.new_page() as page:
            for event in ("request", "websocket"):
                page.on(event, lambda one: asked.append(one.url))
            page.on("pageerror", lambda error: failures.append(str(error)))
            page.goto(url)
            page.get_by_role("button", name="pause").wait_for(timeout=1000 * PATIENCE)
        own = (url, url.replace("http", "ws"), f"blob:{url}", "data:")
        assert ([one for one in asked if not one.startswith(own)], failures) == ([], [])
        assert len(asked) >= 2
