"""The things of a world as the rows that pictures are drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._native import EntityKind
from doorstep.render.snapshot import Snapshot

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

# Pressure plates are no bodies: nothing in the state tells their size. Metres.
BUTTON_SIDE = 1.3
BUTTON_HEIGHT = 0.12
PRESSED_BUTTON_HEIGHT = 0.03

# Light, so that agents stay the brightest things in a picture, and apart from the colours of everything else.
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


def objects_of(snapshot: Snapshot) -> Objects:
    """Rows of OBJECT: bodies, agents first, then statics, then buttons. Unused slots have the kind NONE."""
    return np.concatenate([_bodies(snapshot), _statics(snapshot), _buttons(snapshot)])


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
    rows = _rows(EntityKind.BUTTON, snapshot.button_positions, np.stack([sides, sides, heights], axis=1))
    rows["centre"][:, 2] += rows["size"][:, 2] / 2
    return rows


def _rows(kinds: Any, centres: NDArray[Any], sizes: NDArray[Any]) -> Objects:
    rows = np.zeros(len(centres), OBJECT)
    rows["kind"], rows["centre"], rows["size"] = kinds, centres, sizes
    rows["rotation"], rows["tint"] = (1, 0, 0, 0), _OWN_COLOUR
    return rows
