"""The page: the scene, the panel, the browsers that show it, and where their cameras are placed."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import viser

from doorstep.simulator import Simulator
from doorstep.viewer.controls import Controls
from doorstep.viewer.play import Play
from doorstep.viewer.requests import Commands, Requests, number
from doorstep.viewer.stage import Stage
from doorstep.viewer.world_arrays import Array, Layout, read, yaw

_FARTHEST = 5000.0  # metres, the far plane of a browser's camera
_MOVED = 0.1  # metres; a camera that is farther from where it was placed has been moved
_POSITIONS_KEPT = 8

Place = tuple[Array, Array]
"""Of a camera: its position, and the point that it looks at; metres."""


class Page:
    """Everything on a server of viser."""

    def __init__(self, server: viser.ViserServer, sim: Simulator, play: Play, layout: Layout, rate: float) -> None:
        self._server = server
        self._layout = layout
        self._fits: dict[int, _Fit] = {}  # by client
        server.gui.configure_theme(show_logo=False, show_share_button=False, dark_mode=False)
        server.gui.main_panel.dock_right()  # beside the picture instead of over it
        server.initial_camera.position, server.initial_camera.look_at = preset_place("all", layout, 0, Lens())
        server.initial_camera.near, server.initial_camera.far = 0.1, _FARTHEST
        self.stage = Stage(server.scene, sim, layout)
        self.controls = Controls(server, sim, play, rate, PRESETS)

    def connect(self, requests: Requests, commands: Commands) -> None:
        """Posts what people do from now on to `requests`, as calls of `commands`, and wakes their thread."""

        async def welcome(client: viser.ClientHandle) -> None:
            requests.post(self.look_from, "all", 0, client)
            client.camera.on_update(resize)

        async def resize(camera: viser.CameraHandle) -> None:
            fit = self._fits.get(camera.client.client_id)
            if fit is not None and fit.window != _window(camera):
                requests.post(self._fit_again, camera.client)

        async def forget(client: viser.ClientHandle) -> None:
            requests.post(self._fits.pop, client.client_id, None)

        def click(cell: int, client: viser.ClientHandle) -> None:
            requests.post(commands.zoom, cell, client)

        self.stage.connect(click)
        self._server.on_client_connect(welcome)
        self._server.on_client_disconnect(forget)
        self.controls.connect(requests, commands)

    @property
    def watched(self) -> bool:
        """Whether any browser shows the page."""
        return bool(self._server.get_clients())

    def at_once(self) -> AbstractContextManager[None]:
        """What is sent within this context arrives together. Waking the server's thread costs more than sending."""
        together: AbstractContextManager[None] = self._server.atomic()
        return together

    def look_from(self, preset: str, cell: int, client: viser.ClientHandle) -> None:
        """Places the camera of a browser at a preset, and again whenever its window changes until it is moved."""
        self._fit(preset, cell, client, (self._server.initial_camera.position, client.camera.position))

    def look(self, place: Place) -> None:
        """Places the cameras of all browsers."""
        self._fits.clear()
        for client in self._server.get_clients().values():
            _look(client, place)

    def _fit(self, preset: str, cell: int, client: viser.ClientHandle, before: tuple[Array, ...]) -> None:
        if client.client_id not in self._server.get_clients():  # disconnected since the request was made
            return
        window = _window(client.camera)  # read once: the server's thread changes it
        place = preset_place(preset, self._layout, cell, _lens(window))
        positions = (*before, place[0])[-_POSITIONS_KEPT:]
        self._fits[client.client_id] = _Fit(preset, cell, window, positions)
        _look(client, place)

    def _fit_again(self, client: viser.ClientHandle) -> None:
        """The window of a browser has changed since its camera was placed at a preset."""
        fit = self._fits.get(client.client_id)
        if fit is None:
            return
        if fit.holds(client.camera.position):
            self._fit(fit.preset, fit.cell, client, fit.positions)
        else:
            del self._fits[client.client_id]


# ---- Where the camera of a browser is ----

Window = tuple[float, int, int]  # what a place depends on: field of view, width and height of the picture


