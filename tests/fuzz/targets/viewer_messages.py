"""What programs send to `doorstep view` through its websocket: messages of viser, and anything else. Needs viser."""

from __future__ import annotations

import contextlib
import json
import logging
import random
import socket
from collections.abc import Sequence
from typing import Any

import msgspec
import viser
from tests.fuzz.mutations import change_bytes, change_document
from tests.fuzz.running import CHECK_EVERY
from tests.view.running import _CAMERA, PATIENCE, Running
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from doorstep.viewer.server import Settings, opened

ASKED_EVERY = 16  # messages


class ViewerMessages:
    """An input is JSON of a message, which is sent as msgpack, or other bytes, which are sent as they are."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        logging.getLogger("websockets").setLevel(logging.CRITICAL)  # of what programs send
        viewer, server = self._stack.enter_context(opened(Settings(port=0, worlds=2)))
        self._running = self._stack.enter_context(Running(viewer, server))
        self._running.ask(lambda viewer: viewer.show_picture(True))  # its simulator counts as what was there before
        self._controls = self._uuids()
        self._socket: Any = None
        self._sent = 0
        self._stack.callback(self._hang_up)

    def _uuids(self) -> list[str]:
        return [handle._impl.uuid for handle in self._running.server.gui._gui_input_handle_from_uuid.values()]

    def inputs(self) -> Sequence[bytes]:
        camera = {name: list(value) if isinstance(value, tuple) else value for name, value in _CAMERA.items()}
        values: tuple[Any, ...] = (True, 0, 1.5, "agent 0", "follow", None)
        updates = [
            {"type": "GuiUpdateMessage", "uuid": uuid, "updates": {"value": values[i % len(values)]}}
            for i, uuid in enumerate(self._controls)
        ]
        return [json.dumps(message).encode() for message in (camera, *updates)]

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        if chance.random() < 0.1:
            return change_bytes(data, chance, others)
        try:
            message = json.loads(data)
        except ValueError:
            return change_bytes(data, chance, others)
        how = chance.random()
        if how < 0.5 and isinstance(message, dict) and isinstance(message.get("updates"), dict):
            message["updates"] = change_document(message["updates"], chance)
        elif how < 0.6 and isinstance(message, dict):
            message["uuid"] = chance.choice(self._controls)
        else:
            message = change_document(message, chance)
        return json.dumps(message).encode()

    def run(self, data: bytes) -> str:
        self._connect()
        with contextlib.suppress(ConnectionClosed):
            self._socket.send(_packed(data))
        self._sent += 1
        if self._sent % CHECK_EVERY == 0:
            self._hang_up()
        if self._sent % ASKED_EVERY:
            return "sent"
        # The viewer lives: it answers, and steps
        before = self._running.ask(lambda viewer: viewer._play.position)
        self._running.ask(lambda viewer: viewer.step_once())
        assert self._running.ask(lambda viewer: viewer._play.position) != before
        return "stepped"

    def _connect(self) -> None:
        if self._socket is not None and self._socket.state.name == "OPEN":
            return
        self._hang_up()
        port = self._running.server.get_port()
        self._socket = connect(
            f"ws://127.0.0.1:{port}",
            sock=socket.create_connection(("127.0.0.1", port)),
            subprotocols=[f"viser-v{viser.__version__}"],
            open_timeout=PATIENCE,
            max_size=None,
        )
        self._socket.send(msgspec.msgpack.encode(_CAMERA))

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def close(self) -> None:
        self._stack.close()


def _packed(data: bytes) -> bytes:
    try:
        return bytes(msgspec.msgpack.encode(json.loads(data)))
    except (ValueError, TypeError, OverflowError, UnicodeError, RecursionError):
        return data
