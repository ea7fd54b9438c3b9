"""What is shown of the worlds, as arrays: where each world is placed, its boxes, and the rays of its agents.

Every kind of thing has one row for each slot of each world, whatever happens; unused slots have size 0. Positions are
those of the page's scene, in metres.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doorstep._native import EntityKind
from doorstep.render import look
from doorstep.render.objects import used_buttons
from doorstep.simulator import Simulator
from doorstep.tensor import Tensor

Array = NDArray[Any]

DISTANCE_UNIT = 40.0  # metres; positions and distances are observed in this unit
_KIND_UNIT = 6.0  # kinds of entities are observed as sixths of their code
_GAP = 4.0  # metres between worlds
_RAY_HEIGHT = 0.5  # metres above an agent's position, of lidar and grab rays
_GRAB_LENGTH = 2.0  # metres
_TRAIL, _TRAIL_HEIGHT = 60, 0.1  # steps, metres


def read(tensor: Tensor) -> Array:
    """The elements of a tensor: on the CPU the simulator's own memory, not to be written; on a GPU a copy."""
    return tensor.to_numpy() if tensor.device == "cpu" else tensor.copy_to_host()


def lidar_readings(sim: Simulator, world: int) -> tuple[Array, Array]:
    """For the agents of a world, distances in metres and kinds of entities that the rays hit, both [A, rays].

    Both are 0 where a ray hits nothing.
    """
    observed = read(sim.lidar)[world]
    return observed[..., 0] * DISTANCE_UNIT, np.rint(observed[..., 1] * _KIND_UNIT).astype(np.int64)


# ---- Colours ----
# Written as they look, in sRGB from 0 to 1, and stored as viser takes those of instances and lines: as linear light,
# which the browser converts to sRGB.


def _linear(srgb: ArrayLike) -> NDArray[np.uint8]:
    """uint8 of the same shape, [..., 3]."""
    part = np.asarray(srgb, np.float64)
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return np.asarray(np.rint(255 * linear), np.uint8)


def _linear_of(*colours: str) -> NDArray[np.uint8]:
    """uint8 [count, 3] of colours of the look."""
    return _linear([look.rgb(colour) for colour in colours])


AGENT_COLOURS = _linear_of(*look.AGENTS)
(EYE_COLOUR,) = _linear_of(look.PUPIL)
(CUBE_COLOUR,) = _linear_of(look.CUBE)
(WALL_COLOUR,) = _linear_of(look.WALL)
FLOOR_COLOURS = _linear_of(look.FLOOR, look.GROUND)
(CURRENT_WORLD_COLOUR,) = _linear_of(look.AGENTS[0])
_DOOR_COLOURS = _linear_of(*look.DOORS)
(_OPEN_COLOUR,) = _linear_of(look.OPEN)  # of open doors and pressed buttons
(_GRAB_RAY_COLOUR,) = _linear_of(look.MUTED)
(_HOLDING_COLOUR,) = _linear_of(look.HELD)
_LIDAR_COLOURS = np.tile(_linear_of(look.AGENTS[5]), (len(EntityKind), 1))  # by the kind that the ray hits
_LIDAR_COLOURS[EntityKind.CUBE] = _linear_of(look.CUBE)[0]
_LIDAR_COLOURS[EntityKind.AGENT] = _linear_of(look.MUTED)[0]
_LIDAR_COLOURS[EntityKind.DOOR] = _linear_of(look.HELD)[0]


# ---- Where worlds are placed ----


@dataclass(frozen=True)
class Layout:
    """A square of cells, one per world that is shown: rows from far to near, each from left to right.

    The first world is at the coordinates that the simulator gives it.
    """

    low: NDArray[np.float32]  # [2], corner of a level, metres
    high: NDArray[np.float32]  # [2]
    height: float  # metres, of a level above its floor
    offsets: NDArray[np.float32]  # [cells, 3]

    @staticmethod
    def of(sim: Simulator, cells: int) -> Layout:
        """Cells that are large enough for the levels of a simulator, or for the bodies if none has walls."""
        kinds, places, extents = sim.state.static_kinds, sim.state.static_positions, sim.state.static_sizes
        if not read(kinds).any():
            kinds, places, extents = sim.state.body_kinds, sim.state.body_positions, sim.state.body_sizes
        used = read(kinds) != 0
        positions, sizes = read(places)[used], read(extents)[used]
        low = (positions - sizes / 2)[:, :2].min(axis=0)
        high = (positions + sizes / 2)[:, :2].max(axis=0)
        height = float((positions + sizes)[:, 2].max())  # positions are at the bottom
        width, depth = high - low + _GAP
        rows, column = np.divmod(np.arange(cells), math.ceil(math.sqrt(cells)))
        offsets = np.stack([column * width, -rows * depth, 0 * rows], axis=1).astype(np.float32)
        return Layout(low, high, height, offsets)

    @property
    def cells(self) -> int:
        """How many worlds are shown at once."""
        return len(self.offsets)

    def box(self, cell: int) -> NDArray[np.float32]:
        """Corners [8, 3] of the level in a cell."""
        return self._corners(self.offsets[cell], self.offsets[cell])

    def whole(self) -> NDArray[np.float32]:
        """Corners [8, 3] of a box around all levels."""
        return self._corners(self.offsets.min(axis=0), self.offsets.max(axis=0))

    def _corners(self, least: NDArray[np.float32], most: NDArray[np.float32]) -> NDArray[np.float32]:
        """Corners of a box around the levels with these offsets."""
        low, high = np.append(self.low, 0) + least, np.append(self.high, self.height) + most
        return np.array(list(itertools.product(*zip(low, high, strict=True))), np.float32)


