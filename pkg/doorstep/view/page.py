"""The page that people look at: the scene, the panel, and who is looking."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import viser

from doorstep.simulator import Simulator
from doorstep.view import cameras, values
from doorstep.view.cameras import Array, Lens, Place
from doorstep.view.controls import Commands, Controls
from doorstep.view.layout import Layout
from doorstep.view.play import Play
from doorstep.view.requests import Requests
from doorstep.view.stage import Stage

_FARTHEST = 5000.0  # metres, of what a browser draws
_MOVED = 0.1  # metres; a camera that is farther from where it was put has been moved
_POSITIONS_KEPT = 8


class Page:
    """Everything on a server of viser."""

    def __init__(self, server: viser.ViserServer, sim: Simulator, play: Play, layout: Layout, rate: float) -> None:
        self._server = server
        self._layout = layout
        self._presets: dict[int, _Preset] = {}  # by client
        server.gui.configure_theme(show_logo=False, show_share_button=False, dark_mode=True)
        server.gui.main_panel.dock_right()  # beside the picture instead of over it
        server.initial_camera.position, server.initial_camera.look_at = cameras.preset("all", layout, 0, Lens())
        server.initial_camera.near, server.initial_camera.far = 0.1, _FARTHEST
        self.stage = Stage(server.scene, sim, layout)
        self.controls = Controls(server, sim, play, rate)

    def connect(self, requests: Requests, commands: Commands) -> None:
        """From now on, what people do reaches `commands`, and people who come wake the thread that waits."""

        async def welcome(client: viser.ClientHandle) -> None:
            requests.post(self.look_from, "all", 0, client)
            client.camera.on_update(resize)

        async def resize(camera: viser.CameraHandle) -> None:
            preset = self._presets.get(camera.client.client_id)
            if preset is not None and preset.window != _window(camera):
                requests.post(self._fit_again, camera.client)

        async def forget(client: viser.ClientHandle) -> None:
            requests.post(self._presets.pop, client.client_id, None)

        self._server.on_client_connect(welcome)
        self._server.on_client_disconnect(forget)
        self.controls.connect(requests, commands)

    @property
    def watched(self) -> bool:
        """Whether somebody looks at it."""
        return bool(self._server.get_clients())

    def at_once(self) -> AbstractContextManager[None]:
        """What is sent within it arrives together; waking the server's thread costs more than sending."""
        together: AbstractContextManager[None] = self._server.atomic()
        return together

    def look_from(self, name: str, cell: int, client: viser.ClientHandle) -> None:
        """Puts the camera of a browser at a preset, and again when its window changes, until somebody moves it."""
        self._fit(name, cell, client, (self._server.initial_camera.position, client.camera.position))

    def look(self, place: Place) -> None:
        """Puts the camera of every browser there."""
        self._presets.clear()
        for client in self._server.get_clients().values():
            _look(client, place)

    def _fit(self, name: str, cell: int, client: viser.ClientHandle, before: tuple[Array, ...]) -> None:
        if client.client_id not in self._server.get_clients():  # gone, since this was asked for
            return
        window = _window(client.camera)  # read once: the server's thread changes it
        place = cameras.preset(name, self._layout, cell, _lens(window))
        positions = (*before, place[0])[-_POSITIONS_KEPT:]
        self._presets[client.client_id] = _Preset(name, cell, window, positions)
        _look(client, place)

    def _fit_again(self, client: viser.ClientHandle) -> None:
        """The picture of a browser has another size than when its camera was put at a preset."""
        preset = self._presets.get(client.client_id)
        if preset is None:
            return
        if preset.holds(client.camera.position):
            self._fit(preset.name, preset.cell, client, preset.positions)
        else:
            del self._presets[client.client_id]


Window = tuple[float, int, int]  # what a place depends on: field of view, width and height of the picture


@dataclass(frozen=True)
class _Preset:
    """Where the camera of a browser was put."""

    name: str
    cell: int
    window: Window
    positions: tuple[Array, ...]  # the last ones: a browser says where its camera is some time after it was put there

    def holds(self, position: Array) -> bool:
        """Whether nobody has moved the camera."""
        return any(np.allclose(position, known, atol=_MOVED) for known in self.positions)


def _window(camera: viser.CameraHandle) -> Window:
    return camera.fov, camera.image_width, camera.image_height


def _lens(window: Window) -> Lens:
    field_of_view, width, height = window
    aspect = width / max(height, 1)
    return Lens(values.number("field of view", 0.1, 3)(field_of_view), values.number("aspect", 0.1, 10)(aspect))


def _look(client: viser.ClientHandle, place: Place) -> None:
    with client.atomic():
        client.camera.position, client.camera.look_at = place
