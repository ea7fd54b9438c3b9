"""What the browser shows is what the state says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.eyes import FIELD_OF_VIEW, HEIGHT, centroid
from tests.view.running import PATIENCE, Watch, Watched

from doorstep import EntityKind
from doorstep.view.viewer import Viewer

pytestmark = pytest.mark.slow


def state(watched: Watched, name: str) -> Any:
    """A field of world 0."""
    return watched.ask(lambda viewer: getattr(viewer._sim.state, name).copy_to_host()[0])


def edit(watched: Watched, name: str, slot: Any, value: Any) -> None:
    def write(viewer: Viewer) -> None:
        getattr(viewer._sim.state, name).to_numpy()[0, slot] = value

    watched.ask(write)


def test_every_thing_is_seen_where_the_state_has_it(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", seed=5) as watched:
        watched.ask(Viewer.toggle_pause)
        watched.eyes.look_down(0, 20, 45)
        tops = {EntityKind.AGENT: 1.9, EntityKind.CUBE: 1.5}
        positions, kinds = state(watched, "body_positions"), state(watched, "body_kinds")
        bodies = [position + np.array([0, 0, tops[kind]]) for position, kind in zip(positions, kinds, strict=True)]
        assert kinds.tolist() == [EntityKind.AGENT] * 2 + [EntityKind.CUBE] * (len(kinds) - 2)
        statics, sizes = state(watched, "static_positions"), state(watched, "static_sizes")
        static_colours = {EntityKind.WALL: "grey", EntityKind.DOOR: "red"}
        watched.until_seen(
            *zip(bodies, ["blue", "pink"] + ["orange"] * (len(bodies) - 2), strict=True),
            *((button, "yellow") for button in state(watched, "button_positions")),
            *zip(
                statics + sizes * (0, 0, 1),
                [static_colours[kind] for kind in state(watched, "static_kinds")],
                strict=True,
            ),
            ((0.0, 5.0, 0.0), "green"),  # the floor
            ((15.0, 20.0, 0.0), "black"),  # nothing
        )


def test_eyes_show_where_an_agent_looks(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", seed=5) as watched:
        watched.ask(Viewer.toggle_pause)
        edit(watched, "body_positions", 0, (0.0, 6.0, 0.0))
        edit(watched, "body_rotations", 0, (np.cos(np.pi / 4), 0, 0, np.sin(np.pi / 4)))  # to the left
        watched.eyes.look_down(0, 6, 8)
        sides = (6.0 - 0.36, 6.0 + 0.36)
        eyes = [((-0.85, y, 1.38), "black") for y in sides]
        back = [((0.5, y, 1.6), "blue") for y in sides]
        watched.until_seen(*eyes, *back)


def test_an_open_door_is_gone_and_a_closed_one_is_there(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", seed=5) as watched:
        watched.ask(Viewer.toggle_pause)
        slot = int(state(watched, "door_static")[0])
        door = state(watched, "static_positions")[slot]
        watched.eyes.look_down(door[0], door[1], 20)
        watched.until_seen(((*door[:2], 4.375), "red"))
        edit(watched, "door_open", 0, 1)
        edit(watched, "static_positions", (slot, 2), -4.8)
        watched.until_seen(((*door[:2], 0.0), "green"))


def test_a_pressed_button_lights_up(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", seed=5) as watched:
        watched.ask(Viewer.toggle_pause)
        button = state(watched, "button_positions")[0]
        watched.eyes.look_down(button[0], button[1], 6)
        watched.until_seen((button, "yellow"))
        edit(watched, "button_pressed", 0, 1)
        watched.until_seen((button, "green"))
        bright, floor = watched.eyes.see()[watched.eyes.pixel(button)], watched.eyes.see()[5, 5]
        assert int(bright[1]) > int(floor[1]) + 60  # a green unlike the floor's


def test_an_agent_moves_on_the_screen_as_far_as_in_the_world(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", seed=5) as watched:
        watched.ask(Viewer.toggle_pause)
        edit(watched, "body_positions", 0, (0.0, 4.0, 0.0))
        edit(watched, "body_rotations", 0, (1, 0, 0, 0))
        watched.eyes.look_down(0, 6, 15)
        watched.until_seen(((0, 4, 1.9), "blue"))
        before = centroid(watched.eyes.see(), "blue")

        def walk(viewer: Viewer) -> None:
            viewer._play.player = (0, 0, lambda: (3, 0, 2, 0))  # type: ignore[attr-defined]
            for _ in range(4):
                viewer.step_once()

        watched.ask(walk)
        assert state(watched, "body_positions")[0, 1] == pytest.approx(8.0, abs=0.05)
        watched.until_seen(((0, 8, 1.9), "blue"))
        up, left = before - centroid(watched.eyes.see(), "blue")
        pixels_per_metre = HEIGHT / 2 / np.tan(FIELD_OF_VIEW / 2) / (15 - 1.0)  # halfway up the agent
        assert up == pytest.approx(4 * pixels_per_metre, rel=0.1)
        assert abs(left) < 3


def test_worlds_stand_side_by_side_with_the_numbers_of_the_sheet(watch: Watch) -> None:
    with watch(worlds=70, policy="idle", seed=5) as watched:
        watched.ask(Viewer.toggle_pause)
        watched.ask(lambda viewer: viewer.choose_world(69))
        layout = watched.ask(lambda viewer: viewer._layout)
        assert layout.cells == 64
        first = watched.ask(lambda viewer: viewer._shown).start
        assert first == 6
        positions = watched.ask(lambda viewer: viewer._sim.state.body_positions.copy_to_host())
        for cell in (0, 30, 63):
            cube = positions[first + cell, 5] + layout.offsets[cell]
            watched.eyes.look_down(cube[0], cube[1], 12)
            top = cube + np.array([0, 0, 1.5], np.float32)
            watched.until_seen((top, "orange"))


def test_rays_are_drawn_once_they_are_switched_on(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", seed=5) as watched:
        watched.ask(Viewer.toggle_pause)
        edit(watched, "body_positions", 0, (0.0, 6.0, 0.0))
        edit(watched, "body_rotations", 0, (1, 0, 0, 0))
        edit(watched, "body_positions", 1, (-8.0, 2.0, 0.0))
        watched.ask(lambda viewer: viewer._sim.refresh())
        watched.eyes.look_down(0, 6, 6)
        eighth = 2 * np.pi * 8 / 30 + np.pi / 2
        on_a_ray, beside = (2 * np.cos(eighth), 6 + 2 * np.sin(eighth), 0.5), (-1.9, 6.0, 0.5)
        watched.until_seen((on_a_ray, "green"), (beside, "green"))
        watched.page.get_by_role("checkbox", name="lidar rays").check()
        watched.until_seen((on_a_ray, "blue"), (beside, "green"))
        watched.page.get_by_role("checkbox", name="lidar rays").uncheck()
        ahead, too_far = (0.0, 7.5, 0.5), (0.0, 8.3, 0.5)
        watched.until_seen((on_a_ray, "green"), (ahead, "green"))
        watched.page.get_by_role("checkbox", name="grab rays").check()
        watched.until_seen((ahead, "white"), (too_far, "green"))


def test_the_page_needs_nothing_from_elsewhere(watch: Watch, browser: Any, tmp_path: Path) -> None:
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
