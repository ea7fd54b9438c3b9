"""What a picture of a world consists of: the shapes that the native library draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._native import EntityKind, PictureShape
from doorstep.render import look
from doorstep.render.objects import Objects, Snapshot

# ds_picture_object
SHAPE = np.dtype(
    [
        ("shape", np.int32),
        ("centre", np.float32, 3),
        ("rotation", np.float32, 4),
        ("size", np.float32, 3),
        ("colour", np.float32, 3),
        ("opacity", np.float32),
        ("shine", np.float32),
        ("bevel", np.float32),
        ("line_width", np.float32),
        ("line_period", np.float32),
    ]
)
Shapes = NDArray[Any]  # of SHAPE

_BEVELS = {EntityKind[kind]: bevel for kind, bevel in look.BEVELS.items()}
_COLOURS = np.array([look.rgb(colour) for colour in look.OBJECTS], np.float32)


def shapes_of(snapshot: Snapshot, objects: Objects, drawn: NDArray[np.bool_]) -> Shapes:
    """The shapes of `objects_of(snapshot)`, as far as they are drawn, and what lies on the floor."""
    return np.concatenate([*_floor(snapshot), *_marks(snapshot, objects, drawn), _solids(snapshot, objects)[drawn]])


def _solids(snapshot: Snapshot, objects: Objects) -> Shapes:
    kinds = objects["kind"]
    rows = _rows(PictureShape.BOX, objects["centre"], objects["size"], _COLOURS[objects["colour"]], objects["rotation"])
    figures = np.arange(len(objects)) < snapshot.num_agents
    rows["shape"][figures & (kinds == EntityKind.AGENT)] = PictureShape.AGENT
    for kind, bevel in _BEVELS.items():
        rows["bevel"][kinds == kind] = bevel
    pressed = rows[len(rows) - len(snapshot.button_pressed) :]["shine"]
    pressed[snapshot.button_pressed != 0] = look.PRESSED_SHINE
    return rows


def _floor(snapshot: Snapshot) -> list[Shapes]:
    """The level's floor with its grid, and the goal; nothing if the level has no finite extent."""
    low, high = snapshot.floor_bounds()
    if not (np.isfinite(low) & np.isfinite(high)).all():
        return []
    floor = _between(PictureShape.RECTANGLE, low, high, look.FLOOR)
    grid = _between(PictureShape.GRID, low, high, look.GRID, line=(look.GRID_WIDTH, look.GRID_PERIOD))
    stripes = (look.STRIPE_WIDTH, look.STRIPE_PERIOD)
    goal = _between(PictureShape.STRIPES, *snapshot.goal_bounds(), look.GOAL, opacity=look.GOAL_OPACITY, line=stripes)
    return [floor, grid, goal]


def _marks(snapshot: Snapshot, objects: Objects, drawn: NDArray[np.bool_]) -> list[Shapes]:
    """Sills of open doors, the glow of pressed buttons, and the discs of the agents."""
    bodies, statics = len(snapshot.body_kinds), len(snapshot.static_kinds)
    panels = bodies + snapshot.door_static[snapshot.door_open != 0]
    panels = panels[drawn[panels] & (objects["kind"][panels] == EntityKind.DOOR)]
    pressed = bodies + statics + np.flatnonzero(snapshot.button_pressed != 0)
    pressed = pressed[drawn[pressed]]
    agents = np.flatnonzero(drawn[: snapshot.num_agents])
    discs = _around(PictureShape.DISC, objects[agents], look.DISC_RADIUS, look.DISC_OPACITY)
    rings = _around(PictureShape.DISC, objects[agents], look.DISC_RADIUS, 1.0)
    rings["line_width"] = look.DISC_RING
    sills = _rows(PictureShape.RECTANGLE, objects["centre"][panels], objects["size"][panels], look.rgb(look.OPEN))
    return [sills, _around(PictureShape.GLOW, objects[pressed], look.GLOW_RADIUS, look.GLOW_OPACITY), discs, rings]


def _around(shape: PictureShape, objects: Objects, radius: float, opacity: float) -> Shapes:
    size = np.full(3, 2 * radius)
    rows = _rows(shape, objects["centre"], size, _COLOURS[objects["colour"]])
    rows["opacity"] = opacity
    return rows


def _between(
    shape: PictureShape,
    low: NDArray[Any],
    high: NDArray[Any],
    colour: str,
    *,
    opacity: float = 1.0,
    line: tuple[float, float] = (0.0, 0.0),
) -> Shapes:
    row = _rows(shape, np.append((low + high) / 2, 0)[None], np.append(high - low, 0), look.rgb(colour))
    row["opacity"] = opacity
    row["line_width"], row["line_period"] = line
    return row


def _rows(
    shape: PictureShape, centres: NDArray[Any], sizes: Any, colours: Any, rotations: Any = (1, 0, 0, 0)
) -> Shapes:
    rows = np.zeros(len(centres), SHAPE)
    rows["shape"], rows["centre"], rows["size"], rows["colour"] = shape, centres, sizes, colours
    rows["rotation"], rows["opacity"] = rotations, 1.0
    return rows
