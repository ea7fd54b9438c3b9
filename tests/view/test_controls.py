"""Buttons, menus and fields in a browser do what their labels say."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.running import PATIENCE, Watch, Watched, until
from viser._messages import GuiUpdateMessage

import doorstep
from doorstep.recording import Recording, RecordingWriter, Replay
from doorstep.viewer.viewer import Viewer

pytestmark = pytest.mark.slow


def until_at(watched: Watched, step: int) -> None:
    until(lambda: watched.position() == step)


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
        until(lambda: watched.position() > 3)
        watched.click("pause")
        watched.page.get_by_role("button", name="resume").wait_for()
        stopped = watched.position()
        watched.click("single step")
        until(lambda: watched.position() == stopped + 1)
        episodes = watched.ask(lambda viewer: viewer._sim.state.episode_index.copy_to_host())
        watched.click("reset world")
        until(lambda: watched.ask(lambda viewer: viewer._sim.state.episode_index.to_numpy()[0]) == episodes[0] + 1)
        assert watched.ask(lambda viewer: viewer._sim.state.episode_index.to_numpy()[1]) == episodes[1]
        assert watched.position() == stopped + 1
        watched.click("resume")
        until(lambda: watched.position() > stopped + 3)


def test_the_speed_is_what_the_slider_says(watch: Watch) -> None:
    with watch(worlds=1, policy="idle") as watched:
        set_number(watched, "steps per second", 0)
        until(lambda: watched.ask(lambda viewer: viewer._pace.rate) == 0)
        stopped = watched.position()
        watched.click("single step")
        until(lambda: watched.position() == stopped + 1)


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    actions = np.random.default_rng(3).integers(0, doorstep.ACTIONS, (230, 2, 2, 4))
    with doorstep.Simulator(2, seed=7) as sim, RecordingWriter(tmp_path / "run.rec", sim) as writer:
        for step in actions:
            sim.actions = step
            writer.step()
    with Recording(tmp_path / "run.rec") as opened:
        yield opened


def recorded_hash(recording: Recording, step: int) -> int:
    """Of the worlds after so many steps, without a viewer."""
    with doorstep.Simulator(2, seed=7) as sim:
        replay = Replay(recording, sim)
        for _ in range(step):
            replay.step()
        return sim.hash()


def test_scrubbing_shows_the_recorded_state(watch: Watch, recording: Recording) -> None:
    with watch(recording=recording, rate=0) as watched:
        for goal in (205, 41, 40, 230, 0):
            set_number(watched, "step", goal)
            until_at(watched, goal)
            assert watched.ask(lambda viewer: viewer._sim.hash()) == recorded_hash(recording, goal)
            blue = watched.ask(lambda viewer: viewer._sim.state.body_positions.copy_to_host()[0, 0])
            watched.until_seen((blue + np.array([0, 0, 1.9]), "blue"))
        assert watched.page.get_by_role("button", name="reset world").count() == 0


def test_the_step_slider_shows_where_the_recording_is_whatever_was_on_its_way(
    watch: Watch, recording: Recording
) -> None:
    with watch(recording=recording, rate=0) as watched:
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
        assert watched.position() == 41


def test_a_recording_stops_at_its_end(watch: Watch, recording: Recording) -> None:
    with watch(recording=recording, rate=1000) as watched:
        watched.page.get_by_role("button", name="resume").wait_for()
        assert watched.position() == 230
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
        assert watched.ask(lambda viewer: viewer._agent_camera) is None


def test_presets_and_following_move_the_camera(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", rate=0) as watched:
        client = watched.running.client()
        watched.click("top")
        until(lambda: client.camera.position[:2] == pytest.approx((0, 19.5), abs=0.6))
        assert client.camera.position[2] > 25
        watched.click("left")
        until(lambda: client.camera.position[0] < -15)
        watched.choose("camera", "follow")
        where = watched.agent()
        until(lambda: np.linalg.norm(client.camera.position[:2] - where) < 8)
        watched.stand(0, 20)
        until(lambda: client.camera.position == pytest.approx((0, 14, 11), abs=0.1))
        watched.click("right")
        until(lambda: client.camera.position[0] > 15)
        assert watched.ask(lambda viewer: viewer._following) is False


def test_an_error_of_the_simulator_is_shown_and_the_viewer_continues(watch: Watch) -> None:
    with watch(worlds=1, policy="idle") as watched:

        def break_it(viewer: Viewer) -> None:
            def fail() -> None:
                raise doorstep.SimulationError("a <value> is not finite", hint="look at it")

            viewer._play.step = fail  # type: ignore[method-assign]

        watched.ask(break_it)
        shown = watched.page.locator(".doorstep-error")
        assert shown.inner_text() == "SimulationError: a <value> is not finite (look at it)"
        watched.page.get_by_role("button", name="resume").wait_for()

        def mend_it(viewer: Viewer) -> None:
            del viewer._play.step

        watched.ask(mend_it)
        stopped = watched.position()
        watched.click("resume")
        until(lambda: watched.position() > stopped)
        shown.wait_for(state="detached")


def test_nothing_is_stepped_when_the_browser_has_gone(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", rate=200) as watched:
        until(lambda: watched.position() > 3)
        watched.page.close()
        until(lambda: not watched.running.server.get_clients())
        stopped = watched.position()
        assert watched.ask(lambda viewer: viewer.tick(1e9)) is None
        assert watched.position() == stopped


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
