"""The 3D scene of the page: one batch of instances per kind of thing, and line segments.

An array is sent only if it differs from the one sent before: while agents walk, resting cubes and doors cost nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray

from doorstep.simulator import Simulator
from doorstep.viewer import world_arrays
from doorstep.viewer.world_arrays import Array, Boxes, BoxesOf, Layout, Trails, read

_TILE = 2.0  # metres, side of the floor's tiles
_LINE_HEIGHT = 0.1  # metres above the walls, of the line around the current world
_LABEL_BASE, _LABEL_HEIGHT = 2.5, 2.0  # metres
_AMBIENT, _DIRECTIONAL = 1.6, 2.4


# ---- Meshes ----
# Triangles are counter-clockwise seen from outside; +y is forward, +z up.


@dataclass(frozen=True)
class Mesh:
    """Triangles. The renderer shades smoothly across shared vertices."""

    vertices: NDArray[np.float32]  # [V, 3]
    faces: NDArray[np.uint32]  # [F, 3]


def _box(base: float) -> Mesh:
    """A box of side 1 around the z axis; `base` is the z of its lower side. Its sides are shaded flat."""
    vertices: list[NDArray[np.float64]] = []
    faces: list[NDArray[np.int64]] = []
    for axis in range(3):
        for sign in (-1, 1):
            corners = np.zeros((4, 3))
            corners[:, axis] = sign
            corners[:, (axis + 1) % 3] = (-1, 1, 1, -1)
            corners[:, (axis + 2) % 3] = (-1, -1, 1, 1)
            order = np.array([[0, 1, 2], [0, 2, 3]])[:, ::sign]
            faces.append(order + 4 * len(vertices))
            vertices.append(corners / 2)
    return _mesh(np.concatenate(vertices) + np.array([0, 0, base + 0.5]), np.concatenate(faces))


def _tiles(low: tuple[float, float], high: tuple[float, float], side: float, odd: bool) -> Mesh:
    """Half of the tiles of a chessboard on the floor between two corners; they face up."""
    xs, ys = (np.append(np.arange(begin, end, side), end) for begin, end in zip(low, high, strict=True))
    vertices: list[tuple[float, float, float]] = []
    faces: list[tuple[int, int, int]] = []
    for i, (left, right) in enumerate(itertools.pairwise(xs)):
        for j, (near, far) in enumerate(itertools.pairwise(ys)):
            if (i + j) % 2 == odd:
                first = len(vertices)
                vertices += [(left, near, 0), (right, near, 0), (right, far, 0), (left, far, 0)]
                faces += [(first, first + 1, first + 2), (first, first + 2, first + 3)]
    return _mesh(vertices, faces)


def _agent_body() -> Mesh:
    """The body of an agent, round with a dome, in a box of side 1 on the floor."""
    profile = [(0.41, 0.0), (0.5, 0.09), (0.5, 0.5), (0.47, 0.67), (0.385, 0.82), (0.25, 0.935), (0.0, 1.0)]
    return _revolved(profile, segments=20)


def _agent_eyes() -> Mesh:
    """Two eyes at the front of an agent's body."""
    eyes = [_ball(centre=(side * 0.18, 0.37, 0.69), radius=0.12) for side in (-1, 1)]
    faces = [eye.faces + index * len(eye.vertices) for index, eye in enumerate(eyes)]
    return _mesh(np.concatenate([eye.vertices for eye in eyes]), np.concatenate(faces))


def _ball(centre: tuple[float, float, float], radius: float) -> Mesh:
    turns = np.linspace(-np.pi / 2, np.pi / 2, 7)
    ball = _revolved([(radius * np.cos(turn), radius * np.sin(turn)) for turn in turns], segments=10)
    return Mesh(ball.vertices + np.asarray(centre, np.float32), ball.faces)


def _revolved(profile: list[tuple[float, float]], segments: int) -> Mesh:
    """The surface that a profile of (radius, z), from bottom to top, makes when it revolves around z."""
    angles = 2 * np.pi * np.arange(segments) / segments
    rings = [np.stack([r * np.cos(angles), r * np.sin(angles), np.full(segments, z)], axis=1) for r, z in profile]
    faces = []
    for ring in range(len(profile) - 1):
        for segment in range(segments):
            a, b = ring * segments + segment, ring * segments + (segment + 1) % segments
            faces += [(a, b, b + segments), (a, b + segments, a + segments)]
    return _mesh(np.concatenate(rings), faces)


