"""A level's map, which `repr()` shows."""

from __future__ import annotations

import pytest

from doorstep.levels import Button, Door, Level, Spawn, Wall
from doorstep.levels.curated import CELL, curated, sketches


@pytest.mark.parametrize("sketch", sketches(), ids=lambda sketch: str(sketch["name"]))
def test_the_map_of_a_level_that_was_drawn_is_the_drawing(sketch: dict[str, str]) -> None:
    title, _, text = repr(curated()[sketch["name"]]).partition("\n")
    assert title == f"Level {sketch['name']!r}, a character is {CELL[0]:g} x {CELL[1]:g} m:"
    assert text == sketch["text"].strip()


def test_every_part_has_a_cell_however_thin_it_is() -> None:
    thin = Level(
        walls=[Wall(x=0, y=7, size_x=8, size_y=0.2), Wall(x=5, y=4, size_x=0.2, size_y=4)],
        doors=[Door(x=-5, y=7, size_x=2, size_y=0.3)],
        buttons=[Button(x=-3, y=4, door=0)],
        spawns=[Spawn(x=0, y=2)],
    )
    text = repr(thin).partition("\n")[2]
    assert set("#Aa1") <= set(text)
    assert len({len(line) for line in text.splitlines()}) == 1


def test_a_large_level_has_larger_cells_and_fits_a_page() -> None:
    large = Level(walls=[Wall(x=0, y=60, size_x=300, size_y=1)], spawns=[Spawn(x=0, y=2)])
    title, *lines = repr(large).splitlines()
    assert title.endswith("a character is 3 x 6 m:")
    assert max(map(len, lines)) == 100
