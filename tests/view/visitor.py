"""A program that connects to a viewer as a page does, and sends what it likes. Needs viser."""

from __future__ import annotations

import socket
from typing import Any

import msgspec
import viser
from tests.view.running import PATIENCE, Running, until
from websockets.sync.client import connect

_CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": (1.0, 0.0, 0.0, 0.0),
    "position": (0.0, 0.0, 1.0),
    "fov": 1.0,
    "near": 0.1,
    "far": 10.0,
    "image_height": 10,
    "image_width": 10,
    "look_at": (0.0, 1.0, 0.0),
    "up_direction": (0.0, 0.0, 1.0),
}


class Visitor:
    """A connection. origin: the page that it says it is from; host: the name by which it finds the viewer."""

    def __init__(self, running: Running, origin: str | None = None, host: str = "127.0.0.1") -> None:
        self._running = running
        port = running.server.get_port()
        self._socket = connect(
            f"ws://{host}:{port}",
            sock=socket.create_connection(("127.0.0.1", port)),
            origin=origin,
            subprotocols=[f"viser-v{viser.__version__}"],
            open_timeout=PATIENCE,
            max_size=None,
        )

    def __enter__(self) -> Visitor:
        self._send(_CAMERA)  # the first one makes it somebody who looks
        until(self._running.server.get_clients)
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def look(self, **camera: object) -> None:
        """As the page does when the camera has moved or the window has another size."""
        self._send({**_CAMERA, **camera})

    def set(self, control: Any, value: object) -> None:
        """As the page does when somebody has used a control."""
        self._send({"type": "GuiUpdateMessage", "uuid": control._impl.uuid, "updates": {"value": value}})

    def _send(self, message: dict[str, object]) -> None:
        self._socket.send(msgspec.msgpack.encode(message))
