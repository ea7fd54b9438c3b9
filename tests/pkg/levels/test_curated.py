"""The curated levels say what they are; tests/pkg/test_planner.py and recordings solve them."""

import re
from pathlib import Path

import pytest

from doorstep import levels

CURATED = levels.curated()
# Those that a single agent can solve, if the goal were its own.
FOR_ONE = (
    *("one door", "far button", "two rooms", "slalom", "spiral"),
    *("one cube", "two cubes", "carry", "cube in a cell"),
    "blocked door",  # with cubes on the buttons
)


def test_there_are_twenty_and_they_say_what_they_are_and_fit_the_pictures_of_a_world():
    assert len(CURATED) == 20
    for name, level in CURATED.items():
        assert level.name == name
        assert level.description.endswith(".")
        assert level.goal is not None
        assert level.rewards.goal > 0
        assert len(level.spawns) == 2
        for wall in level.walls:
            assert abs(wall.x) + wall.size_x / 2 <= 11
            assert -2 <= wall.y - wall.size_y / 2 < wall.y + wall.size_y / 2 <= 42


def test_the_gallery_shows_them_in_their_order():
    docs = Path(__file__).parents[3] / "docs"
    page = (docs / "reference/curated_levels.md").read_text("utf-8")
    shown = re.findall(r"^## (.*)\n\n!\[.*\]\(\.\./(.*)\)\n\n(.*) Agents: (\d)\.$", page, re.MULTILINE)
    assert [(name, text, int(agents)) for name, _, text, agents in shown] == [
        (name, level.description, 1 if name in FOR_ONE else 2) for name, level in CURATED.items()
    ]
    assert all((docs / picture).is_file() for _, picture, _, _ in shown)


def test_a_name_that_is_misspelt_is_answered_with_the_one_that_was_meant():
    with pytest.raises(KeyError, match="'onedoor' is not a curated level; did you mean 'one door'"):
        CURATED["onedoor"]
    assert CURATED.get("onedoor") is None
