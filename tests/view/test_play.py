"""What steps the simulator, and how fast: the pace, live play and recorded play. Episodes that end are counted, and
those that succeeded."""

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

import doorstep
from doorstep.levels import GeneratedLevel, Goal, Level
from doorstep.policy import load_policy
from doorstep.policy.playing import Player
from doorstep.recording import Recording, RecordingWriter
from doorstep.viewer.outcomes import Outcomes
from doorstep.viewer.play import LivePlay, Pace, RecordedPlay


def test_as_many_steps_are_due_as_time_has_passed_and_late_clocks_do_not_catch_up():
    pace = Pace(20)
    taken = [pace.take(now) for now in np.arange(0, 2, 0.001)]
    assert (sum(taken), max(taken), pace.wait(1.99)) == (40, 1, pytest.approx(0.01, abs=1e-9))
    for rate, times, steps in (
        (1000, (0.0, 0.0105, 60.0), [1, 10, 1]),
        (0.5, (0.0, 1.0, 1.9, 2.0, 3.9, 4.0), [1, 0, 0, 1, 0, 1]),
        (0.5, (0.0, 3.5, 4.0), [1, 1, 1]),  # late by less than a period
    ):
        pace = Pace(rate)
        assert list(map(pace.take, times)) == steps
    pace.rate = 0  # nothing is ever due
    pace.restart()
    assert (pace.take(5.0), pace.wait(5.0)) == (0, None)


def test_the_player_moves_one_agent_and_the_policy_the_others():
    with doorstep.Simulator(2, seed=3) as sim:
        play = LivePlay(sim, Player(load_policy("idle"), sim).act)
        play.player = (1, 0, lambda: (3, 2, 4, 0))
        play.step()
        expected = np.tile((0, 0, 2, 0), (2, 2, 1))
        expected[1, 0] = (3, 2, 4, 0)
        assert (sim.actions.copy_to_host().tolist(), play.position) == (expected.tolist(), 1)


def test_a_jump_leads_to_what_stepping_leads_to(tmp_path):
    actions = np.random.default_rng(1).integers(0, doorstep.ACTIONS, (330, 5, 2, 4), np.int32)
    hashes, rewards = [], []
    with doorstep.Simulator(5, seed=9) as sim, RecordingWriter(tmp_path / "run.rec", sim) as writer:
        hashes.append(sim.hash())
        for number, step in enumerate(actions):
            sim.actions = step
            sim.resets[3] = int(number == 33)
            writer.step()
            if number == 44:
                writer.reset([1])
            hashes.append(sim.hash())
            rewards.append(sim.rewards.copy_to_host())
    with Recording(tmp_path / "run.rec") as recording, doorstep.Simulator(5, seed=9) as sim:
        recorded = RecordedPlay(sim, recording)
        assert recorded.length == 330
        for goal in (300, 20, 21, 19, 0, 45, 44, 199, 200, 201, 330, 330, 60, 40, 41):
            recorded.seek(goal)
            assert (recorded.position, sim.hash()) == (goal, hashes[goal])
            if goal:
                assert (sim.rewards.copy_to_host() == rewards[goal - 1]).all()
        for beyond, reached in ((-5, 0), (10**9, 330)):
            recorded.seek(beyond)
            assert (recorded.position, sim.hash()) == (reached, hashes[reached])
        recorded.step()
        assert (recorded.position, sim.hash()) == (330, hashes[330])


# ---- Outcomes

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
