"""Spaces of gymnasium for the rows of an environment."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from doorstep.envs._rooms import Element, Rooms


def observation_space(rooms: Rooms) -> spaces.Space[Any]:
    """The space of one row's observation."""
    boxes = {name: _box(name, element, rooms) for name, element in rooms.elements.items()}
    return spaces.Dict(boxes) if len(boxes) > 1 else next(iter(boxes.values()))


def action_space(rooms: Rooms) -> spaces.Space[Any]:
    """The space of one row's actions."""
    if rooms.action_form == "tuple":
        return spaces.Tuple([spaces.Discrete(size) for size in rooms.action_sizes])
    return spaces.MultiDiscrete(rooms.action_sizes) if rooms.action_shape else spaces.Discrete(*rooms.action_sizes)


class SpacesOfRows:
    """The spaces of one row, and of the rows that are stepped together.

    Bounds of every element fill more memory than the observations: those that nobody reads are not made.
    """

    single_observation_space: Any
    single_action_space: Any

    def _make_spaces(self, rooms: Rooms) -> None:
        self._num_rows = rooms.num_rows
        self.single_observation_space = observation_space(rooms)
        self.single_action_space = action_space(rooms)

    @functools.cached_property
    def observation_space(self) -> Any:
        """The space of all observations that a call returns."""
        return batch_space(self.single_observation_space, self._num_rows)

    @functools.cached_property
    def action_space(self) -> Any:
        """The space of all actions that a call takes."""
        return batch_space(self.single_action_space, self._num_rows)


def _box(name: str, element: Element, rooms: Rooms) -> spaces.Box:
    low, high = (np.broadcast_to(np.asarray(bound, element.dtype), element.shape) for bound in rooms.bounds(name))
    return spaces.Box(low, high, element.shape, element.dtype.type)
