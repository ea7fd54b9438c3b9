"""What one world looks like at one moment, copied out of a simulator on any device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from doorstep._native import WorldFields

if TYPE_CHECKING:
    from doorstep.simulator import Simulator

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int32]


@dataclass(frozen=True)
class Snapshot:
    """One world at one moment: copies, so that it stays what it was while the simulator goes on."""

    world: int  # its global number
    episode_index: int
    body_positions: FloatArray  # [B, 3], agents first: bottom centre; cubes: centre
    body_rotations: FloatArray  # [B, 4] (w, x, y, z)
    body_sizes: FloatArray  # [B, 3]
    body_kinds: IntArray  # [B]
    static_positions: FloatArray  # [S, 3], bottom centre
    static_sizes: FloatArray  # [S, 3]
    static_kinds: IntArray  # [S]
    door_static: IntArray  # [D]
    door_open: IntArray  # [D]
    button_positions: FloatArray  # [K, 3]
    button_pressed: IntArray  # [K]
    agent_grabs: IntArray  # [A]
    agent_max_y: FloatArray  # [A]

    @property
    def num_agents(self) -> int:
        """Agents are the first of the bodies."""
        return len(self.agent_grabs)

    @property
    def leader(self) -> int:
        """The agent that is furthest along the level."""
        return int(np.argmax(self.body_positions[: self.num_agents, 1]))

    @property
    def pioneer(self) -> int:
        """The agent that got furthest in this episode."""
        return int(np.argmax(self.agent_max_y))

    def floor_bounds(self) -> tuple[FloatArray, FloatArray]:
        """The rectangle around all walls and doors: its low and its high (x, y), metres."""
        used = self.static_kinds != 0
        used |= not used.any()
        centres, halves = self.static_positions[used, :2], self.static_sizes[used, :2] / 2
        return (centres - halves).min(axis=0), (centres + halves).max(axis=0)


_FIELDS = tuple(name for name in Snapshot.__dataclass_fields__ if name != "world")


def take_snapshots(sim: Simulator, worlds: Iterable[int]) -> list[Snapshot]:
    """Copies some worlds of `sim` as they are after everything begun on it. What one shows belongs to one moment."""
    fields = WorldFields(sim._session, _FIELDS)
    snapshots = []
    for world in worlds:
        values = fields.read(world)
        episode_index = int(values.pop("episode_index"))
        snapshots.append(Snapshot(world=sim.world_offset + world, episode_index=episode_index, **values))
    return snapshots
