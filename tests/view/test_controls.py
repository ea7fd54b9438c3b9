"""Buttons, menus, fields and keys in a browser do what their labels say; and keys in a `Keyboard`."""

import threading

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.running import PATIENCE, until
from viser._messages import GuiUpdateMessage

import doorstep
from doorstep.recording import Recording, RecordingWriter, Replay
from doorstep.viewer.keyboard import Keyboard
from doorstep.viewer.viewer import Viewer


def number_field(watched, label):
    """Where a number is typed, beside a slider or alone."""
    return watched.page.locator(f"xpath=//label[normalize-space()='{label}']/following::input[@type='text'][1]")


def set_number(watched, label, value, has_come):
    """Types a number until it has come: what the viewer sent before may be shown in its place before it is entered."""

    def enter():
        number_field(watched, label).fill(str(value))
        number_field(watched, label).press("Enter")
        return has_come()

    until(enter)


@pytest.fixture
def recording(tmp_path):
    actions = np.random.default_rng(3).integers(0, doorstep.ACTIONS, (230, 2, 2, 4))
    with doorstep.Simulator(2, seed=7) as sim, RecordingWriter(tmp_path / "run.rec", sim) as writer:
        for step in actions:
            sim.actions = step
            writer.step()
    with Recording(tmp_path / "run.rec") as opened:
        yield opened


@pytest.mark.slow
def test_scrubbing_shows_the_recorded_state_whatever_was_on_its_way(watch, recording):
    with watch(recording=recording, rate=0) as watched:
        for goal in (205, 40, 230, 0):
            set_number(watched, "step", goal, lambda goal=goal: watched.position() == goal)
            with doorstep.Simulator(2, seed=7) as sim:  # without a viewer
                replay = Replay(recording, sim)
                for _ in range(goal):
                    replay.step()
                assert watched.ask(lambda viewer: viewer._sim.hash()) == sim.hash()
        assert watched.page.get_by_role("button", name="reset world").count() == 0
        slider = watched.ask(lambda viewer: viewer._page.controls.position)
        held, asked = threading.Event(), threading.Event()
        watched.running.viewer.requests.post(lambda: (held.set(), asked.wait(PATIENCE)))
        assert held.wait(PATIENCE)
        set_number(watched, "step", 41, lambda: slider.value == 41)
        old = GuiUpdateMessage(slider._impl.uuid, {"value": 99})
        slider._impl.gui_api._websock_interface.queue_message(old)  # as if sent before, while the recording went on
        until(lambda: number_field(watched, "step").input_value() == "99")
        asked.set()
        until(lambda: number_field(watched, "step").input_value() == "41")
        assert watched.position() == 41


@pytest.mark.slow
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


# ---- Keys

# Keys that are held, and the action of the reference that they mean.
ACTIONS = {
    **dict.fromkeys(("", "WS", "WASD", "F", "QE"), (0, 0, 2, 0)),
    **{keys: (1, angle, 2, 0) for angle, keys in enumerate(("W", "WD", "D", "SD", "S", "SA", "A", "WA"))},
    **{keys: (0, 0, turn, 0) for turn, keys in {0: "FE", 1: "E", 3: "Q", 4: "FQ"}.items()},
    "FW": (3, 0, 2, 0), "G": (0, 0, 2, 1), "WQG": (1, 0, 3, 1),
}  # fmt: skip


def test_keys_mean_the_actions_of_the_reference():
    for keys, action in ACTIONS.items():
        keyboard = Keyboard()
        for key in keys:
            keyboard.press(0, key)
        assert keyboard.act() == action, keys


def test_a_key_counts_while_it_is_held_and_at_least_once_and_g_once_for_each_press():
    keyboard = Keyboard()
    keyboard.press(0, "W")
    assert [keyboard.act()[0] for _ in range(3)] == [1, 1, 1]
    keyboard.release(0, "W")
    assert keyboard.act()[0] == 0
    keyboard.press(0, "W")
    keyboard.release(0, "W")  # between two steps
    assert [keyboard.act()[0] for _ in range(2)] == [1, 0]
    for _ in range(2):
        keyboard.press(0, "G")
    assert [keyboard.act()[3] for _ in range(3)] == [1, 1, 0]


def test_keys_of_a_browser_that_disconnects_are_released():
    keyboard = Keyboard()
    keyboard.press(1, "W")
    keyboard.press(2, "D")
    keyboard.act()
    keyboard.forget(1)
    assert keyboard.act() == (1, 2, 2, 0)
    keyboard.press(1, "D")
    keyboard.release(1, "D")
    assert [keyboard.act() for _ in range(2)] == [(1, 2, 2, 0)] * 2  # the other browser still holds it
    for key in "QG":
        keyboard.press(2, key)
    keyboard.clear()
    assert keyboard.act() == (0, 0, 2, 0)


def play(watched, who):
    watched.choose("who acts", who)
    watched.page.wait_for_function(f"window.doorstepKeys.isPlaying() === {str(who != 'policy').lower()}")


@pytest.mark.slow
def test_shift_is_faster_q_and_e_turn_g_grabs_and_r_resets(watch):
    def state(name):
        return watched.ask(lambda viewer: getattr(viewer._sim.state, name).copy_to_host()[0])

    with watch(worlds=1, policy="idle", rate=0) as watched:
        keyboard = watched.page.keyboard
        play(watched, "agent 0")
        for keys, action in {
            ("w",): (1, 0, 2, 0), ("Shift", "w"): (3, 0, 2, 0), ("q",): (0, 0, 3, 0), ("Shift", "q"): (0, 0, 4, 0),
            ("e",): (0, 0, 1, 0), ("w", "s"): (0, 0, 2, 0),
        }.items():  # fmt: skip
            for key in keys:
                keyboard.down(key)
            names = {{"Shift": "F"}.get(key, key.upper()) for key in keys}
            until(lambda names=names: watched.ask(lambda viewer: names <= viewer._keyboard._tapped))
            assert watched.ask(lambda viewer: viewer._keyboard.act()) == action
            for key in keys:
                keyboard.up(key)
            until(lambda: not watched.ask(lambda viewer: any(viewer._keyboard._held.values())))
        cube = state("body_positions")[2]
        watched.stand(cube[0], cube[1] - 3)
        for held in (2, -1):
            keyboard.press("g")
            until(lambda: watched.ask(lambda viewer: viewer._keyboard._grabs) == 1)
            for _ in range(3):
                watched.ask(Viewer.step_once)
            assert state("agent_grabs")[0] == held
        episode = int(state("episode_index"))
        keyboard.press("r")
        until(lambda: state("episode_index") == episode + 1)


@pytest.mark.slow
def test_keys_do_not_play_where_numbers_are_typed_nor_when_the_policy_acts(watch):
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