def _mesh(vertices: object, faces: object) -> Mesh:
    return Mesh(np.asarray(vertices, np.float32), np.asarray(faces, np.uint32))


# ---- The scene ----

_BODY_FIELDS = ("body_kinds", "body_positions", "body_sizes", "body_rotations")
_Meshes = dict[str, tuple[Mesh, Array | None]]  # name: mesh and colour; None: one colour per instance

# What has instances in the same boxes: how these are made, the fields of the state that they follow from, and meshes.
_THINGS: tuple[tuple[BoxesOf, tuple[str, ...], _Meshes], ...] = (
    (
        world_arrays.walls,
        ("static_kinds", "static_positions", "static_sizes"),
        {"walls": (_box(base=0), world_arrays.WALL_COLOUR)},
    ),
    (
        world_arrays.doors,
        ("static_kinds", "static_positions", "static_sizes", "door_static", "door_open"),
        {"doors": (_box(base=0), None)},
    ),
    (
        world_arrays.buttons,
        ("button_positions", "button_pressed", "button_doors"),
        {"buttons": (_box(base=0), None)},
    ),
    (world_arrays.cubes, _BODY_FIELDS, {"cubes": (_box(base=-0.5), world_arrays.CUBE_COLOUR)}),
    (
        world_arrays.agents,
        _BODY_FIELDS,
        {"agents": (_agent_body(), None), "eyes": (_agent_eyes(), world_arrays.EYE_COLOUR)},
    ),
)
_FIELDS = sorted({name for _, fields, _ in _THINGS for name in fields})


class Stage:
    """Everything in the 3D scene of the page."""

    def __init__(self, scene: viser.SceneApi, sim: Simulator, layout: Layout) -> None:
        self._sim = sim
        self._layout = layout
        _add_lights(scene)
        self._floors = [Instances(scene, name, *of) for name, of in _floors(layout).items()]
        for floor in self._floors:
            floor.show(world_arrays.floors(layout))
        self._things = [_Thing(scene, *thing) for thing in _THINGS]
        self._labels = [_add_label(scene, cell, layout) for cell in range(layout.cells)]
        self._names = [""] * layout.cells
        self._frame = Lines(scene, "current world", thickness=0.3)
        self.trails = Lines(scene, "trails", thickness=0.12)
        self.lidar = Lines(scene, "lidar", thickness=0.05)
        self.grabs = Lines(scene, "grab rays", thickness=0.12)
        self._frame.visible = layout.cells > 1
        self.trails.visible = True
        self._marked: tuple[range, int] | None = None

    def show(self, worlds: range, current: int, names: Sequence[str], trails: Trails) -> None:
        """Shows the present state of some worlds, one per cell with its name, and the lines of the current one."""
        shown = slice(worlds.start, worlds.stop)
        fields = {name: read(getattr(self._sim.state, name))[shown].tobytes() for name in _FIELDS}
        for thing in self._things:
            thing.show(self._sim, worlds, self._layout, fields)
        offset = self._layout.offsets[current - worlds.start]
        if self._marked != (worlds, current):
            self._frame.show(*_around(self._layout, offset))
            self._marked = (worlds, current)
        for cell, name in enumerate(names):
            if self._names[cell] != name:
                self._labels[cell].text = self._names[cell] = name
        if self.trails.visible:
            self.trails.show(*trails.segments(offset))
        if self.lidar.visible:
            self.lidar.show(*world_arrays.lidar_rays(self._sim, current, offset))
        if self.grabs.visible:
            self.grabs.show(*world_arrays.grab_rays(self._sim, current, offset))

    def connect(self, clicked: Callable[[int, viser.ClientHandle], None]) -> None:
        """Calls a function with the cell of the world whose floor is clicked in a browser, in the server's thread."""

        async def choose(event: viser.SceneNodePointerEvent[Any]) -> None:
            if event.instance_index is not None:
                clicked(event.instance_index, event.client)

        for floor in self._floors:
            floor.on_click(choose)


class _Thing:
    """Instances of meshes in the same boxes, which are made again only when a field that they follow from changes."""

    def __init__(self, scene: viser.SceneApi, boxes_of: BoxesOf, fields: tuple[str, ...], meshes: _Meshes) -> None:
        self._boxes_of = boxes_of
        self._fields = fields
        self._instances = [Instances(scene, name, *of) for name, of in meshes.items()]
        self._shown: tuple[range, list[bytes]] | None = None

    def show(self, sim: Simulator, worlds: range, layout: Layout, fields: Mapping[str, bytes]) -> None:
        """Shows the present state of some worlds. fields: their bytes, by name."""
        now = worlds, [fields[name] for name in self._fields]
        if now == self._shown:
            return
        boxes = self._boxes_of(sim, worlds, layout)
        for instances in self._instances:
            instances.show(boxes)
        self._shown = now


