"""What steps the simulator, and how fast: the pace, live play and recorded play."""

import numpy as np
import pytest

pytest.importorskip("viser", reason="the viewer needs viser")

import doorstep
from doorstep.policy import load_policy
from doorstep.policy.playing import Player
from doorstep.recording import Recording, RecordingWriter
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
