"""Episodes that end are counted, and those that succeeded."""

from __future__ import annotations

import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

import doorstep
from doorstep.levels import Goal, Level
from doorstep.viewer.outcomes import Outcomes

GOAL = Goal(min_x=-10, max_x=10, min_y=5, max_y=9)
OPEN = Level.from_ascii("""
    #######
    #.....#
    #.1.2.#
    #.....#
    #######
""")


def stand(sim: doorstep.Simulator, world: int, y: float) -> None:
    """Puts all agents of a world there."""
    sim.state.body_positions.to_numpy()[world, : sim.num_agents, 1] = y


def test_an_episode_at_its_step_limit_succeeds_if_all_agents_were_beyond_the_last_door() -> None:
    with doorstep.Simulator(3, episode_length=2) as sim:
        outcomes = Outcomes(sim)
        assert (outcomes.of(0), outcomes.episodes) == (None, 0)
        stand(sim, 1, 45.0)
        sim.state.body_positions.to_numpy()[2, 0, 1] = 45.0  # the other one stays
        for _ in range(2):
            sim.step()
            outcomes.add()
        assert (outcomes.episodes, outcomes.successes) == (3, 1)
        assert [outcomes.of(world) for world in range(3)] == [False, True, False]
        assert outcomes.ended.all()
        sim.step()
        outcomes.add()
        assert outcomes.episodes == 3
        assert not outcomes.ended.any()


def test_worlds_whose_agents_are_all_out_are_named_and_count_as_successes() -> None:
    with doorstep.Simulator(3) as sim:
        outcomes = Outcomes(sim)
        stand(sim, 1, 45.0)
        sim.step()
        outcomes.add()
        assert outcomes.all_out() == [1]
        outcomes.add_successes([1])
        assert (outcomes.episodes, outcomes.successes, outcomes.of(1)) == (1, 1, True)
        assert outcomes.ended.tolist() == [False, True, False]


def test_in_a_level_with_a_goal_only_the_goal_is_a_success() -> None:
    level = doorstep.levels.GeneratedLevel(goal=GOAL, episode_length=3, name="near")
    with doorstep.Simulator(2, levels=[level]) as sim:
        outcomes = Outcomes(sim)
        assert outcomes.level(0).name == "near"
        stand(sim, 0, 45.0)
        stand(sim, 1, 7.0)
        for _ in range(3):
            sim.step()
            outcomes.add()
            assert outcomes.all_out() == []
        assert (outcomes.of(0), outcomes.of(1)) == (False, True)


def test_a_level_without_goal_and_door_cannot_succeed() -> None:
    with doorstep.Simulator(1, levels=[OPEN.replace(episode_length=1)]) as sim:
        outcomes = Outcomes(sim)
        stand(sim, 0, 1000.0)
        sim.step()
        outcomes.add()
        assert (outcomes.of(0), outcomes.all_out()) == (False, [])
        assert outcomes.ended.all()
