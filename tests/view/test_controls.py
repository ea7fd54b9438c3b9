"""Buttons, menus and keys in a real browser do what they say."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.running import PATIENCE, Watch, Watched, until
from viser._messages import GuiUpdateMessage

import doorstep
from doorstep.action_dump import ActionDumpWriter
from doorstep.view.viewer import Viewer

pytestmark = pytest.mark.slow


def agent(watched: Watched, number: int = 0) -> Any:
    """x and y of an agent of world 0."""
    return watched.ask(lambda viewer: viewer._sim.state.body_positions.copy_to_host()[0, number, :2])


def until_at(watched: Watched, step: int) -> None:
    until(lambda: position(watched) == step)


def until_stepped_to(watched: Watched, step: int) -> None:
    until(lambda: position(watched) >= step)


def until_tapped(watched: Watched, keys: set[str]) -> None:
    until(lambda: watched.ask(lambda viewer: keys <= viewer._keyboard._tapped))


def yaw(watched: Watched) -> float:
    w, _, _, z = watched.ask(lambda viewer: viewer._sim.state.body_rotations.copy_to_host()[0, 0])
    return float(2 * np.arctan2(z, w))


def position(watched: Watched) -> int:
    return watched.ask(lambda viewer: viewer._play.position)


def stand(watched: Watched, x: float, y: float) -> None:
    """Puts agent 0 of world 0 there, looking along +y, and the other one out of its way."""

    def write(viewer: Viewer) -> None:
        viewer._sim.state.body_positions.to_numpy()[0, :2] = [(x, y, 0), (9, 1, 0)]
        viewer._sim.state.body_rotations.to_numpy()[0, 0] = (1, 0, 0, 0)

    watched.ask(write)


def play(watched: Watched, who: str) -> None:
    watched.choose("who acts", who)
    playing = "false" if who == "policy" else "true"
    watched.page.wait_for_function(f"window.doorstepKeys.isPlaying() === {playing}")


def number_field(watched: Watched, label: str) -> Any:
    """Where a number is typed, beside a slider or alone."""
    return watched.page.locator(f"xpath=//label[normalize-space()='{label}']/following::input[@type='text'][1]")


def number(watched: Watched, label: str) -> str:
    return str(number_field(watched, label).input_value())


def set_number(watched: Watched, label: str, value: int) -> None:
    """Types a number."""
    field = number_field(watched, label)
    field.fill(str(value))
    field.press("Enter")


def test_pause_single_step_and_reset(watch: Watch) -> None:
    with watch(worlds=2, policy="random") as watched:
        until(lambda: position(watched) > 3)
        watched.click("pause")
        watched.page.get_by_role("button", name="go on").wait_for()
        stopped = position(watched)
        watched.click("single step")
        until(lambda: position(watched) == stopped + 1)
        episodes = watched.ask(lambda viewer: viewer._sim.state.episode_index.copy_to_host())
        watched.click("reset world")
        until(lambda: watched.ask(lambda viewer: viewer._sim.state.episode_index.to_numpy()[0]) == episodes[0] + 1)
        assert watched.ask(lambda viewer: viewer._sim.state.episode_index.to_numpy()[1]) == episodes[1]
        assert position(watched) == stopped + 1
        watched.click("go on")
        until(lambda: position(watched) > stopped + 3)


def test_the_speed_is_what_the_slider_says(watch: Watch) -> None:
    with watch(worlds=1, policy="idle") as watched:
        set_number(watched, "steps per second", 0)
        until(lambda: watched.ask(lambda viewer: viewer._pace.rate) == 0)
        stopped = position(watched)
        watched.click("single step")
        until(lambda: position(watched) == stopped + 1)


def test_a_player_walks_in_eight_directions_and_stops_with_the_keys(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", rate=50, episode_length=1_000_000) as watched:
        play(watched, "agent 0")
        camera = np.array(watched.running.client().camera.position)
        diagonal = np.sqrt(0.5)
        for keys, direction in {"w": (0, 1), "a": (-1, 0), "sd": (diagonal, -diagonal)}.items():
            stand(watched, 0, 6)
            for key in keys:
                watched.page.keyboard.down(key)
            until(lambda: np.linalg.norm(agent(watched) - (0, 6)) > 2)
            for key in keys:
                watched.page.keyboard.up(key)
            until(lambda: not watched.ask(lambda viewer: any(viewer._keyboard._held.values())))
            where = agent(watched)
            moved = where - (0, 6)
            assert moved / np.linalg.norm(moved) == pytest.approx(direction, abs=0.2)
            stepped = position(watched)
            until_stepped_to(watched, stepped + 4)
            assert agent(watched) == pytest.approx(where, abs=0.35)  # one step may have been under way
        assert watched.running.client().camera.position == pytest.approx(camera)  # the same keys would move it


def test_shift_is_faster_and_q_and_e_turn(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", rate=0) as watched:
        play(watched, "agent 0")
        for keys, (distance, turn) in {
            ("w",): (0.333, 0),
            ("Shift", "w"): (1.0, 0),
            ("q",): (0, 0.239),
            ("Shift", "q"): (0, 0.478),
            ("e",): (0, -0.239),
            ("w", "s"): (0, 0),
        }.items():
            stand(watched, 0, 6)
            for key in keys:
                watched.page.keyboard.down(key)
            names = {{"Shift": "F"}.get(key, key.upper()) for key in keys}
            until_tapped(watched, names)
            watched.ask(Viewer.step_once)
            assert agent(watched)[1] - 6 == pytest.approx(distance, abs=0.01)
            assert yaw(watched) == pytest.approx(turn, abs=0.01)
            for key in keys:
                watched.page.keyboard.up(key)
            until(lambda: not watched.ask(lambda viewer: any(viewer._keyboard._held.values())))


def test_g_grabs_the_cube_ahead_once_per_stroke_and_r_resets(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", rate=0) as watched:
        play(watched, "agent 0")
        cube = watched.ask(lambda viewer: viewer._sim.state.body_positions.copy_to_host()[0, 2])
        stand(watched, cube[0], cube[1] - 3)
        for held in (2, -1):
            watched.page.keyboard.press("g")
            until(lambda: watched.ask(lambda viewer: viewer._keyboard._grabs) == 1)
            for _ in range(3):
                watched.ask(Viewer.step_once)
            assert watched.ask(lambda viewer: viewer._sim.state.agent_grabs.to_numpy()[0, 0]) == held
        episode = watched.ask(lambda viewer: int(viewer._sim.state.episode_index.to_numpy()[0]))
        watched.page.keyboard.press("r")
        until(lambda: watched.ask(lambda viewer: viewer._sim.state.episode_index.to_numpy()[0]) == episode + 1)


def test_keys_do_not_play_where_numbers_are_typed_nor_when_nobody_plays(watch: Watch) -> None:
    with watch(worlds=3, policy="idle", rate=0) as watched:
        play(watched, "agent 0")
        watched.page.get_by_role("textbox", name="world").press("w")
        play(watched, "policy")
        watched.page.evaluate("document.activeElement.blur()")  # off the menu, which would search for what is typed
        watched.page.keyboard.press("r")
        play(watched, "agent 1")
        watched.page.keyboard.press("q")
        until(lambda: watched.ask(lambda viewer: viewer._keyboard._tapped) == {"Q"})  # and nothing before it
        assert watched.ask(lambda viewer: viewer._sim.state.episode_index.to_numpy()[0]) == 1


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "actions.bin"
    actions = np.random.default_rng(3).integers(0, (4, 8, 5, 2), (230, 2, 2, 4))
    with ActionDumpWriter(path, num_worlds=2) as dump:
        for step in actions:
            dump.append(step)
    return path


def recorded_hash(recording: Path, step: int) -> int:
    """Of the worlds after so many steps, without a viewer."""
    with doorstep.Simulator(2, seed=7) as sim:
        for actions in doorstep.action_dump.read_action_dump(recording, 2)[:step]:
            sim.actions = actions
            sim.step()
        return sim.hash()


def test_scrubbing_shows_the_recorded_state(watch: Watch, recording: Path) -> None:
    with watch(worlds=2, seed=7, actions=recording, rate=0) as watched:
        for goal in (205, 41, 40, 230, 0):
            set_number(watched, "step", goal)
            until_at(watched, goal)
            assert watched.ask(lambda viewer: viewer._sim.hash()) == recorded_hash(recording, goal)
            blue = watched.ask(lambda viewer: viewer._sim.state.body_positions.copy_to_host()[0, 0])
            watched.until_seen((blue + np.array([0, 0, 1.9]), "blue"))
        assert watched.page.get_by_role("button", name="reset world").count() == 0


def test_the_step_slider_shows_where_the_recording_is_whatever_was_on_its_way(watch: Watch, recording: Path) -> None:
    with watch(worlds=2, seed=7, actions=recording, rate=0) as watched:
        slider: Any = watched.ask(lambda viewer: viewer._page.controls.position)
        asked = threading.Event()

        def hold(viewer: Viewer) -> None:
            assert asked.wait(PATIENCE)

        watched.running.viewer.requests.post(hold, watched.running.viewer)
        set_number(watched, "step", 41)
        until(lambda: slider.value == 41)
        old = GuiUpdateMessage(slider._impl.uuid, {"value": 99})
        slider._impl.gui_api._websock_interface.queue_message(old)  # as if sent before, while the recording went on
        until(lambda: number(watched, "step") == "99")
        asked.set()
        until(lambda: number(watched, "step") == "41")
        assert position(watched) == 41


def test_a_recording_stops_at_its_end(watch: Watch, recording: Path) -> None:
    with watch(worlds=2, seed=7, actions=recording, rate=1000) as watched:
        watched.page.get_by_role("button", name="go on").wait_for()
        assert position(watched) == 230
        assert watched.ask(lambda viewer: viewer._sim.hash()) == recorded_hash(recording, 230)
        watched.page.get_by_text("step 230 of 230, paused").wait_for()


def test_what_the_agent_sees_is_the_picture_of_its_camera(watch: Watch) -> None:
    with watch(worlds=3, policy="idle", rate=0) as watched:
        box = watched.page.get_by_role("checkbox", name="what the agent sees")
        box.check()
        image = watched.page.locator("img[src^='blob:']")
        image.wait_for()
        drawn = "[...document.images].some((image) => image.naturalWidth === 256 && image.naturalHeight === 192)"
        watched.page.wait_for_function(drawn)
        box.uncheck()
        image.wait_for(state="detached")
        assert watched.ask(lambda viewer: viewer._first_person) is None


def test_presets_and_following_move_the_camera(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", rate=0) as watched:
        client = watched.running.client()
        watched.click("top")
        until(lambda: client.camera.position[:2] == pytest.approx((0, 19.5), abs=0.6))
        assert client.camera.position[2] > 25
        watched.click("left")
        until(lambda: client.camera.position[0] < -15)
        watched.choose("camera", "follow")
        where = agent(watched)
        until(lambda: np.linalg.norm(client.camera.position[:2] - where) < 8)
        stand(watched, 0, 20)
        until(lambda: client.camera.position == pytest.approx((0, 14, 11), abs=0.1))
        watched.click("right")
        until(lambda: client.camera.position[0] > 15)
        assert watched.ask(lambda viewer: viewer._following) is False


def test_an_error_of_the_simulator_is_shown_and_the_viewer_stays(watch: Watch) -> None:
    with watch(worlds=1, policy="idle") as watched:

        def break_it(viewer: Viewer) -> None:
            def fail() -> None:
                raise doorstep.SimulationError("a <value> is not finite", hint="look at it")

            viewer._play.step = fail  # type: ignore[method-assign]

        watched.ask(break_it)
        shown = watched.page.locator(".doorstep-error")
        assert shown.inner_text() == "SimulationError: a <value> is not finite (look at it)"
        watched.page.get_by_role("button", name="go on").wait_for()

        def mend_it(viewer: Viewer) -> None:
            del viewer._play.step

        watched.ask(mend_it)
        stopped = position(watched)
        watched.click("go on")
        until(lambda: position(watched) > stopped)
        shown.wait_for(state="detached")


def test_nothing_is_stepped_when_the_browser_has_gone(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", rate=200) as watched:
        until(lambda: position(watched) > 3)
        watched.page.close()
        until(lambda: not watched.running.server.get_clients())
        stopped = position(watched)
        assert watched.ask(lambda viewer: viewer.tick(1e9)) is None
        assert position(watched) == stopped
