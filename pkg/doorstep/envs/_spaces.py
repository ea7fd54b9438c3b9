"""Spaces of gymnasium for the rows of an environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from doorstep.envs._rooms import Element, Rooms


def observation_space(rooms: Rooms) -> spaces.Space[Any]:
    """The space of one row's observation."""
    boxes = {name: _box(name, element, rooms) for name, element in rooms.elements.items()}
    return spaces.Dict(boxes) if len(boxes) > 1 else next(iter(boxes.values()))


def action_space(rooms: Rooms) -> spaces.MultiDiscrete:
    """The space of one row's actions."""
    return spaces.MultiDiscrete(rooms.action_sizes)


def _box(name: str, element: Element, rooms: Rooms) -> spaces.Box:
    low, high = (np.broadcast_to(np.asarray(bound, element.dtype), element.shape) for bound in rooms.bounds(name))
    return spaces.Box(low, high, element.shape, element.dtype.type)
