"""One world at one moment, copied out of a simulator, and the boxes that a picture of it consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._native import EntityKind, Session, WorldFields
from doorstep.render import look

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int32]

Corner = tuple[float, float]

# A box of a world.
OBJECT = np.dtype(
    [
        ("kind", np.int32),
        ("colour", np.int32),  # index in look.OBJECTS
        ("centre", np.float32, 3),
        ("rotation", np.float32, 4),
        ("size", np.float32, 3),
    ]
)
Objects = NDArray[Any]  # of OBJECT

# Metres. Slots of buttons that a level does not use are farther out.
_OUTSIDE = 1e6

_CUBE, _WALL, _AGENT, _DOOR = (look.OBJECTS.index(c) for c in (look.CUBE, look.WALL, look.AGENTS[0], look.DOORS[0]))


# ---- Snapshots


@dataclass(frozen=True)
class Snapshot:
    """One world at one moment. The arrays are copies: later steps do not change them."""

    world: int  # its slot
    level: str  # its name
    goal: tuple[Corner, Corner] | None  # its low and high (x, y), metres, if the level has one of finite size
    exit: float  # of the level, metres
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
    button_doors: IntArray  # [K]
    door_open: IntArray  # [D]
    door_static: IntArray  # [D]
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

    def agents_are_out(self) -> bool:
        """Whether every agent has been beyond the exit in this episode."""
        return bool((self.agent_max_y > self.exit).all())

    def level_bounds(self) -> tuple[FloatArray, FloatArray]:
        """The rectangle around the level and its goal: its low and its high (x, y), metres."""
        (low, high), (goal_low, goal_high) = self.floor_bounds(), self.goal_bounds()
        return np.minimum(low, goal_low), np.maximum(high, goal_high)

    def goal_bounds(self) -> tuple[FloatArray, FloatArray]:
        """The goal's low and high (x, y), metres; without one, a strip beyond the walls, of no size without walls."""
        low, high = self.floor_bounds()
        if self.goal is not None:
            return np.array(self.goal[0], np.float32), np.array(self.goal[1], np.float32)
        depth = look.EXIT_DEPTH if self.static_kinds.any() else 0.0
        return np.array((low[0], high[1])), np.array((high[0], high[1] + depth))

    def floor_bounds(self) -> tuple[FloatArray, FloatArray]:
        """The rectangle around all walls and doors, or around all bodies if the level has neither: its low and its
        high (x, y), metres."""
        kinds, positions, sizes = self.static_kinds, self.static_positions, self.static_sizes
        if not kinds.any():
            kinds, positions, sizes = self.body_kinds, self.body_positions, self.body_sizes
        used = kinds != EntityKind.NONE
        centres, halves = positions[used, :2], sizes[used, :2] / 2
        return (centres - halves).min(axis=0), (centres + halves).max(axis=0)


_FIELDS = tuple(name for name in Snapshot.__dataclass_fields__ if name not in ("world", "level", "goal", "exit"))


def take_snapshots(
    session: Session, worlds: Iterable[int], level_of: Callable[[int], tuple[str, tuple[Corner, Corner] | None, float]]
) -> list[Snapshot]:
    """Copies worlds as they are after everything begun on the simulator; each copy is of one moment.

    level_of: the name, the goal and the exit of the level of a world.
    """
    fields = WorldFields(session, _FIELDS)
    snapshots = []
    for world in worlds:
        values = fields.read(world)
        episode_index = int(values.pop("episode_index"))
        level, goal, end = level_of(world)
        snapshots.append(Snapshot(world=world, level=level, goal=goal, exit=end, episode_index=episode_index, **values))
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
    rows["colour"] = _CUBE
    agents["colour"] = _AGENT + np.arange(len(agents))
    return rows


def _statics(snapshot: Snapshot) -> Objects:
    rows = _rows(snapshot.static_kinds, snapshot.static_positions, snapshot.static_sizes)
    rows["centre"][:, 2] += rows["size"][:, 2] / 2
    rows["colour"] = _WALL
    for door, slot in enumerate(snapshot.door_static):
        if rows["kind"][slot] == EntityKind.DOOR:
            rows["colour"][slot] = _DOOR + door
    return rows


def _buttons(snapshot: Snapshot) -> Objects:
    heights = np.where(snapshot.button_pressed != 0, look.PRESSED_BUTTON_HEIGHT, look.BUTTON_HEIGHT)
    sides = np.full(len(heights), look.BUTTON_SIDE)
    kinds = np.where(used_buttons(snapshot.button_positions), EntityKind.BUTTON, EntityKind.NONE)
    rows = _rows(kinds, snapshot.button_positions, np.stack([sides, sides, heights], axis=1))
    rows["centre"][:, 2] += rows["size"][:, 2] / 2
    rows["colour"] = _DOOR + snapshot.button_doors.clip(0, len(look.DOORS) - 1)
    return rows


def _rows(kinds: Any, centres: NDArray[Any], sizes: NDArray[Any]) -> Objects:
    rows = np.zeros(len(centres), OBJECT)
    rows["kind"], rows["centre"], rows["size"] = kinds, centres, sizes
    rows["rotation"] = (1, 0, 0, 0)
    return rows
