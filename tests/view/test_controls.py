"""Buttons, menus and fields in a browser do what their labels say."""

import threading

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.running import PATIENCE, until
from viser._messages import GuiUpdateMessage

import doorstep
from doorstep.recording import Recording, RecordingWriter, Replay

pytestmark = pytest.mark.slow


def number_field(watched, label):
    """Where a number is typed, beside a slider or alone."""
    return watched.page.locator(f"xpath=//label[normalize-space()='{label}']/following::input[@type='text'][1]")


def set_number(watched, label, value):
    """Types a number."""
    number_field(watched, label).fill(str(value))
    number_field(watched, label).press("Enter")


def test_pause_single_step_reset_and_speed(watch):
    def episodes():
        return watched.ask(lambda viewer: viewer._sim.state.episode_index.copy_to_host().tolist())

    with watch(worlds=2, policy="random") as watched:
        until(lambda: watched.position() > 3)
        watched.click("pause")
        watched.page.get_by_role("button", name="resume").wait_for()
        stopped = watched.position()
        watched.click("single step")
        until(lambda: watched.position() == stopped + 1)
        first, second = episodes()
        watched.click("reset world")
        until(lambda: (episodes(), watched.position()) == ([first + 1, second], stopped + 1))
        watched.click("resume")
        until(lambda: watched.position() > stopped + 3)
        set_number(watched, "steps per second", 0)
        until(lambda: watched.ask(lambda viewer: viewer._pace.rate) == 0)
        stopped = watched.position()
        watched.click("single step")
        until(lambda: watched.position() == stopped + 1)


@pytest.fixture
def recording(tmp_path):
    actions = np.random.default_rng(3).integers(0, doorstep.ACTIONS, (230, 2, 2, 4))
    with doorstep.Simulator(2, seed=7) as sim, RecordingWriter(tmp_path / "run.rec", sim) as writer:
        for step in actions:
            sim.actions = step
            writer.step()
    with Recording(tmp_path / "run.rec") as opened:
        yield opened


def test_scrubbing_shows_the_recorded_state_whatever_was_on_its_way(watch, recording):
    with watch(recording=recording, rate=0) as watched:
        for goal in (205, 40, 230, 0):
            set_number(watched, "step", goal)
            until(lambda goal=goal: watched.position() == goal)
            with doorstep.Simulator(2, seed=7) as sim:  # without a viewer
                replay = Replay(recording, sim)
                for _ in range(goal):
                    replay.step()
                assert watched.ask(lambda viewer: viewer._sim.hash()) == sim.hash()
            blue = watched.ask(lambda viewer: viewer._sim.state.body_positions.copy_to_host()[0, 0])
            watched.until_seen((blue + np.array([0, 0, 1.9]), "blue"))
        assert watched.page.get_by_role("button", name="reset world").count() == 0
        slider = watched.ask(lambda viewer: viewer._page.controls.position)
        asked = threading.Event()
        watched.running.viewer.requests.post(lambda: asked.wait(PATIENCE))
        set_number(watched, "step", 41)
        until(lambda: slider.value == 41)
        old = GuiUpdateMessage(slider._impl.uuid, {"value": 99})
        slider._impl.gui_api._websock_interface.queue_message(old)  # as if sent before, while the recording went on
        until(lambda: number_field(watched, "step").input_value() == "99")
        asked.set()
        until(lambda: number_field(watched, "step").input_value() == "41")
        assert watched.position() == 41


def test_presets_and_following_move_the_camera(watch):
    with watch(worlds=1, policy="idle", rate=0) as watched:
        camera = watched.running.client().camera
        watched.click("top")
        until(lambda: camera.position[:2] == pytest.approx((0, 19.5), abs=0.6))
        assert camera.position[2] > 25
        watched.click("left")
        until(lambda: camera.position[0] < -15)
        watched.choose("camera", "follow")
        where = watched.agent()
        until(lambda: np.linalg.norm(camera.position[:2] - where) < 8)
        watched.stand(0, 20)
        until(lambda: camera.position == pytest.approx((0, 14, 11), abs=0.1))
        watched.click("right")
        until(lambda: camera.position[0] > 15)
        assert watched.ask(lambda viewer: viewer._following) is False


def test_an_error_is_shown_the_viewer_continues_and_nothing_is_stepped_when_the_browser_has_gone(watch):
    with watch(worlds=1, policy="idle", rate=200) as watched:

        def fail():
            raise doorstep.SimulationError("a <value> is not finite", hint="look at it")

        watched.ask(lambda viewer: setattr(viewer._play, "step", fail))
        shown = watched.page.locator(".doorstep-error")
        assert shown.inner_text() == "SimulationError: a <value> is not finite (look at it)"
        watched.page.get_by_role("button", name="resume").wait_for()
        watched.ask(lambda viewer: delattr(viewer._play, "step"))
        stopped = watched.position()
        watched.click("resume")
        until(lambda: watched.position() > stopped)
        shown.wait_for(state="detached")
        watched.page.close()
        until(lambda: not watched.running.server.get_clients())
        stopped = watched.position()
        assert watched.ask(lambda viewer: viewer.tick(1e9)) is None
        assert watched.position() == stopped
