"""Where cameras are put: what they are to show just fits the picture, whatever its shape."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

import doorstep
from doorstep.view import cameras
from doorstep.view.cameras import Lens, Place
from doorstep.view.layout import Layout


@pytest.fixture(scope="module")
def layout() -> Layout:
    with doorstep.Simulator(1) as sim:
        return Layout.of(sim, 16)


def seen_at(points: NDArray[np.float64], place: Place, lens: Lens) -> NDArray[np.float64]:
    """Where points are in the picture; its borders are at -1 and 1."""
    position, target = place
    ahead = (target - position) / np.linalg.norm(target - position)
    right = np.cross(ahead, (0, 0, 1)) / np.linalg.norm(np.cross(ahead, (0, 0, 1)))
    axes = np.stack([right, np.cross(right, ahead), ahead])
    x, y, depth = axes @ (points - position).T
    assert (depth > 0).all()
    height = math.tan(lens.field_of_view / 2)
    return np.stack([x / depth / height / lens.aspect, y / depth / height])


@pytest.mark.parametrize("aspect", [0.3, 0.75, 4 / 3, 16 / 9, 4])
@pytest.mark.parametrize("field_of_view", [0.5, math.radians(75), 2])
@pytest.mark.parametrize("name", cameras.PRESETS)
def test_what_a_preset_shows_just_fits_the_picture(
    layout: Layout, name: str, aspect: float, field_of_view: float
) -> None:
    cell, lens = 6, Lens(field_of_view, aspect)
    low, high = np.array([-11, -1, 0]), np.array([11, 40, 5])  # of a level with its walls
    cells = range(16) if name == "all" else [cell]
    corners = np.concatenate(
        [np.array(list(itertools.product(*zip(low, high, strict=True)))) + layout.offsets[each] for each in cells]
    )
    at = seen_at(corners, cameras.preset(name, layout, cell, lens), lens)
    assert np.abs(at).max() == pytest.approx(0.92, abs=1e-3)  # nothing is cut off, and little is given away
    widest = np.argmax(at.max(axis=1) - at.min(axis=1))
    assert at[widest].max() == pytest.approx(-at[widest].min(), abs=1e-3)  # in the middle


def test_presets_look_from_their_side(layout: Layout) -> None:
    for name, side in {"top": (0, 0, 1), "left": (-1, 0, 1), "right": (1, 0, 1), "all": (0, -1, 1)}.items():
        position, target = cameras.preset(name, layout, 0, Lens())
        assert np.sign(np.round((position - target) / np.linalg.norm(position - target), 1)).tolist() == list(side)
        assert target[2] == pytest.approx(0)
