"""The curated levels can be solved by the means that their descriptions say, and by no less: without the simulator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.pkg.levels.solving import CUBE_HALF, Planner

from doorstep import levels
from doorstep.levels import Wall

CURATED = levels.curated()
# Those that a single agent can solve, if the goal were its own.
FOR_ONE = (
    *("one door", "far button", "two rooms", "slalom", "spiral"),
    *("one cube", "two cubes", "carry", "cube in a cell"),
    "blocked door",  # with cubes on the buttons
)


def test_there_are_twenty_and_they_say_what_they_are() -> None:
    assert len(CURATED) == 20
    for name, level in CURATED.items():
        assert level.name == name
        assert level.description.endswith(".")
        assert level.goal is not None
        assert level.rewards.goal > 0
        assert len(level.spawns) == 2


def test_the_gallery_shows_them_in_their_order() -> None:
    docs = Path(__file__).parents[3] / "docs"
    page = (docs / "reference/curated_levels.md").read_text("utf-8")
    shown = re.findall(r"^## (.*)\n\n!\[.*\]\(\.\./(.*)\)\n\n(.*) Agents: (\d)\.$", page, re.MULTILINE)
    assert [(name, text, int(agents)) for name, _, text, agents in shown] == [
        (name, level.description, 1 if name in FOR_ONE else 2) for name, level in CURATED.items()
    ]
    assert all((docs / picture).is_file() for _, picture, _, _ in shown)


def test_a_name_that_is_misspelt_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(KeyError, match="'onedoor' is not a curated level; did you mean 'one door'"):
        CURATED["onedoor"]
    assert CURATED.get("onedoor") is None


@pytest.mark.parametrize("name", CURATED)
def test_a_level_fits_the_pictures_of_a_world(name: str) -> None:
    for wall in CURATED[name].walls:
        assert abs(wall.x) + wall.size_x / 2 <= 11
        assert -2 <= wall.y - wall.size_y / 2 < wall.y + wall.size_y / 2 <= 42


@pytest.mark.parametrize("name", CURATED)
def test_a_level_is_solved_by_two_agents_and_by_one_only_where_that_is_meant(name: str) -> None:
    planner = Planner(CURATED[name])
    assert planner.plan(2)
    assert bool(planner.plan(1)) == (name in FOR_ONE)


@pytest.mark.parametrize("name", CURATED)
def test_a_level_that_holds_cubes_needs_them(name: str) -> None:
    level = CURATED[name]
    if level.cubes and name != "blocked door":
        assert Planner(level.replace(cubes=())).plan(2) is None


def test_the_door_is_blocked() -> None:
    """By its cubes, as long as none of them is moved."""
    level = CURATED["blocked door"]
    stuck = [Wall(cube.x, cube.y, 2 * CUBE_HALF, 2 * CUBE_HALF) for cube in level.cubes]
    assert Planner(level.replace(cubes=(), walls=[*level.walls, *stuck])).plan(2) is None
