"""Spaces of gymnasium for the rows of an environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from doorstep.envs._rooms import Element, Rooms


def observation_space(rooms: Rooms) -> spaces.Space[Any]:
    """The space of one row's observation."""
    layout = rooms.layout
    if isinstance(layout, Element):
        return _box(layout, rooms)
    return spaces.Dict({name: _box(element, rooms) for name, element in layout.items()})


def action_space(rooms: Rooms) -> spaces.MultiDiscrete:
    """The space of one row's actions."""
    return spaces.MultiDiscrete(rooms.action_sizes)


def _box(element: Element, rooms: Rooms) -> spaces.Box:
    low: float
    high: float
    if element.dtype == np.uint8:
        low, high = 0, 255
    elif element.dtype == np.int32:
        low, high = 0, rooms.config.episode_length
    else:
        low, high = -np.inf, np.inf
    return spaces.Box(low, high, element.shape, element.dtype.type)