class Instances:
    """Instances of one mesh. Only arrays that differ from those sent before are sent."""

    def __init__(self, scene: viser.SceneApi, name: str, mesh: Mesh, colour: Array | None) -> None:
        self._scene = scene
        self._name = name
        self._mesh = mesh
        self._colour = colour
        self._handle: viser.BatchedMeshHandle | None = None
        self._sent: dict[str, Array] = {}

    def on_click(self, clicked: Callable[[viser.SceneNodePointerEvent[Any]], Coroutine[Any, Any, None]]) -> None:
        """Calls a function when an instance is clicked; after the first `show()`."""
        assert self._handle is not None
        self._handle.on_click(clicked)

    def show(self, now: Boxes) -> None:
        """Shows these boxes and keeps their arrays, which must not be written afterwards."""
        arrays = {"batched_positions": now.positions, "batched_scales": now.sizes}
        if now.rotations is not None:
            arrays["batched_wxyzs"] = now.rotations
        if self._colour is None and now.colours is not None:
            arrays["batched_colors"] = now.colours
        if self._handle is None:
            constant = {"batched_wxyzs": _identity_rotations(len(now.positions)), "batched_colors": self._colour}
            self._handle = self._scene.add_batched_meshes_simple(
                f"/{self._name}",
                self._mesh.vertices,
                self._mesh.faces,
                **{**constant, **arrays},
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
    """Line segments. Only arrays that differ from those sent before are sent."""

    def __init__(self, scene: viser.SceneApi, name: str, thickness: float) -> None:
        # One colour per end from the beginning: viser's page cannot switch from a single colour to several.
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

    def show(self, points: Array, colours: Array) -> None:
        """Shows points, float32 [count, 2, 3], in colours, uint8 [count, 3], and keeps the arrays."""
        if not _same(points, self._sent[0]):
            self._handle.points = points
        if not _same(colours, self._sent[1]):
            self._handle.colors = np.repeat(colours[:, None], 2, axis=1)
        self._sent = (points, colours)


def _same(one: Array, other: Array) -> bool:
    """Compares bytes, which takes a tenth of the time of numpy's comparison for arrays this small."""
    return one.tobytes() == other.tobytes()


def _floors(layout: Layout) -> _Meshes:
    """The two colours of a chessboard."""
    low, high = layout.low.tolist(), layout.high.tolist()
    return {
        name: (_tiles(low, high, _TILE, odd), colour)
        for name, odd, colour in zip(("floors", "odd floors"), (False, True), world_arrays.FLOOR_COLOURS, strict=True)
    }


def _add_lights(scene: viser.SceneApi) -> None:
    """Ambient light, and one directional light without shadows, which would be slow in a browser."""
    scene.configure_default_lights(enabled=False)
    scene.configure_environment_map(None)
    scene.add_light_ambient("/ambient light", intensity=_AMBIENT)
    scene.add_light_directional("/light", intensity=_DIRECTIONAL, position=(1.0, -1.0, 2.0))


def _identity_rotations(count: int) -> Array:
    return np.tile(np.array([1, 0, 0, 0], np.float32), (count, 1))


def _add_label(scene: viser.SceneApi, cell: int, layout: Layout) -> viser.LabelHandle:
    """The label of a cell, on the near wall of its world."""
    x, y = (layout.low[0] + layout.high[0]) / 2, layout.low[1]
    return scene.add_label(
        f"/world {cell}",
        "",
        position=layout.offsets[cell] + (x, y, _LABEL_BASE),
        font_size_mode="scene",
        font_scene_height=_LABEL_HEIGHT,
        anchor="center-center",
        visible=layout.cells > 1,
    )


def _around(layout: Layout, offset: Array) -> tuple[Array, Array]:
    """The outline of a world, above its walls so that they do not hide it."""
    (left, near), (right, far) = layout.low, layout.high
    z = layout.height + _LINE_HEIGHT
    corners = offset + np.array([(left, near, z), (right, near, z), (right, far, z), (left, far, z)])
    points = np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)
    return points.astype(np.float32), np.tile(world_arrays.CURRENT_WORLD_COLOUR, (4, 1))
