"""Pictures in rows, and the window that glides over them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from doorstep.recording.grid import WHOLE, Glide, Grid, Window, side_by_side
from doorstep.recording.panel import Image

GRID = Grid.of(6, 30, 20, columns=3)


def picture(number: int, width: int, height: int) -> Image:
    """Its number everywhere, but for its corners."""
    image: Image = np.full((height, width, 3), 10 + number, np.uint8)
    image[[0, 0, -1, -1], [0, -1, 0, -1]] = 200
    return image


def test_all_pictures_are_seen_in_rows_with_gaps() -> None:
    seen = GRID.draw(picture)
    assert seen.shape == (44, 98, 3)
    for number in range(6):
        top, left = 24 * (number // 3), 34 * (number % 3)
        assert np.array_equal(seen[top : top + 20, left : left + 30], picture(number, 30, 20))
    assert np.array_equal(seen, side_by_side([picture(number, 30, 20) for number in range(6)], 3))
    assert len({tuple(pixel) for pixel in seen[20:24].reshape(-1, 3)}) == 1  # the gap


def test_only_pictures_within_a_window_are_asked_for_at_the_size_that_is_seen() -> None:
    asked = []

    def noted(number: int, width: int, height: int) -> Image:
        asked.append((number, width, height))
        return picture(number, width, height)

    seen = GRID.draw(noted, Window(left=34.0, top=24.0, zoom=2.0))
    assert asked == [(4, 60, 40), (5, 60, 40)]
    assert seen.shape == (44, 98, 3)
    assert np.array_equal(seen[:40, :60], picture(4, 60, 40))


@pytest.mark.parametrize("grid", [GRID, Grid.of(64, 156, 117), Grid.of(8, 20, 20, columns=8), Grid.of(1, 30, 20)])
def test_a_glide_begins_at_the_first_picture_and_moves_away_to_all(grid: Grid) -> None:
    glide = Glide(grid, fps=25)
    windows = [glide.window(frame) for frame in range(glide.frames + 10)]
    width, height = grid.size
    first = windows[0]
    assert (first.left, first.top) == (0.0, 0.0)
    assert min(width / first.zoom - grid.width, height / first.zoom - grid.height) == pytest.approx(0, abs=1e-9)
    assert windows[glide.frames - 1] == windows[-1] == WHOLE
    assert all(before.zoom >= after.zoom for before, after in itertools.pairwise(windows))
    for window in windows:
        assert 0 <= window.left <= width * (1 - 1 / window.zoom) + 1e-9
        assert 0 <= window.top <= height * (1 - 1 / window.zoom) + 1e-9


def test_a_glide_takes_its_time_whatever_the_rate_of_frames() -> None:
    slow, fast = Glide(GRID, fps=10), Glide(GRID, fps=50)
    assert fast.frames == 5 * slow.frames
    assert fast.window(200) == slow.window(40)
