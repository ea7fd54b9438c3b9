"""The worlds as 3D objects in the browser: one batch of instances per kind of thing, and lines.

Only what has changed since it was last sent is sent, an array of a batch at a time: resting cubes and doors cost
nothing while agents walk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray

from doorstep.simulator import Simulator
from doorstep.view import boxes, colours, meshes, rays
from doorstep.view.boxes import Boxes, Look
from doorstep.view.layout import Layout

Array = NDArray[Any]

_Kinds = dict[str, tuple[Look, meshes.Mesh, Array | None]]  # name: what there is, mesh, colour; None: each has its own

_KINDS: _Kinds = {
    "walls": (boxes.walls, meshes.box(base=0), colours.WALL),
    "doors": (boxes.doors, meshes.box(base=0), None),
    "buttons": (boxes.buttons, meshes.box(base=0), None),
    "cubes": (boxes.cubes, meshes.box(base=-0.5), colours.CUBE),
    "agents": (boxes.agents, meshes.agent_body(), None),
    "eyes": (boxes.agents, meshes.agent_eyes(), colours.EYE),
}
_TILE = 2.0  # metres, side of the floor's tiles
_LINE_HEIGHT = 0.1  # metres above the walls, of the line around the current world
_LABEL_BASE, _LABEL_HEIGHT = 2.5, 2.0  # metres
_AMBIENT, _DIRECTIONAL = 1.6, 2.4


class Stage:
    """Everything in the 3D scene."""

    def __init__(self, scene: viser.SceneApi, sim: Simulator, layout: Layout) -> None:
        self._sim = sim
        self._layout = layout
        _light(scene)
        self._kinds = {**_floors(layout), **_KINDS}
        self._batches = {name: Batch(scene, name, mesh, colour) for name, (_, mesh, colour) in self._kinds.items()}
        self._labels = [_label(scene, cell, layout) for cell in range(layout.cells)]
        self._frame = Lines(scene, "current world", thickness=0.3)
        self.lidar = Lines(scene, "lidar", thickness=0.05)
        self.grabs = Lines(scene, "grab rays", thickness=0.12)
        self._frame.visible = layout.cells > 1
        self._marked: tuple[range, int] | None = None

    def show(self, worlds: range, current: int) -> None:
        """Shows some worlds, as many as there are cells, as they are now; rays are those of the current one."""
        seen = {look: look(self._sim, worlds, self._layout) for look, _, _ in self._kinds.values()}
        offset = self._layout.offsets[current - worlds.start]
        for name, (look, _, _) in self._kinds.items():
            self._batches[name].show(seen[look])
        if self._marked != (worlds, current):
            self._mark(worlds, current)
        if self.lidar.visible:
            self.lidar.show(*rays.lidar(self._sim, current, offset))
        if self.grabs.visible:
            self.grabs.show(*rays.grabs(self._sim, current, offset))

    def _mark(self, worlds: range, current: int) -> None:
        """Numbers the worlds, and draws a line around the current one."""
        for label, world in zip(self._labels, worlds, strict=True):
            label.text = str(self._sim.world_offset + world)
        self._frame.show(*_around(self._layout, self._layout.offsets[current - worlds.start]))
        self._marked = (worlds, current)


class Batch:
    """Instances of one mesh. What it is told to show it sends, as far as it differs from what was sent before."""

    def __init__(self, scene: viser.SceneApi, name: str, mesh: meshes.Mesh, colour: Array | None) -> None:
        self._scene = scene
        self._name = name
        self._mesh = mesh
        self._colour = colour
        self._handle: viser.BatchedMeshHandle | None = None
        self._sent: dict[str, Array] = {}

    def show(self, now: Boxes) -> None:
        """The arrays are the batch's from now on."""
        arrays = {"batched_positions": now.positions, "batched_scales": now.sizes}
        if now.rotations is not None:
            arrays["batched_wxyzs"] = now.rotations
        if self._colour is None and now.colours is not None:
            arrays["batched_colors"] = now.colours
        if self._handle is None:
            always = {"batched_wxyzs": _unturned(len(now.positions)), "batched_colors": self._colour}
            self._handle = self._scene.add_batched_meshes_simple(
                f"/{self._name}",
                self._mesh.vertices,
                self._mesh.faces,
                **{**always, **arrays},
                lod="off",
                cast_shadow=False,
                receive_shadow=False,
            )
        else:
            for name, array in arrays.items():
                if not _same(array, self._sent[name]):
                    setattr(self._handle, name, array)
        self._sent = arrays


class Lines:
    """Line segments; nothing is sent that is the same as before."""

    def __init__(self, scene: viser.SceneApi, name: str, thickness: float) -> None:
        # A colour for each end from the start: a browser does not change from one colour to many.
        points, ends = np.zeros((1, 2, 3), np.float32), np.zeros((1, 2, 3), np.uint8)
        self._handle = scene.add_line_segments(f"/{name}", points, ends, thickness=thickness, visible=False)
        self._sent: tuple[Array, Array] = (points, ends[:, 0])

    @property
    def visible(self) -> bool:
        """Whether they are drawn."""
        return bool(self._handle.visible)

    @visible.setter
    def visible(self, visible: bool) -> None:
        self._handle.visible = visible

    def show(self, points: Array, colour: Array) -> None:
        """points: float32 [count, 2, 3]; colour: uint8 [count, 3]. The arrays are these lines' from now on."""
        if not _same(points, self._sent[0]):
            self._handle.points = points
        if not _same(colour, self._sent[1]):
            self._handle.colors = np.repeat(colour[:, None], 2, axis=1)
        self._sent = (points, colour)


def _same(one: Array, other: Array) -> bool:
    """By their bytes: a tenth of the time that numpy takes for arrays this small."""
    return one.tobytes() == other.tobytes()


def _floors(layout: Layout) -> _Kinds:
    """The tiles of a chessboard, of which there are two colours."""
    low, high = layout.low.tolist(), layout.high.tolist()
    return {
        name: (boxes.floors, meshes.tiles(low, high, _TILE, odd), colour)
        for name, odd, colour in (("floors", False, colours.FLOOR), ("odd floors", True, colours.FLOOR_ODD))
    }


def _light(scene: viser.SceneApi) -> None:
    """From above and from a side, without shadows, which cost a browser much."""
    scene.configure_default_lights(enabled=False)
    scene.configure_environment_map(None)
    scene.add_light_ambient("/light everywhere", intensity=_AMBIENT)
    scene.add_light_directional("/light", intensity=_DIRECTIONAL, position=(1.0, -1.0, 2.0))


def _unturned(count: int) -> Array:
    return np.tile(np.array([1, 0, 0, 0], np.float32), (count, 1))


def _label(scene: viser.SceneApi, cell: int, layout: Layout) -> viser.LabelHandle:
    """The number of a world, on its near wall."""
    x, y = (layout.low[0] + layout.high[0]) / 2, layout.low[1]
    return scene.add_label(
        f"/world {cell}",
        str(cell),
        position=layout.offsets[cell] + (x, y, _LABEL_BASE),
        font_size_mode="scene",
        font_scene_height=_LABEL_HEIGHT,
        anchor="center-center",
        visible=layout.cells > 1,
    )


def _around(layout: Layout, offset: Array) -> tuple[Array, Array]:
    """The outline of a world, above its walls, which hide nothing of it there."""
    (left, near), (right, far) = layout.low, layout.high
    z = layout.height + _LINE_HEIGHT
    corners = offset + np.array([(left, near, z), (right, near, z), (right, far, z), (left, far, z)])
    points = np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)
    return points.astype(np.float32), np.tile(colours.CURRENT_WORLD, (4, 1))
