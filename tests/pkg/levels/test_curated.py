"""The curated levels can be solved, by the means that their descriptions say."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pkg.levels.solving import Move, Planner
from tests.pkg.levels.walking import Walker

from doorstep import levels

CURATED = levels.curated()
# Those that a single agent can solve, if the goal were its own.
FOR_ONE = (
    *("one door", "far button", "two rooms", "slalom", "spiral"),
    *("one cube", "two cubes", "carry", "cube in a cell"),
    "blocked door",  # with cubes on the buttons
)
# Plans do not know that cubes are in the way: the middle one is pulled back first.
BEFORE = {"blocked door": [Move(agent=0, start=(0.5, 15), end=(0.5, 6), doors=frozenset(), cube=1)]}


def test_there_are_twenty_and_they_say_what_they_are() -> None:
    assert len(CURATED) == 20
    for name, level in CURATED.items():
        assert level.name == name
        assert level.description.endswith(".")
        assert level.goal is not None
        assert level.rewards.goal > 0
        assert len(level.spawns) == 2


def test_the_guide_lists_them() -> None:
    page = (Path(__file__).parents[3] / "docs/how_to/levels.md").read_text("utf-8")
    rows = [f"| {name} | {1 if name in FOR_ONE else 2} | {level.description} |\n" for name, level in CURATED.items()]
    assert page.endswith("|---|---|---|\n" + "".join(rows))


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


@pytest.mark.slow
@pytest.mark.parametrize(("name", "num_agents"), [*((name, 2) for name in CURATED), *((name, 1) for name in FOR_ONE)])
def test_a_plan_that_agents_carry_out_in_the_simulator_reaches_the_goal_in_time(name: str, num_agents: int) -> None:
    """The agents are not clever: from some starts they get a cube stuck that others would bring on its way."""
    level = CURATED[name]
    plan = Planner(level).plan(num_agents)
    assert plan
    walkers = (Walker(level, num_agents, seed) for seed in range(8))
    walker = next(walker for walker in walkers if walker.play([*BEFORE.get(name, ()), *plan]))
    assert walker.sim.rewards.to_numpy().min() > 0.9


def test_the_door_is_blocked() -> None:
    level = CURATED["blocked door"]
    plan = Planner(level).plan(2)
    assert plan
    assert not Walker(level, 2, seed=3).play(plan)
