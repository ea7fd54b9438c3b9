"""Cameras of browsers show what they should in windows of every shape; a reload finds the page as it was."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.running import PATIENCE, OpenViewer, Visitor, Watch, until

import doorstep
from doorstep import EntityKind
from doorstep.viewer import page
from doorstep.viewer.page import PRESETS, Lens, Place, preset_place
from doorstep.viewer.viewer import Viewer
from doorstep.viewer.world_arrays import Layout


@pytest.fixture(scope="module")
def layout() -> Layout:
    with doorstep.Simulator(1) as sim:
        return Layout.of(sim, 16)


def seen_from(points: NDArray[np.float64], place: Place, lens: Lens) -> NDArray[np.float64]:
    """Where points are in the picture; its borders are at -1 and 1."""
    position, target = place
    ahead = (target - position) / np.linalg.norm(target - position)
    right = np.cross(ahead, (0, 0, 1)) / np.linalg.norm(np.cross(ahead, (0, 0, 1)))
    axes = np.stack([right, np.cross(right, ahead), ahead])
    x, y, depth = axes @ (points - position).T
    assert (depth > 0).all()
    height = math.tan(lens.field_of_view / 2)
    return np.stack([x / depth / height / lens.aspect, y / depth / height])


@pytest.mark.parametrize("aspect", [0.3, 0.75, 4 / 3, 16 / 9, 4])
@pytest.mark.parametrize("field_of_view", [0.5, math.radians(75), 2])
@pytest.mark.parametrize("name", PRESETS)
def test_what_a_preset_shows_just_fits_the_picture(
    layout: Layout, name: str, aspect: float, field_of_view: float
) -> None:
    cell, lens = 6, Lens(field_of_view, aspect)
    low, high = np.array([-11, -1, 0]), np.array([11, 40, 5])  # of a level with its walls
    cells = range(16) if name == "all" else [cell]
    corners = np.concatenate(
        [np.array(list(itertools.product(*zip(low, high, strict=True)))) + layout.offsets[each] for each in cells]
    )
    at = seen_from(corners, preset_place(name, layout, cell, lens), lens)
    assert np.abs(at).max() == pytest.approx(0.92, abs=1e-3)  # nothing is cut off, and little is given away
    widest = np.argmax(at.max(axis=1) - at.min(axis=1))
    assert at[widest].max() == pytest.approx(-at[widest].min(), abs=1e-3)  # in the middle


def test_presets_look_from_their_side(layout: Layout) -> None:
    for name, side in {"top": (0, 0, 1), "left": (-1, 0, 1), "right": (1, 0, 1), "all": (0, -1, 1)}.items():
        position, target = preset_place(name, layout, 0, Lens())
        assert np.sign(np.round((position - target) / np.linalg.norm(position - target), 1)).tolist() == list(side)
        assert target[2] == pytest.approx(0)


@pytest.mark.parametrize(
    "window", [{"image_height": 0}, {"image_width": 0}, {"image_width": 10**9}, {"fov": 0.0}, {"fov": 100.0}]
)
def test_a_window_of_any_size_gets_a_finite_camera(open_viewer: OpenViewer, window: dict[str, object]) -> None:
    with open_viewer(worlds=4, policy="idle", rate=0) as running, Visitor(running) as visitor:
        client = running.client()
        visitor.look(**window)
        until(lambda: all(getattr(client.camera, name) == value for name, value in window.items()))
        visitor.set(running.control("look_from"), "all")
        until(lambda: client.camera.position[2] > 1)
        assert np.isfinite(client.camera.position).all()
        assert running.error() == ""


def test_a_window_that_changes_while_its_camera_is_placed_is_fitted_again(
    open_viewer: OpenViewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[Lens] = []
    fit = page.preset_place

    def fit_meanwhile(name: str, layout: Layout, cell: int, lens: Lens) -> Place:
        fits.append(lens)
        if lens.aspect == 2:  # the browser says another size before the place for this one is known
            visitor.look(image_width=300, image_height=100)
            until(lambda: client.camera.image_width == 300)
        return fit(name, layout, cell, lens)

    with open_viewer(worlds=4, policy="idle", rate=0) as running, Visitor(running) as visitor:
        client = running.client()
        until(lambda: running.ask(lambda viewer: viewer._page._fits))
        monkeypatch.setattr(page, "preset_place", fit_meanwhile)
        visitor.look(image_width=200, image_height=100, position=client.camera.position.tolist())
        until(lambda: any(lens.aspect == 2 for lens in fits))
        visitor.look(image_width=300, image_height=100, position=client.camera.position.tolist())
        until(lambda: fits[-1].aspect == 3)


def wall_corners(viewer: Viewer) -> NDArray[np.float64]:
    """Corners [C, 3] of all walls of the worlds that are shown, where the picture has them."""
    state, worlds = viewer._sim.state, viewer._shown
    sides = np.array(list(itertools.product((-0.5, 0.5), (-0.5, 0.5), (0.0, 1.0))))
    positions = state.static_positions.copy_to_host()[worlds.start : worlds.stop, :, None]
    sizes = state.static_sizes.copy_to_host()[worlds.start : worlds.stop, :, None]
    corners = positions + sides * sizes + viewer._layout.offsets[:, None, None]
    is_wall = state.static_kinds.copy_to_host()[worlds.start : worlds.stop] == EntityKind.WALL
    return np.asarray(corners[is_wall].reshape(-1, 3), np.float64)


def seen_at(points: NDArray[np.float64], camera: Any) -> NDArray[np.float64]:
    """Where a browser's camera sees points, in pixels to the right and down; NaN: behind it.

    A camera looks along its +z, its +y is down.
    """
    w, x, y, z = camera.wxyz
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    turned = (points - camera.position) @ (np.eye(3) + 2 * w * cross + 2 * cross @ cross)
    depths = np.where(turned[:, 2:] > 0, turned[:, 2:], np.nan)
    focal = camera.image_height / 2 / np.tan(camera.fov / 2)
    middle = np.array([camera.image_width, camera.image_height]) / 2
    return np.asarray(middle + focal * turned[:, :2] / depths, np.float64)


def free_width(page: Any) -> float:
    """Pixels of the window to the left of the panel."""
    return float(page.get_by_role("button", name="single step").bounding_box()["x"])


def fills(points: NDArray[np.float64], page: Any, camera: Any) -> bool:
    """Whether all points are on the screen beside the panel, and take up most of what there is of it."""
    width, height = min(free_width(page), camera.image_width), camera.image_height
    at = seen_at(points, camera)
    inside = (at >= 0).all() and (at < (width, height)).all()
    return bool(inside and ((at.max(axis=0) - at.min(axis=0)) / (width, height)).max() > 0.85)


@pytest.mark.slow
@pytest.mark.parametrize("worlds", [16, 70])
def test_all_worlds_are_seen_beside_the_panel_whatever_the_window(watch: Watch, worlds: int) -> None:
    with watch(worlds=worlds, policy="idle", rate=0) as watched:
        points = watched.ask(wall_corners)
        for width, height in ((1280, 720), (1024, 768), (1920, 1080), (700, 900)):
            watched.page.set_viewport_size({"width": width, "height": height})
            until(lambda: fills(points, watched.page, watched.running.client().camera))


@pytest.mark.slow
def test_a_preset_fits_every_window_until_the_camera_is_moved(watch: Watch) -> None:
    with watch(worlds=4, policy="idle", rate=0) as watched:
        camera = watched.running.client().camera
        corners, layout = watched.ask(wall_corners), watched.ask(lambda viewer: viewer._layout)
        first_world = corners[: len(corners) // 4]
        watched.click("right")
        for width in (1200, 800):
            watched.page.set_viewport_size({"width": width, "height": 700})
            until(lambda: fills(first_world, watched.page, camera))

        fitted = camera.position
        watched.page.mouse.move(200, 300)
        watched.page.mouse.wheel(0, -500)
        until(lambda: np.linalg.norm(camera.position - fitted) > 5)
        before = camera.image_width
        watched.page.set_viewport_size({"width": 1100, "height": 700})
        until(lambda: camera.image_width > before)
        watched.ask(lambda _: None)  # what the new size has asked for is done
        fit, _ = preset_place("right", layout, 0, Lens(camera.fov, camera.aspect))
        assert np.linalg.norm(camera.position - fit) > 3


@pytest.mark.slow
def test_each_of_two_visitors_sees_all_worlds(watch: Watch, browser: Any) -> None:
    with watch(worlds=16, policy="idle", rate=0) as watched:
        points, server, first = watched.ask(wall_corners), watched.running.server, watched.running.client()
        second_page = browser.new_page(viewport={"width": 1600, "height": 500})
        try:
            second_page.goto(watched.running.url)
            until(lambda: len(server.get_clients()) == 2)
            (second,) = (client for client in server.get_clients().values() if client is not first)
            until(lambda: fills(points, second_page, second.camera))
            assert fills(points, watched.page, first.camera)
        finally:
            second_page.close()


def drawings_are_whole(page: Any) -> bool:
    """Whether the panel shows lidar, observations and a curve of returns."""
    shown = {one.get_attribute("aria-label") for one in page.locator("svg[role=img]").all()}
    labels = {"lidar, seen from above", "observations", "return of the last steps"}
    return labels <= shown and page.locator("svg[role=img] polyline").count() > 0


@pytest.mark.slow
def test_drawings_are_whole_after_a_reload(watch: Watch) -> None:
    with watch(worlds=2, policy="random", rate=100) as watched:
        for _ in range(3):
            until(lambda: drawings_are_whole(watched.page))
            watched.page.reload()
        watched.click("pause")
        watched.page.get_by_role("button", name="resume").wait_for()
        watched.page.reload()
        until(lambda: drawings_are_whole(watched.page))


@pytest.mark.slow
def test_a_click_on_the_floor_of_a_world_chooses_it_and_gets_closer(watch: Watch) -> None:
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
def test_the_page_loads_nothing_from_other_servers(watch: Watch, browser: Any) -> None:
    with watch(worlds=1, policy="idle") as watched:
        asked: list[str] = []
        page = browser.new_page()
        try:
            page.on("request", lambda request: asked.append(request.url))
            page.on("websocket", lambda socket: asked.append(socket.url))
            failures: list[str] = []
            page.on("pageerror", lambda error: failures.append(str(error)))
            page.goto(watched.running.url)
            page.get_by_role("button", name="pause").wait_for(timeout=1000 * PATIENCE)
        finally:
            page.close()
        own = (watched.running.url, watched.running.url.replace("http", "ws"), f"blob:{watched.running.url}", "data:")
        assert [url for url in asked if not url.startswith(own)] == []
        assert len(asked) >= 2
        assert failures == []
