"""Rewards, buttons and doors: the rules that need the poses at the end of a step and nothing else."""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.reference import constants as c
from tests.reference.boxes import corners

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def score(y: Any, max_y: Any) -> tuple[Floats, Floats]:
    """Rewards and new largest y of agents [N, A] at y that had reached max_y before."""
    reached = np.minimum(np.asarray(y, dtype=np.float64), c.MAX_PROGRESS)
    before = np.asarray(max_y, dtype=np.float64)
    progress = reached - before
    after = np.where(progress > 0, reached, before)
    rewards = np.where(progress > 0, c.REWARD_PER_METRE * progress, c.SLACK_REWARD)
    apart = np.abs(after[:, :, None] - after[:, None, :]).max(axis=-1)
    bonus = (apart <= c.BONUS_DISTANCE) & (rewards > 0) & (after.shape[1] > 1)
    return np.where(bonus, c.BONUS_FACTOR * rewards, rewards), after


def pressed(centres: Any, rotations: Any, sizes: Any, buttons: Any, margin: float = 0.0) -> Flags:
    """Whether any of bodies [N, B] presses buttons [N, K, 3]: bounds along the world axes overlap strictly."""
    points = corners(centres, rotations, sizes)
    low, high = points.min(axis=-2)[:, None], points.max(axis=-2)[:, None]
    plate = np.asarray(buttons, dtype=np.float64)[:, :, None]
    half = np.array([c.BUTTON_SIDE / 2, c.BUTTON_SIDE / 2, 0.0])
    plate_low = plate - half
    plate_high = plate + half + np.array([0.0, 0.0, c.BUTTON_HEIGHT])
    overlap = (low < plate_high + margin) & (high > plate_low - margin)
    return np.asarray(overlap.all(axis=-1).any(axis=-1))


def open_doors(pressed_buttons: Any, was_open: Any) -> Flags:
    """Door flags [N, 3] from presses [N, 6]: the doors of the first two rooms stay open once opened."""
    both = np.asarray(pressed_buttons, dtype=bool).reshape(-1, c.ROOMS, 2).all(axis=-1)
    persistent = np.array([True, True, False])
    return np.asarray(both | (np.asarray(was_open, dtype=bool) & persistent))


def move_panels(z: Any, is_open: Any) -> Floats:
    """Heights of door panels after the motion at the start of a step."""
    height, opening = np.asarray(z, dtype=np.float64), np.asarray(is_open, dtype=bool)
    height = np.where(opening & (height > -4.5), height - 1.2, height)
    height = np.where(~opening & (height < 0), height + 1.2, height)
    return np.minimum(height, 0.0)


def metres_to_buttons(cubes: Any, buttons: Any, doors: Any, counted: Any) -> float:
    """The smallest sum of distances for cubes [C, 2] (NaN: none), buttons [K, 2] of doors [K], for counted doors [D].

    The buttons of a door have different cubes; a distance is measured from where the cube covers the button.
    """
    places = np.asarray(cubes, dtype=np.float64)
    places = places[np.isfinite(places).all(axis=1)]
    total = 0.0
    for door in np.flatnonzero(counted):
        plates = np.asarray(buttons, dtype=np.float64)[np.asarray(doors) == door]
        gaps = np.maximum(np.abs(places[:, None] - plates[None]) - (c.CUBE_SIDE + c.BUTTON_SIDE) / 2, 0)
        few, many = sorted((np.hypot(gaps[..., 0], gaps[..., 1]), np.hypot(gaps[..., 0], gaps[..., 1]).T), key=len)
        ways = itertools.permutations(range(len(many)), len(few))
        total += min(sum(few[i, chosen] for i, chosen in enumerate(way)) for way in ways)
    return total
