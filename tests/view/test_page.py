"""The page as a whole, in windows of several sizes: what can be seen, and what a reload and a second visitor find."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.running import Watch, Watched, until

from doorstep import EntityKind
from doorstep.view import cameras
from doorstep.view.cameras import Lens
from doorstep.view.viewer import Viewer

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("worlds", [16, 70])
def test_all_worlds_are_seen_beside_the_panel_whatever_the_window(watch: Watch, worlds: int) -> None:
    with watch(worlds=worlds, policy="idle", rate=0) as watched:
        points = watched.ask(wall_corners)
        for width, height in ((1280, 720), (1024, 768), (1920, 1080), (700, 900)):
            watched.page.set_viewport_size({"width": width, "height": height})
            until(lambda: fills(points, watched.page, watched.running.client().camera))


def test_a_preset_fits_every_window_until_somebody_moves_the_camera(watch: Watch) -> None:
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
        fit, _ = cameras.preset("right", layout, 0, Lens(camera.fov, camera.aspect))
        assert np.linalg.norm(camera.position - fit) > 3


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


CHARTS = """() => Object.values(window.__viserTestpoints?.uplots ?? {}).map(({chart}) => ({
    isTime: chart.scales.x.time, low: chart.scales.x.min, high: chart.scales.x.max, xs: [...chart.data[0]],
}))"""  # viser keeps its plots where its own tests find them


def curves_are_drawn(page: Any) -> bool:
    """Whether each plot has a curve, whose points all lie within the axis, and no axis shows dates."""
    charts = page.evaluate(CHARTS)
    return len(charts) >= 2 and all(
        not chart["isTime"] and len(xs) > 2 and chart["low"] <= min(xs) and max(xs) <= chart["high"]
        for chart in charts
        for xs in [chart["xs"]]
    )


def test_plots_are_whole_after_a_reload(watch: Watch) -> None:
    with watch(worlds=2, policy="random", rate=100) as watched:
        for _ in range(3):
            until(lambda: curves_are_drawn(watched.page))
            watched.page.reload()
        watched.click("pause")
        watched.page.get_by_role("button", name="go on").wait_for()
        watched.page.reload()
        until(lambda: curves_are_drawn(watched.page))


def rate(watched: Watched) -> float:
    return watched.ask(lambda viewer: viewer._pace.rate)


def middle(thumb: Any) -> float:
    """Pixels from the left."""
    box = thumb.bounding_box()
    return float(box["x"] + box["width"] / 2)


def test_the_speed_slider_is_logarithmic_and_its_value_can_be_read_and_typed(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", rate=20) as watched:
        field = watched.page.get_by_role("textbox", name="steps per second")
        thumb = watched.page.get_by_role("slider").first
        until(lambda: field.input_value() == "20")
        ends = {}
        for key, steps in (("Home", 1), ("End", 1000)):
            thumb.press(key)
            until(lambda steps=steps: rate(watched) == steps)  # type: ignore[misc]
            until(lambda steps=steps: field.input_value() == str(steps))  # type: ignore[misc]
            ends[key] = middle(thumb)
        for steps, part in ((10, 1 / 3), (100, 2 / 3)):
            field.fill(str(steps))
            until(lambda steps=steps: rate(watched) == steps)  # type: ignore[misc]
            goal = ends["Home"] + part * (ends["End"] - ends["Home"])
            until(lambda goal=goal: abs(middle(thumb) - goal) < 3)  # type: ignore[misc]
        seen = watched.page.locator("input[type=text]").evaluate_all(
            "fields => fields.filter((field) => field.checkVisibility()).map((field) => field.value)"
        )
        assert seen[0] == "100"  # and not the power of ten that viser would show beside its slider
