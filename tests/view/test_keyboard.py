"""Keys make an agent act, in a `Keyboard` and in a browser."""

from __future__ import annotations

import asyncio
import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

from tests.view.running import Watch, Watched, until

from doorstep.viewer.keyboard import Key, Keyboard, connect
from doorstep.viewer.viewer import Viewer


@pytest.mark.parametrize(
    ("keys", "action"),
    [
        ("", (0, 0, 2, 0)),
        ("W", (1, 0, 2, 0)),
        ("WD", (1, 1, 2, 0)),
        ("D", (1, 2, 2, 0)),
        ("SD", (1, 3, 2, 0)),
        ("S", (1, 4, 2, 0)),
        ("SA", (1, 5, 2, 0)),
        ("A", (1, 6, 2, 0)),
        ("WA", (1, 7, 2, 0)),
        ("WS", (0, 0, 2, 0)),
        ("WASD", (0, 0, 2, 0)),
        ("FW", (3, 0, 2, 0)),
        ("F", (0, 0, 2, 0)),
        ("Q", (0, 0, 3, 0)),
        ("E", (0, 0, 1, 0)),
        ("FQ", (0, 0, 4, 0)),
        ("FE", (0, 0, 0, 0)),
        ("QE", (0, 0, 2, 0)),
        ("G", (0, 0, 2, 1)),
        ("WQG", (1, 0, 3, 1)),
    ],
)
def test_keys_mean_the_actions_of_the_reference(keys: list[Key], action: tuple[int, ...]) -> None:
    keyboard = Keyboard()
    for key in keys:
        keyboard.press(0, key)
    assert keyboard.act() == action


def test_a_key_counts_while_it_is_held_and_at_least_once() -> None:
    keyboard = Keyboard()
    keyboard.press(0, "W")
    assert [keyboard.act()[0] for _ in range(3)] == [1, 1, 1]
    keyboard.release(0, "W")
    assert keyboard.act()[0] == 0
    keyboard.press(0, "W")
    keyboard.release(0, "W")  # between two steps
    assert [keyboard.act()[0] for _ in range(2)] == [1, 0]


def test_each_press_of_g_grabs_in_one_step() -> None:
    keyboard = Keyboard()
    keyboard.press(0, "G")
    keyboard.press(0, "G")
    assert [keyboard.act()[3] for _ in range(3)] == [1, 1, 0]


def test_keys_of_a_browser_that_disconnects_are_released() -> None:
    keyboard = Keyboard()
    keyboard.press(1, "W")
    keyboard.press(2, "D")
    keyboard.act()
    keyboard.forget(1)
    assert keyboard.act() == (1, 2, 2, 0)
    keyboard.clear()
    assert keyboard.act() == (0, 0, 2, 0)


def test_hotkeys_of_a_page_hold_its_keys_and_r_resets() -> None:
    events: dict[tuple[str, str], Any] = {}

    def add_command(label: str, *, hotkey: str, modifier: str) -> Any:
        return SimpleNamespace(on_trigger=functools.partial(events.__setitem__, (hotkey, modifier)))

    server: Any = SimpleNamespace(gui=SimpleNamespace(add_command=add_command), on_client_disconnect=lambda _: None)
    resets: list[int] = []
    keyboard = Keyboard()
    connect(server, keyboard, lambda: resets.append(1))

    def trigger(key: Key, modifier: str) -> None:
        asyncio.run(events[key, modifier](SimpleNamespace(client_id=3)))

    trigger("W", "alt+shift")
    assert [keyboard.act() for _ in range(2)] == [(1, 0, 2, 0)] * 2
    trigger("W", "cmd/ctrl+alt+shift")
    assert keyboard.act() == (0, 0, 2, 0)
    trigger("R", "alt+shift")
    assert len(resets) == 1
    assert keyboard.act() == (0, 0, 2, 0)


def until_stepped_to(watched: Watched, step: int) -> None:
    until(lambda: watched.position() >= step)


def until_tapped(watched: Watched, keys: set[str]) -> None:
    until(lambda: watched.ask(lambda viewer: keys <= viewer._keyboard._tapped))


def yaw(watched: Watched) -> float:
    w, _, _, z = watched.ask(lambda viewer: viewer._sim.state.body_rotations.copy_to_host()[0, 0])
    return float(2 * np.arctan2(z, w))


def play(watched: Watched, who: str) -> None:
    watched.choose("who acts", who)
    playing = "false" if who == "policy" else "true"
    watched.page.wait_for_function(f"window.doorstepKeys.isPlaying() === {playing}")


@pytest.mark.slow
def test_a_player_walks_in_eight_directions_and_stops_with_the_keys(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", rate=50, episode_length=1_000_000) as watched:
        play(watched, "agent 0")
        watched.choose("camera", "fly")
        until(lambda: not watched.ask(lambda viewer: viewer._following))
        camera = np.array(watched.running.client().camera.position)
        diagonal = np.sqrt(0.5)
        for keys, direction in {"w": (0, 1), "a": (-1, 0), "sd": (diagonal, -diagonal)}.items():
            watched.stand(0, 6)
            for key in keys:
                watched.page.keyboard.down(key)
            until(lambda: np.linalg.norm(watched.agent() - (0, 6)) > 2)
            for key in keys:
                watched.page.keyboard.up(key)
            until(lambda: not watched.ask(lambda viewer: any(viewer._keyboard._held.values())))
            where = watched.agent()
            moved = where - (0, 6)
            assert moved / np.linalg.norm(moved) == pytest.approx(direction, abs=0.2)
            until_stepped_to(watched, watched.position() + 4)
            assert watched.agent() == pytest.approx(where, abs=0.35)  # one step may have been under way
        assert watched.running.client().camera.position == pytest.approx(camera)  # the same keys would move it


@pytest.mark.slow
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
            watched.stand(0, 6)
            for key in keys:
                watched.page.keyboard.down(key)
            names = {{"Shift": "F"}.get(key, key.upper()) for key in keys}
            until_tapped(watched, names)
            watched.ask(Viewer.step_once)
            assert watched.agent()[1] - 6 == pytest.approx(distance, abs=0.01)
            assert yaw(watched) == pytest.approx(turn, abs=0.01)
            for key in keys:
                watched.page.keyboard.up(key)
            until(lambda: not watched.ask(lambda viewer: any(viewer._keyboard._held.values())))


@pytest.mark.slow
def test_g_grabs_the_cube_ahead_once_per_press_and_r_resets(watch: Watch) -> None:
    with watch(worlds=1, policy="idle", rate=0) as watched:
        play(watched, "agent 0")
        cube = watched.ask(lambda viewer: viewer._sim.state.body_positions.copy_to_host()[0, 2])
        watched.stand(cube[0], cube[1] - 3)
        for held in (2, -1):
            watched.page.keyboard.press("g")
            until(lambda: watched.ask(lambda viewer: viewer._keyboard._grabs) == 1)
            for _ in range(3):
                watched.ask(Viewer.step_once)
            assert watched.ask(lambda viewer: viewer._sim.state.agent_grabs.to_numpy()[0, 0]) == held
        episode = watched.ask(lambda viewer: int(viewer._sim.state.episode_index.to_numpy()[0]))
        watched.page.keyboard.press("r")
        until(lambda: watched.ask(lambda viewer: viewer._sim.state.episode_index.to_numpy()[0]) == episode + 1)


@pytest.mark.slow
def test_keys_do_not_play_where_numbers_are_typed_nor_when_the_policy_acts(watch: Watch) -> None:
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