# ---- Boxes ----


@dataclass(frozen=True)
class Boxes:
    """Boxes of one kind of thing, as new float32 arrays [M, ...]. None: it never changes."""

    positions: Array  # bottom centre; cubes: centre
    sizes: Array
    rotations: Array | None = None  # unit quaternions (w, x, y, z)
    colours: Array | None = None  # uint8


BoxesOf = Callable[[Simulator, range, Layout], Boxes]


def floors(layout: Layout) -> Boxes:
    """The floor of each world."""
    return Boxes(layout.offsets, np.ones_like(layout.offsets))


def walls(sim: Simulator, worlds: range, layout: Layout) -> Boxes:
    """Walls."""
    state = sim.state
    used = _select(state.static_kinds, worlds) == EntityKind.WALL
    sizes = _select(state.static_sizes, worlds) * used[..., None]
    return Boxes(_place(_select(state.static_positions, worlds), layout), _flat(sizes))


def doors(sim: Simulator, worlds: range, layout: Layout) -> Boxes:
    """Doors, each in its colour. Open ones are below the floor."""
    state = sim.state
    slots = _select(state.door_static, worlds)
    rows = np.arange(len(worlds))[:, None]
    used = _select(state.static_kinds, worlds)[rows, slots] == EntityKind.DOOR
    sizes = _select(state.static_sizes, worlds)[rows, slots] * used[..., None]
    is_open = _select(state.door_open, worlds) != 0
    return Boxes(
        _place(_select(state.static_positions, worlds)[rows, slots], layout),
        _flat(sizes),
        colours=_choose(is_open, _OPEN_COLOUR, np.tile(_DOOR_COLOURS[: is_open.shape[1]], (len(worlds), 1))),
    )


def buttons(sim: Simulator, worlds: range, layout: Layout) -> Boxes:
    """Buttons, in the colours of their doors. Pressed ones are lower."""
    pressed, positions = _select(sim.state.button_pressed, worlds) != 0, _select(sim.state.button_positions, worlds)
    doors = _select(sim.state.button_doors, worlds)
    sizes = np.full((*pressed.shape, 3), look.BUTTON_SIDE, np.float32)
    sizes[..., 2] = np.where(pressed, look.PRESSED_BUTTON_HEIGHT, look.BUTTON_HEIGHT)
    return Boxes(
        _place(positions, layout),
        _flat(sizes * used_buttons(positions)[..., None]),
        colours=_choose(pressed, _OPEN_COLOUR, _DOOR_COLOURS[doors.clip(0, len(_DOOR_COLOURS) - 1).reshape(-1)]),
    )


def cubes(sim: Simulator, worlds: range, layout: Layout) -> Boxes:
    """Cubes."""
    return _bodies(sim, worlds, layout, slice(sim.num_agents, None), EntityKind.CUBE)


def agents(sim: Simulator, worlds: range, layout: Layout) -> Boxes:
    """Agents. The colour of an agent depends on its number in its world; one that leaves its world's cell shrinks."""
    colours = np.tile(AGENT_COLOURS[: sim.num_agents], (len(worlds), 1))
    bodies = _bodies(sim, worlds, layout, slice(0, sim.num_agents), EntityKind.AGENT)
    places = _select(sim.state.body_positions, worlds)[:, : sim.num_agents, :2]
    outside = np.maximum(np.maximum(layout.low - places, places - layout.high), 0).max(axis=-1)
    shown = np.clip(1 - outside / (_GAP / 2), 0, 1).astype(np.float32)
    return replace(bodies, sizes=bodies.sizes * shown.reshape(-1, 1), colours=colours)


