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
    assert len(merge(cells_of(*lines))) == count


def test_merging_depends_on_the_cells_alone() -> None:
    cells = sorted(cells_of("###.#", "##..#", "#####"))
    others = {*reversed(cells)}
    assert merge(set(cells)) == merge(others)
    assert merge(others)[0] == Rectangle(0, 0, 3, 2)


def test_bounds_are_the_smallest_rectangle_around_cells() -> None:
    assert bounds([(3, 4), (1, 6)]) == Rectangle(1, 4, 4, 7)
