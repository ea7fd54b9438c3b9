"""Asynchronous steps and the events that tell their end."""

from tests.scenes import steps

import doorstep


def test_asynchronous_steps_do_what_steps_do_one_after_the_other():
    with doorstep.Simulator(64) as one, doorstep.Simulator(64) as other:
        for _ in range(5):
            one.step()
            assert other.step_async().wait()
        assert one.hash() == other.hash()
        events = [other.step_async() for _ in range(10)]
        other.step_async()  # an event that nobody keeps leaves the step running
        other.wait()
        other.wait()  # for nothing
        steps(11, one)
        assert (other.step_count, other.hash()) == (16, one.hash())
        assert all(event.done and event.wait(0) for event in events)
        assert repr(events[0]) == "StepEvent(done)"
        event = other.step_async()
    assert event.wait(10.0)  # after its simulator


def test_an_event_tells_that_its_step_is_running():
    with doorstep.Simulator(2000, num_threads=1) as sim:  # which a process that is stopped may miss, but not each time
        assert any(not sim.step_async().done for _ in range(50))
        assert any(not sim.step_async().wait(0) for _ in range(50))
        assert any(repr(sim.step_async()) == "StepEvent(running)" for _ in range(50))