def _bodies(sim: Simulator, worlds: range, layout: Layout, slots: slice, kind: EntityKind) -> Boxes:
    state = sim.state
    used = _select(state.body_kinds, worlds)[:, slots] == kind
    return Boxes(
        _place(_select(state.body_positions, worlds)[:, slots], layout),
        _flat(_select(state.body_sizes, worlds)[:, slots] * used[..., None]),
        rotations=_flat(_select(state.body_rotations, worlds)[:, slots]),
    )


def _select(tensor: Tensor, worlds: range) -> Array:
    return read(tensor)[worlds.start : worlds.stop]


def _place(positions: Array, layout: Layout) -> Array:
    """From the coordinates of each world, [W, slots, 3], to those of the scene."""
    return _flat(positions + layout.offsets[:, None])


def _flat(values: Array) -> Array:
    """[W, slots, n] to float32 [W * slots, n], a copy."""
    return np.array(values, np.float32).reshape(-1, values.shape[-1])


def _choose(condition: Array, yes: Array, no: Array) -> Array:
    return np.where(condition.reshape(-1, 1), yes, no)


# ---- Lines ----

Segments = tuple[Array, Array]
"""End points, float32 [count, 2, 3], and colours, uint8 [count, 3]. Absent segments have length 0."""


def lidar_rays(sim: Simulator, world: int, offset: Array) -> Segments:
    """Every lidar ray of the agents of a world, from the agent to what it hits."""
    distances, kinds = lidar_readings(sim, world)
    origins, yaws = _ray_origins(sim, world, offset)
    count = distances.shape[1]
    angles = yaws[:, None] + np.pi / 2 + 2 * np.pi * np.arange(count) / count  # sample 0 is ahead, then to the left
    directions = np.stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)], axis=-1)
    starts = np.repeat(origins[:, None], count, axis=1)
    return _segments(starts, starts + directions * distances[..., None]), _LIDAR_COLOURS[kinds.reshape(-1)]


def grab_rays(sim: Simulator, world: int, offset: Array) -> Segments:
    """For each agent of a world, the ray along which it would grab, or a line to the cube that it holds."""
    origins, yaws = _ray_origins(sim, world, offset)
    ahead = np.stack([-np.sin(yaws), np.cos(yaws), np.zeros_like(yaws)], axis=-1)
    held = read(sim.state.agent_grabs)[world]
    cubes = read(sim.state.body_positions)[world][held] + offset
    holding = (held >= 0)[:, None]
    ends = np.where(holding, cubes, origins + _GRAB_LENGTH * ahead)
    return _segments(origins, ends), np.where(holding, _HOLDING_COLOUR, _GRAB_RAY_COLOUR)


class Trails:
    """Where the agents of a world were in the last `_TRAIL` steps of its episode."""

    def __init__(self, num_agents: int) -> None:
        self._num_agents = num_agents
        self._positions: deque[Array] = deque(maxlen=_TRAIL)  # float32 [A, 3]

    def clear(self) -> None:
        """An episode begins, or another world is shown."""
        self._positions.clear()

    def add(self, sim: Simulator, world: int) -> None:
        """Adds the present positions."""
        self._positions.append(read(sim.state.body_positions)[world, : self._num_agents].astype(np.float32))

    def segments(self, offset: Array) -> Segments:
        """Lines just above the floor in the colours of the agents."""
        places = np.zeros((_TRAIL, self._num_agents, 3), np.float32)
        if self._positions:
            places[-len(self._positions) :] = self._positions
            places[: -len(self._positions)] = self._positions[0]
            places += offset + np.array([0, 0, _TRAIL_HEIGHT], np.float32)
        colours = np.tile(AGENT_COLOURS[: self._num_agents], (_TRAIL - 1, 1))
        return _segments(places[:-1], places[1:]), colours


def _ray_origins(sim: Simulator, world: int, offset: Array) -> tuple[Array, Array]:
    """Where the rays of each agent begin, [A, 3], and the agents' yaws, [A]."""
    positions = read(sim.state.body_positions)[world, : sim.num_agents]
    rotations = read(sim.state.body_rotations)[world, : sim.num_agents]
    return positions + offset + (0, 0, _RAY_HEIGHT), yaw(rotations)


def yaw(rotations: Array) -> Array:
    """Angles in radians, counter-clockwise from +y, of quaternions [..., 4] that turn about z."""
    return 2 * np.arctan2(rotations[..., 3], rotations[..., 0])


def _segments(starts: Array, ends: Array) -> Array:
    return np.stack([starts, ends], axis=-2).astype(np.float32).reshape(-1, 2, 3)
