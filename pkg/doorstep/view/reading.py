"""Tensors as arrays, wherever they lie, and observations in the units of the world."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep.simulator import Simulator
from doorstep.tensor import Tensor

DISTANCE_UNIT = 40.0  # metres, of positions and distances in observations
ROOM_LENGTH = 40.0 / 3  # metres, unit of an agent's y in its room
_KIND_UNIT = 6.0  # kinds are observed as sixths of their code
_OBSERVATIONS = ("self_observations", "partner_observations", "room_entity_observations", "door_observations")


def read(tensor: Tensor) -> NDArray[Any]:
    """What a tensor holds now: on the CPU the memory itself, to be left alone; of a GPU's, a copy."""
    return tensor.to_numpy() if tensor.device == "cpu" else tensor.copy_to_host()


def observations(sim: Simulator, world: int, agent: int) -> NDArray[np.float64]:
    """What an agent observes but lidar, side by side in the order of the documentation."""
    parts = [read(sim.tensors[name])[world, agent].reshape(-1) for name in _OBSERVATIONS]
    return np.concatenate(parts).astype(np.float64)


def lidar(sim: Simulator, world: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of the agents of a world: distances in metres and kinds of what the rays met, both [A, rays]; 0: nothing."""
    seen = read(sim.lidar)[world]
    return seen[..., 0] * DISTANCE_UNIT, np.rint(seen[..., 1] * _KIND_UNIT).astype(np.int64)
