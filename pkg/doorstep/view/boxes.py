"""What the worlds that are shown look like now: boxes by kind, in the coordinates of the whole picture.

There are as many boxes of a kind whatever happens, one for each slot of each world; what is not there has size 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep import EntityKind
from doorstep.render.objects import BUTTON_HEIGHT, BUTTON_SIDE, PRESSED_BUTTON_HEIGHT
from doorstep.simulator import Simulator
from doorstep.tensor import Tensor
from doorstep.view import colours
from doorstep.view.layout import Layout
from doorstep.view.reading import read

Array = NDArray[Any]


@dataclass(frozen=True)
class Boxes:
    """Arrays of their own, float32 [M, ...]; None: what it never differs in."""

    positions: Array  # bottom centre; cubes: centre
    sizes: Array
    rotations: Array | None = None  # unit quaternions (w, x, y, z)
    colours: Array | None = None  # uint8


Look = Callable[[Simulator, range, Layout], Boxes]


def floors(sim: Simulator, worlds: range, layout: Layout) -> Boxes:
    """Where each world stands."""
    return Boxes(layout.offsets, np.ones_like(layout.offsets))


def walls(sim: Simulator, worlds: range, layout: Layout) -> Boxes:
    """Walls."""
    state = sim.state
    there = _cut(state.static_kinds, worlds) == EntityKind.WALL
    sizes = _cut(state.static_sizes, worlds) * there[..., None]
    return Boxes(_place(_cut(state.static_positions, worlds), layout), _flat(sizes))


def doors(sim: Simulator, worlds: range, layout: Layout) -> Boxes:
    """Doors. Open ones are below the floor."""
    state = sim.state
    slots = _cut(state.door_static, worlds)
    rows = np.arange(len(worlds))[:, None]
    there = _cut(state.static_kinds, worlds)[rows, slots] == EntityKind.DOOR
    sizes = _cut(state.static_sizes, worlds)[rows, slots] * there[..., None]
    is_open = _cut(state.door_open, worlds) != 0
    return Boxes(
        _place(_cut(state.static_positions, worlds)[rows, slots], layout),
        _flat(sizes),
        colours=_either(is_open, colours.DOOR_OPEN, colours.DOOR_CLOSED),
    )


def buttons(sim: Simulator, worlds: range, layout: Layout) -> Boxes:
    """Buttons. Pressed ones are lower."""
    pressed = _cut(sim.state.button_pressed, worlds) != 0
    sizes = np.full((*pressed.shape, 3), BUTTON_SIDE, np.float32)
    sizes[..., 2] = np.where(pressed, PRESSED_BUTTON_HEIGHT, BUTTON_HEIGHT)
    return Boxes(
        _place(_cut(sim.state.button_positions, worlds), layout),
        _flat(sizes),
        colours=_either(pressed, colours.BUTTON_PRESSED, colours.BUTTON),
    )


def cubes(sim: Simulator, worlds: range, layout: Layout) -> Boxes:
    """Cubes."""
    return _bodies(sim, worlds, layout, slice(sim.num_agents, None), EntityKind.CUBE)


def agents(sim: Simulator, worlds: range, layout: Layout) -> Boxes:
    """Agents: in each world the first has the first colour, and so on."""
    tints = np.tile(colours.AGENTS[: sim.num_agents], (len(worlds), 1))
    return replace(_bodies(sim, worlds, layout, slice(0, sim.num_agents), EntityKind.AGENT), colours=tints)


def _bodies(sim: Simulator, worlds: range, layout: Layout, slots: slice, kind: EntityKind) -> Boxes:
    state = sim.state
    there = _cut(state.body_kinds, worlds)[:, slots] == kind
    return Boxes(
        _place(_cut(state.body_positions, worlds)[:, slots], layout),
        _flat(_cut(state.body_sizes, worlds)[:, slots] * there[..., None]),
        rotations=_flat(_cut(state.body_rotations, worlds)[:, slots]),
    )


def _cut(tensor: Tensor, worlds: range) -> Array:
    return read(tensor)[worlds.start : worlds.stop]


def _place(positions: Array, layout: Layout) -> Array:
    """From the coordinates of worlds [W, slots, 3] to those of the picture."""
    return _flat(positions + layout.offsets[:, None])


def _flat(values: Array) -> Array:
    """[W, slots, n] to float32 [W * slots, n], a copy."""
    return np.array(values, np.float32).reshape(-1, values.shape[-1])


def _either(choice: Array, yes: Array, no: Array) -> Array:
    return np.where(choice.reshape(-1, 1), yes, no)
