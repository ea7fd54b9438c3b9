"""Episodes that end are counted, and those that succeeded."""

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

import doorstep
from doorstep.levels import GeneratedLevel, Goal, Level
from doorstep.viewer.outcomes import Outcomes

OPEN = Level.from_ascii("""
    #######
    #.....#
    #.1.2.#
    #.....#
    #######
""")


def stand(sim, world, y):
    """Puts all agents of a world there."""
    sim.state.body_positions.to_numpy()[world, : sim.num_agents, 1] = y


def step(sim, outcomes):
    sim.step()
    outcomes.add()


def test_an_episode_succeeds_if_all_agents_were_beyond_the_last_door_which_is_told_at_once_and_counted_at_its_end():
    with doorstep.Simulator(3, episode_length=2) as sim:
        outcomes = Outcomes(sim)
        assert (outcomes.of(0), outcomes.episodes) == (None, 0)
        stand(sim, 1, 45.0)
        sim.state.body_positions.to_numpy()[2, 0, 1] = 45.0  # the other one stays
        step(sim, outcomes)
        assert (outcomes.all_out(), outcomes.episodes) == ([1], 0)
        step(sim, outcomes)
        assert (outcomes.episodes, outcomes.successes) == (3, 1)
        assert [outcomes.of(world) for world in range(3)] == [False, True, False]
        assert outcomes.ended.all()
        step(sim, outcomes)
        assert (outcomes.episodes, outcomes.ended.any()) == (3, False)
        outcomes.add_successes([1])  # it is reset before its end
        assert (outcomes.episodes, outcomes.successes, outcomes.of(1)) == (4, 2, True)
        assert outcomes.ended.tolist() == [False, True, False]
        outcomes.clear()
        assert (outcomes.episodes, outcomes.successes, outcomes.of(1)) == (0, 0, None)


def test_in_a_level_with_a_goal_only_the_goal_is_a_success():
    goal = Goal(min_x=-10, max_x=10, min_y=5, max_y=9)
    with doorstep.Simulator(2, levels=[GeneratedLevel(goal=goal, episode_length=3, name="near")]) as sim:
        outcomes = Outcomes(sim)
        assert outcomes.level(0).name == "near"
        stand(sim, 0, 45.0)
        stand(sim, 1, 7.0)
        for _ in range(3):
            step(sim, outcomes)
            assert outcomes.all_out() == []
        assert (outcomes.of(0), outcomes.of(1)) == (False, True)


def test_an_episode_is_judged_by_the_exit_of_its_own_level_not_of_the_next_one():
    """Every episode of one level is followed by one of the other; only in the second are agents beyond the exit."""
    table = [GeneratedLevel(episode_length=1, name="doors"), OPEN.replace(episode_length=1, name="open")]
    with doorstep.Simulator(2, levels=table) as sim:
        sim.level_weights[...] = np.eye(2, dtype=np.float32)
        sim.reset()
        outcomes = Outcomes(sim)
        for first in (0, 1, 0, 1):
            assert [outcomes.level(world).name for world in range(2)] == [table[first ^ world].name for world in (0, 1)]
            sim.level_weights[...] = np.eye(2, dtype=np.float32)[[1 - first, first]]  # what the next episodes draw
            stand(sim, slice(None), 45.0)
            step(sim, outcomes)
            assert [outcomes.of(world) for world in range(2)] == [first == 0, first == 1]
        assert (outcomes.episodes, outcomes.successes) == (8, 4)
