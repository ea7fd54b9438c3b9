"""The page that people look at: the scene, the panel, and who is looking."""

from __future__ import annotations

from contextlib import AbstractContextManager

import viser

from doorstep.simulator import Simulator
from doorstep.view import cameras
from doorstep.view.cameras import Place
from doorstep.view.controls import Commands, Controls
from doorstep.view.layout import Layout
from doorstep.view.play import Play
from doorstep.view.requests import Requests
from doorstep.view.stage import Stage

_FARTHEST = 5000.0  # metres, of what a browser draws


class Page:
    """Everything on a server of viser."""

    def __init__(self, server: viser.ViserServer, sim: Simulator, play: Play, layout: Layout, rate: float) -> None:
        self._server = server
        server.gui.configure_theme(show_logo=False, show_share_button=False, dark_mode=True)
        server.initial_camera.position, server.initial_camera.look_at = cameras.preset("all", layout, 0)
        server.initial_camera.near, server.initial_camera.far = 0.1, _FARTHEST
        self.stage = Stage(server.scene, sim, layout)
        self.controls = Controls(server, sim, play, rate)

    def connect(self, requests: Requests, commands: Commands) -> None:
        """From now on, what people do reaches `commands`, and people who come wake who waits for requests."""

        async def wake(_: viser.ClientHandle) -> None:
            requests.post(lambda: None)

        self._server.on_client_connect(wake)
        self.controls.connect(requests, commands)

    @property
    def watched(self) -> bool:
        """Whether somebody looks at it."""
        return bool(self._server.get_clients())

    def at_once(self) -> AbstractContextManager[None]:
        """What is sent within it arrives together; waking the server's thread costs more than sending."""
        together: AbstractContextManager[None] = self._server.atomic()
        return together

    def look(self, place: Place, client: viser.ClientHandle | None = None) -> None:
        """Puts the camera of a browser there; None: of every one."""
        position, target = place
        for browser in self._server.get_clients().values() if client is None else [client]:
            with browser.atomic():
                browser.camera.position = position
                browser.camera.look_at = target


def is_collision(error: Exception) -> bool:
    """Whether what was sent woke viser's thread just as it fell asleep, which asyncio does not allow.

    What was sent arrives all the same; the rest has to be sent again.
    """
    return type(error) is RuntimeError and str(error) == "deque mutated during iteration"
