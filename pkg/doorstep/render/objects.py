"""One world at one moment, copied out of a simulator, and the boxes that a picture of it consists of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._native import EntityKind, Session, WorldFields

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int32]

# ds_picture_object
OBJECT = np.dtype(
    [
        ("kind", np.int32),
        ("hidden", np.int32),
        ("centre", np.float32, 3),
        ("rotation", np.float32, 4),
        ("size", np.float32, 3),
        ("tint", np.float32, 3),
    ]
)
Objects = NDArray[Any]  # of OBJECT

# Metres. Buttons are not bodies: the state does not hold their size.
BUTTON_SIDE = 1.3
BUTTON_HEIGHT = 0.12
PRESSED_BUTTON_HEIGHT = 0.03

# Metres. Slots of buttons that a level does not use are farther out.
_OUTSIDE = 1e6

# Light colours: agents are the brightest objects of a picture, and no other object has such a colour.
AGENT_TINTS = (
    (0.97, 0.97, 0.97),
    (0.55, 0.78, 1.00),
    (1.00, 0.68, 0.86),
    (0.66, 0.95, 0.70),
    (0.80, 0.72, 1.00),
    (1.00, 0.86, 0.60),
    (0.58, 0.94, 0.94),
    (0.86, 0.80, 0.74),
)
_OWN_COLOUR = -1.0


# ---- Snapshots


@dataclass(frozen=True)
class Snapshot:
    """One world at one moment. The arrays are copies: later steps do not change them."""

    world: int  # its slot
    episode_index: int
    body_positions: FloatArray  # [B, 3], agents first: bottom centre; cubes: centre
    body_rotations: FloatArray  # [B, 4] (w, x, y, z)
    body_sizes: FloatArray  # [B, 3]
    body_kinds: IntArray  # [B]
    static_positions: FloatArray  # [S, 3], bottom centre
    static_sizes: FloatArray  # [S, 3]
    static_kinds: IntArray  # [S]
    button_positions: FloatArray  # [K, 3]
    button_pressed: IntArray  # [K]
    agent_grabs: IntArray  # [A]
    agent_max_y: FloatArray  # [A]

    @property
    def num_agents(self) -> int:
        """Agents are the first of the bodies."""
        return len(self.agent_grabs)

    @property
    def leading_agent(self) -> int:
        """The agent with the largest y of this episode so far.

        That changes less often than the agent that is ahead at the moment, so a video does not jump between agents.
        """
        return int(np.argmax(self.agent_max_y))

    def floor_bounds(self) -> tuple[FloatArray, FloatArray]:
        """The rectangle around all walls and doors, or around all bodies if the level has neither: its low and its
        high (x, y), metres."""
        kinds, positions, sizes = self.static_kinds, self.static_positions, self.static_sizes
        if not kinds.any():
            kinds, positions, sizes = self.body_kinds, self.body_positions, self.body_sizes
        used = kinds != EntityKind.NONE
        centres, halves = positions[used, :2], sizes[used, :2] / 2
        return (centres - halves).min(axis=0), (centres + halves).max(axis=0)


_FIELDS = tuple(name for name in Snapshot.__dataclass_fields__ if name != "world")


def take_snapshots(session: Session, worlds: Iterable[int]) -> list[Snapshot]:
    """Copies worlds as they are after everything begun on the simulator; each copy is of one moment."""
    fields = WorldFields(session, _FIELDS)
    snapshots = []
    for world in worlds:
        values = fields.read(world)
        episode_index = int(values.pop("episode_index"))
        snapshots.append(Snapshot(world=world, episode_index=episode_index, **values))
    return snapshots


# ---- Objects


def used_buttons(positions: FloatArray) -> NDArray[np.bool_]:
    """Which slots of buttons [..., 3] hold one."""
    used: NDArray[np.bool_] = ~(np.abs(positions[..., 0]) >= _OUTSIDE)
    return used


def objects_of(snapshot: Snapshot) -> Objects:
    """Rows of OBJECT: bodies, agents first, then statics, then buttons. Unused slots are NONE, without a place."""
    objects = np.concatenate([_bodies(snapshot), _statics(snapshot), _buttons(snapshot)])
    objects["centre"][objects["kind"] == EntityKind.NONE] = 0
    return objects


def _bodies(snapshot: Snapshot) -> Objects:
    rows = _rows(snapshot.body_kinds, snapshot.body_positions, snapshot.body_sizes)
    rows["rotation"] = snapshot.body_rotations
    agents = rows[: snapshot.num_agents]
    agents["centre"][:, 2] += agents["size"][:, 2] / 2
    agents["tint"] = AGENT_TINTS[: len(agents)]
    return rows


def _statics(snapshot: Snapshot) -> Objects:
    rows = _rows(snapshot.static_kinds, snapshot.static_positions, snapshot.static_sizes)
    rows["centre"][:, 2] += rows["size"][:, 2] / 2
    return rows


def _buttons(snapshot: Snapshot) -> Objects:
    heights = np.where(snapshot.button_pressed != 0, PRESSED_BUTTON_HEIGHT, BUTTON_HEIGHT)
    sides = np.full(len(heights), BUTTON_SIDE)
    kinds = np.where(used_buttons(snapshot.button_positions), EntityKind.BUTTON, EntityKind.NONE)
    rows = _rows(kinds, snapshot.button_positions, np.stack([sides, sides, heights], axis=1))
    rows["centre"][:, 2] += rows["size"][:, 2] / 2
    return rows


def _rows(kinds: Any, centres: NDArray[Any], sizes: NDArray[Any]) -> Objects:
    rows = np.zeros(len(centres), OBJECT)
    rows["kind"], rows["centre"], rows["size"] = kinds, centres, sizes
    rows["rotation"], rows["tint"] = (1, 0, 0, 0), _OWN_COLOUR
    return rows
