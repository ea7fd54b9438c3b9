"""Asynchronous steps and the events that tell their end."""

import pickle

import pytest

import doorstep


def test_an_asynchronous_step_does_what_a_step_does() -> None:
    with doorstep.Simulator(64) as one, doorstep.Simulator(64) as other:
        for _ in range(5):
            one.step()
            assert other.step_async().wait()
        assert one.hash() == other.hash()
        assert other.step_count == 5


def test_an_event_is_done_after_the_simulators_wait() -> None:
    with doorstep.Simulator(64) as sim:
        event = sim.step_async()
        sim.wait()
        assert event.done
        assert event.wait(0)
        assert repr(event) == "StepEvent(done)"


def test_wait_without_a_running_step_returns() -> None:
    with doorstep.Simulator(2) as sim:
        sim.wait()


def test_asynchronous_steps_follow_one_another() -> None:
    with doorstep.Simulator(16) as sim:
        events = [sim.step_async() for _ in range(10)]
        sim.wait()
        assert sim.step_count == 10
        assert all(event.done for event in events)


def test_an_event_outlives_its_simulator() -> None:
    sim = doorstep.Simulator(256)
    event = sim.step_async()
    sim.close()
    del sim
    assert event.wait(10.0)


def test_a_dropped_event_leaves_the_step_running() -> None:
    with doorstep.Simulator(16) as sim:
        sim.step_async()
        sim.wait()
        assert sim.step_count == 1


def test_an_event_cannot_be_pickled() -> None:
    with doorstep.Simulator(2) as sim, pytest.raises(TypeError, match="cannot be copied or pickled"):
        pickle.dumps(sim.step_async())
