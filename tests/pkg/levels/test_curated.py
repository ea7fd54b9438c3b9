"""The curated levels can be solved, by the means that their descriptions say."""

from __future__ import annotations

import pytest
from tests.pkg.levels.solving import Planner
from tests.pkg.levels.walking import Walker

from doorstep import levels

CURATED = levels.curated()
# Those that a single agent can solve, if the goal were its own.
FOR_ONE = {
    *("one door", "far button", "two rooms", "slalom", "spiral"),
    *("one cube", "two cubes", "cube in a cell", "carry"),
    "blocked door",  # with cubes on the buttons
}


def test_there_are_twenty_and_they_say_what_they_are() -> None:
    assert len(CURATED) == 20
    for name, level in CURATED.items():
        assert level.name == name
        assert level.description.endswith(".")
        assert level.goal is not None
        assert level.rewards.goal > 0
        assert len(level.spawns) == 2


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


@pytest.mark.parametrize("name", [name for name, level in CURATED.items() if not level.cubes])
def test_a_plan_that_agents_walk_in_the_simulator_reaches_the_goal_in_time(name: str) -> None:
    level = CURATED[name]
    plan = Planner(level).plan(2)
    assert plan
    walker = Walker(level, 2, seed=3)
    assert walker.play(plan)
    assert walker.sim.rewards.to_numpy().min() > 0.9