@dataclass(frozen=True)
class _Fit:
    """A preset at which the camera of a browser was placed."""

    preset: str
    cell: int
    window: Window
    positions: tuple[Array, ...]  # the last ones: a browser reports its camera's position some time after it was placed

    def holds(self, position: Array) -> bool:
        """Whether the camera is still where it was placed."""
        return any(np.allclose(position, known, atol=_MOVED) for known in self.positions)


@dataclass(frozen=True)
class Lens:
    """What the camera of a browser sees. The panel is beside its picture."""

    field_of_view: float = math.radians(75.0)  # vertical
    aspect: float = 4 / 3  # width of the picture divided by its height


def _window(camera: viser.CameraHandle) -> Window:
    return camera.fov, camera.image_width, camera.image_height


def _lens(window: Window) -> Lens:
    field_of_view, width, height = window
    aspect = width / max(height, 1)
    return Lens(number("field of view", 0.1, 3)(field_of_view), number("aspect", 0.1, 10)(aspect))


def _look(client: viser.ClientHandle, place: Place) -> None:
    with client.atomic():
        client.camera.position, client.camera.look_at = place


# ---- Places ----

_SIDES = {  # from the middle of what is shown to the camera
    "top": np.array([0.0, -1e-3, 1.0]),  # not exactly from above, so that +y points up in the picture
    "left": np.array([-1.0, 0.0, 0.8]),
    "right": np.array([1.0, 0.0, 0.8]),
    "world": np.array([0.0, -0.6, 1.0]),
    "all": np.array([0.0, -0.6, 1.0]),
}
PRESETS = tuple(_SIDES)
_MARGIN = 0.04  # of the picture, on each side
_BEHIND, _ABOVE, _AHEAD = 6.0, 11.0, 4.0  # metres, of a camera that follows an agent; it looks over the walls


def preset_place(preset: str, layout: Layout, cell: int, lens: Lens) -> Place:
    """The place from which a world, or every world for "all", just fits the picture."""
    return _nearest_place(layout.whole() if preset == "all" else layout.box(cell), _SIDES[preset], lens)


def place_behind(sim: Simulator, world: int, agent: int, offset: Array, turning: bool) -> Place:
    """Behind and above an agent, looking along the level; `turning`: in the agent's direction."""
    position = read(sim.state.body_positions)[world, agent] + offset
    heading = yaw(read(sim.state.body_rotations)[world, agent]) if turning else 0.0
    ahead = np.array([-np.sin(heading), np.cos(heading), 0.0])
    return position - _BEHIND * ahead + (0, 0, _ABOVE), position + _AHEAD * ahead


def _nearest_place(points: Array, side: Array, lens: Lens) -> Place:
    """The nearest place on a side from which all points [P, 3] are in the picture; it looks at a point of the floor.

    Along each axis of the picture the points have to lie between two planes through the camera. Both planes touch a
    point where the camera is nearest; the axis that needs the larger distance decides.
    """
    right, up, ahead = _axes(side)
    depths = points @ ahead
    top = (1 - 2 * _MARGIN) * math.tan(lens.field_of_view / 2)  # slope of the upper plane
    across, depth_across = _between(points @ right, depths, top * lens.aspect)
    upwards, depth_upwards = _between(points @ up, depths, top)
    position = across * right + upwards * up + min(depth_across, depth_upwards) * ahead
    return position, position - position[2] / ahead[2] * ahead


def _axes(side: Array) -> tuple[Array, Array, Array]:
    """Unit vectors to the right, upwards and ahead of an upright camera on a side."""
    ahead = -side / np.linalg.norm(side)
    right = np.cross(ahead, (0.0, 0.0, 1.0))
    right /= np.linalg.norm(right)
    return right, np.cross(right, ahead), ahead


def _between(coordinates: Array, depths: Array, slope: float) -> tuple[float, float]:
    """The coordinate and the depth of a camera whose two planes along an axis touch the outermost points."""
    most, least = float((coordinates - slope * depths).max()), float((coordinates + slope * depths).min())
    return (most + least) / 2, (least - most) / (2 * slope)
