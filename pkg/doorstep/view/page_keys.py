"""From keys pressed in the page to a `Keyboard`: keys.js in the page, and a hotkey of viser for each key and way."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

import viser

from doorstep.view.keyboard import KEYS, Key, Keyboard

_SCRIPT = Path(__file__).with_name("keys.js").read_text(encoding="utf-8")
_HELP = """
<div style="font-size: 0.8em; padding: 0.3em 0.6em; line-height: 1.6">
  <b>W A S D</b> walk &nbsp; <b>Q E</b> turn &nbsp; <b>Shift</b> faster<br>
  <b>G</b> grab or let go &nbsp; <b>R</b> reset the world
</div>
"""


def content(playing: bool) -> str:
    """HTML that, put into the page, begins or ends playing with keys.

    Scripts that come as HTML do not run, but what handles an image's failure does.
    """
    begin = f"{_SCRIPT}\nwindow.doorstepKeys.play({'true' if playing else 'false'});"
    return f'{_HELP if playing else ""}<img hidden alt="" src="data:," onerror="{html.escape(begin)}">'


def connect(server: viser.ViserServer, keyboard: Keyboard, reset: Callable[[], None]) -> None:
    """Makes keys in the page reach the keyboard, and R `reset`. All of it runs in the server's thread."""
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
