"""Playing an agent with the keyboard: the keys that are held in the page, and the actions that they mean.

    W A S D   walk forward, left, back, right; two keys: in between
    Q E       turn left, right
    Shift     faster
    G         grab or release
    R         reset the world

keyboard.js in the page turns each press and release of a key into a hotkey of viser, which calls a `Keyboard`.
"""

from __future__ import annotations

import html
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

import viser

Key = Literal["W", "A", "S", "D", "Q", "E", "F", "G", "R"]
"""F stands for the Shift key."""
KEYS: tuple[Key, ...] = get_args(Key)

_DIRECTIONS: dict[Key, tuple[int, int]] = {"W": (0, 1), "A": (-1, 0), "S": (0, -1), "D": (1, 0)}  # (right, forward)
_TURNS: dict[Key, int] = {"Q": 1, "E": -1}

# (right, forward) to the move angle of an action: clockwise from forward, in eighths of a turn
_ANGLES = {(0, 1): 0, (1, 1): 1, (1, 0): 2, (1, -1): 3, (0, -1): 4, (-1, -1): 5, (-1, 0): 6, (-1, 1): 7}
_WALK, _RUN = 1, 3
_STRAIGHT, _TURN, _FAST_TURN = 2, 1, 2

_SCRIPT = Path(__file__).with_name("keyboard.js").read_text(encoding="utf-8")
_HELP = """
<div style="font-size: 0.8em; padding: 0.3em 0.6em; line-height: 1.6">
  <b>W A S D</b> walk &nbsp; <b>Q E</b> turn &nbsp; <b>Shift</b> faster<br>
  <b>G</b> grab or release &nbsp; <b>R</b> reset the world
</div>
"""


class Keyboard:
    """The keys that are held in all browsers together. Safe to call from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, set[Key]] = {}  # by browser
        self._tapped: set[Key] = set()  # since the last step
        self._grabs = 0  # presses of G that no step has used yet

    def press(self, browser: int, key: Key) -> None:
        """A key was pressed."""
        with self._lock:
            if key == "G":
                self._grabs += 1
            else:
                self._held.setdefault(browser, set()).add(key)
                self._tapped.add(key)

    def release(self, browser: int, key: Key) -> None:
        """A key was released."""
        with self._lock:
            self._held.get(browser, set()).discard(key)

    def forget(self, browser: int) -> None:
        """A browser has disconnected: releases its keys."""
        with self._lock:
            self._held.pop(browser, None)

    def clear(self) -> None:
        """Releases all keys and drops presses that no step has used."""
        with self._lock:
            self._held.clear()
            self._tapped.clear()
            self._grabs = 0

    def act(self) -> tuple[int, int, int, int]:
        """The action of one step, from keys that are held or were pressed since the last step.

        Each press of G makes one step grab.
        """
        with self._lock:
            keys = self._tapped.union(*self._held.values())
            self._tapped.clear()
            grab = min(self._grabs, 1)
            self._grabs -= grab
        return (*_walk(keys), _turn(keys), grab)


def _walk(keys: set[Key]) -> tuple[int, int]:
    right = sum(_DIRECTIONS[key][0] for key in keys & _DIRECTIONS.keys())
    forward = sum(_DIRECTIONS[key][1] for key in keys & _DIRECTIONS.keys())
    if (right, forward) == (0, 0):
        return 0, 0
    return _RUN if "F" in keys else _WALK, _ANGLES[right, forward]


def _turn(keys: set[Key]) -> int:
    left = sum(_TURNS[key] for key in keys & _TURNS.keys())
    return _STRAIGHT + left * (_FAST_TURN if "F" in keys else _TURN)


# ---- The page ----


def page_content(playing: bool) -> str:
    """HTML for the page that starts or stops reading keys, with help while an agent is played.

    A browser does not run scripts that are inserted as HTML, but it runs the error handler of an image.
    """
    script = f"{_SCRIPT}\nwindow.doorstepKeys.play({'true' if playing else 'false'});"
    return f'{_HELP if playing else ""}<img hidden alt="" src="data:," onerror="{html.escape(script)}">'


def connect(server: viser.ViserServer, keyboard: Keyboard, reset: Callable[[], None]) -> None:
    """Forwards keys of the page to the keyboard, and R to `reset`. The calls are made in the server's thread."""
    for key in KEYS:
        _connect_key(server, key, keyboard, reset)

    async def forget(client: viser.ClientHandle) -> None:
        keyboard.forget(client.client_id)

    server.on_client_disconnect(forget)


def _connect_key(server: viser.ViserServer, key: Key, keyboard: Keyboard, reset: Callable[[], None]) -> None:
    name = "Shift" if key == "F" else key
    down = server.gui.add_command(f"Play: {name} down", hotkey=key, modifier="alt+shift")
    up = server.gui.add_command(f"Play: {name} up", hotkey=key, modifier="cmd/ctrl+alt+shift")

    # Coroutines run in the order of the events; functions would run in threads.
    async def press(event: viser.CommandEvent) -> None:
        if key == "R":
            reset()
        elif event.client_id is not None:
            keyboard.press(event.client_id, key)

    async def release(event: viser.CommandEvent) -> None:
        if event.client_id is not None:
            keyboard.release(event.client_id, key)

    down.on_trigger(press)
    up.on_trigger(release)
