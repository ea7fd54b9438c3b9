"""Cells are merged into rectangles that cover them exactly, each once."""

from __future__ import annotations

import random

import pytest

from doorstep.levels.rectangles import Cell, Rectangle, bounds, merge


def cells_of(*lines: str) -> set[Cell]:
    return {(row, column) for row, line in enumerate(lines) for column, cell in enumerate(line) if cell == "#"}


@pytest.mark.parametrize("seed", range(30))
def test_rectangles_cover_the_cells_exactly_and_do_not_overlap(seed: int) -> None:
    generator = random.Random(seed)
    share = generator.uniform(0.1, 0.9)
    cells = {(row, column) for row in range(12) for column in range(15) if generator.random() < share}
    covered = [cell for rectangle in merge(cells) for cell in rectangle.cells()]
    assert sorted(covered) == sorted(cells)


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (("####", "####"), 1),
        (("#####", "#...#", "#####"), 4),
        (("#.#", "...", "#.#"), 4),
        (("##########", "....##....", "....##...."), 2),
        ((), 0),
    ],
)
def test_rectangles_are_few(lines: tuple[str, ...], count: int) -> None:
    assert len(list(merge(cells_of(*lines)))) == count


def test_merging_depends_on_the_cells_alone() -> None:
    cells = sorted(cells_of("###.#", "##..#", "#####"))
    others = {*reversed(cells)}
    assert list(merge(cells)) == list(merge(others))
    assert next(merge(others)) == Rectangle(0, 0, 3, 2)


def test_each_rectangle_is_the_largest_that_is_left() -> None:
    generator = random.Random(1)
    cells = {(row, column) for row in range(7) for column in range(7) if generator.random() < 0.7}
    for found in merge(cells):
        corners = [(a, b, c, d) for a in range(7) for b in range(7) for c in range(a + 1, 8) for d in range(b + 1, 8)]
        possible = [Rectangle(*corner) for corner in corners if Rectangle(*corner).cells() <= cells]
        assert found.area == max(rectangle.area for rectangle in possible)
        cells -= found.cells()


def test_bounds_are_the_smallest_rectangle_around_cells() -> None:
    assert bounds([(3, 4), (1, 6)]) == Rectangle(1, 4, 4, 7)
