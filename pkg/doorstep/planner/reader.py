"""Copies of the fields of the state that a planner looks at, of all worlds at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep.simulator import Simulator
from doorstep.state import FIELD_INDEX
from doorstep.tensor import Tensor

LEVEL_FIELDS = (
    "static_positions",
    "static_sizes",
    "static_kinds",
    "button_positions",
    "button_doors",
    "door_static",
    "door_persistent",
)
MOVING_FIELDS = (
    "body_kinds",
    "body_positions",
    "body_rotations",
    "body_linear_velocities",
    "door_open",
    "button_pressed",
    "agent_grabs",
    "episode_index",
)


@final
class StateReader:
    """Reads without `sim.state`, which would make every later step look for edits."""

    def __init__(self, sim: Simulator) -> None:
        self._copies = {name: field_copier(sim, name) for name in (*LEVEL_FIELDS, *MOVING_FIELDS)}

    def read(self) -> dict[str, NDArray[Any]]:
        """New arrays [N, ...] by name."""
        return {name: copy() for name, copy in self._copies.items()}


def field_copier(sim: Simulator, name: str) -> Callable[[], NDArray[Any]]:
    """A function that copies a field of the state, [N, ...]."""
    session = sim._session
    tensor = Tensor(name, session.viewed_state_info(FIELD_INDEX[name]), session.memory, sim.device)
    return tensor.copy_to_host


def differing_worlds(a: dict[str, NDArray[Any]], b: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """bool [N]: which worlds have other walls, doors or buttons. The height of a door is no part of its level."""
    differs = np.zeros(len(a["door_static"]), np.bool_)
    for name in LEVEL_FIELDS:
        old, new = a[name], b[name]
        if name.endswith("positions"):
            old, new = old[..., :2], new[..., :2]
        if not np.array_equal(old, new):
            unequal = (old != new) & ~((old != old) & (new != new))  # NaN is equal to NaN
            differs |= unequal.reshape(len(unequal), -1).any(axis=1)
    return differs
