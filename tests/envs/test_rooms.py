"""Rooms: what every environment is a layer over, beyond what the tests of all environments show."""

import numpy as np
import pytest
from tests.envs.histories import actions_of
from tests.refuses import raising, refuses

import doorstep
from doorstep.envs._arrays import host_arrays
from doorstep.envs._rooms import Rooms

WORLDS = 3
ACTIONS = actions_of(5, 10, WORLDS, 2).reshape(10, WORLDS, -1)


def rooms(num_rows=WORLDS, *, rules=None, **options):
    return Rooms(num_rows, rules={"num_threads": 1, "episode_length": 4, "seed": 0, **(rules or {})}, **options)


def test_one_step_runs_at_a_time_and_is_a_step_that_is_awaited():
    running, whole = (rooms(1000, autoreset="same_step") for _ in range(2))  # whose steps take a millisecond
    np.testing.assert_array_equal(running.start(1), whole.start(1))
    refuses("no step has begun", running.finish, error=doorstep.StateError)
    everywhere = np.ones(1000, bool)
    for taken in actions_of(5, 8, 1000, 2).reshape(8, 1000, -1):
        running.begin(taken)
        for call in (running.begin, running.step, lambda _: running.start(rows=everywhere)):
            refuses("a step is running", call, taken, error=doorstep.StateError)
        for one, other in zip(running.finish(), whole.step(taken), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", [None, 7])
def test_starting_anew_drops_the_step_that_runs(seed):
    dropping, other = rooms(), rooms()
    for each in (dropping, other):
        each.start(7)
    dropping.begin(ACTIONS[0])
    np.testing.assert_array_equal(dropping.start(seed), other.start(seed))
    np.testing.assert_array_equal(dropping.step(ACTIONS[0]).observation, other.step(ACTIONS[0]).observation)


def test_cameras_show_no_end_of_an_episode():
    views = rooms(observations="pixels", rules={"cameras": doorstep.Cameras(width=8, height=6)})
    views.start()
    refuses("cameras", views.final_observation, np.ones(WORLDS, bool), error=doorstep.StateError)


def test_a_failed_reseeding_leaves_all_as_it_was(monkeypatch):
    made = rooms()
    made.start(3)
    before, simulator = made.simulator.hash(), made.simulator

    with monkeypatch.context() as patched:
        patched.setattr(doorstep.Simulator, "from_config", raising(doorstep.OutOfMemoryError, "no memory is left"))
        with pytest.raises(doorstep.OutOfMemoryError):
            made.start(4)
    assert made.simulator is simulator
    assert made.simulator.hash() == before
    made.step(ACTIONS[0])


def test_a_step_that_the_simulator_refuses_ends_no_episode():
    refusing, other = (rooms(rules={"action_check": "raise", "episode_length": 2}) for _ in range(2))
    good = np.zeros((WORLDS, 8), int)
    for each in (refusing, other):
        each.start(1)
        each.step(good)
        assert each.step(good).ended.all()
    for _ in range(2):
        with pytest.raises(doorstep.ArgumentError):
            refusing.step(np.full((WORLDS, 8), 100))
    for _ in range(4):
        for one, expected in zip(refusing.step(good), other.step(good), strict=True):
            np.testing.assert_array_equal(one, expected)


def test_arrays_of_the_host_are_of_worlds_on_the_cpu():
    refuses("PyTorch", host_arrays, "cuda:0", argument="device")
