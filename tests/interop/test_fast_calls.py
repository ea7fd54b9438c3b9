"""Builtins that the library makes of Python's own functions: they do what ctypes does, without its cost."""

from tests.interop.modes import environment
from tests.refuses import refuses

import doorstep
from doorstep._native import fast_calls

BEHAVIOUR = """
import gc, hashlib, inspect
import numpy
import doorstep
from doorstep._native import fast_calls

own = doorstep.Simulator.step
doorstep.Simulator.step = lambda self: print("replaced by users")
doorstep.Simulator(1).step()
doorstep.Simulator.step = own

def outcome(function):
    try:
        return function()
    except doorstep.DoorstepError as error:
        return type(error).__name__, str(error), error.argument, error.hint, error.status.name

before = doorstep.Simulator.step
sim = doorstep.Simulator(2, action_check="raise")
print(inspect.getdoc(before) == inspect.getdoc(doorstep.Simulator.step) == inspect.getdoc(sim.step))
print(list(inspect.signature(doorstep.Simulator.step).parameters), list(inspect.signature(sim.step).parameters))
before(sim), doorstep.Simulator.step(sim), sim.step()
print(sim.step_count, sim.hash())
sim.actions.to_numpy()[1, 1, 3] = 2
print(outcome(sim.step), sim.step_count)
step = sim.step
sim.close()
print(outcome(step), outcome(sim.step))
for wrong in (lambda: doorstep.Simulator.step(), lambda: step(1), lambda: object.__new__(doorstep.Simulator).step()):
    try:
        wrong()
    except (TypeError, AttributeError) as error:
        print(type(error).__name__)
gc.disable()
step = doorstep.Simulator(2).step
step()
print(doorstep.live_counts()["simulator"])
del step
print(doorstep.live_counts()["simulator"])
gc.enable()

# ---- Policies

policy = doorstep.load_policy("trained", sampling=doorstep.policy.SamplingParams(seed=1))
observations = numpy.random.default_rng(0).standard_normal((16, 2, policy.num_inputs), numpy.float32)
print(hashlib.sha256(b"".join(policy.act(observations).tobytes() for _ in range(20))).hexdigest())
print(fast_calls() is not None, inspect.isfunction(doorstep.Simulator.step))
"""


def test_both_ways_behave_alike(run_python):
    fast, plain = (run_python(BEHAVIOUR, **environment(mode)).splitlines() for mode in ("1", "0"))
    assert (fast.pop(), plain.pop()) == ("True False", "False True")  # the switch decides which way is taken
    assert fast == plain
    assert fast[:3] == ["replaced by users", "True", "['self'] []"]
    assert fast[3].startswith("3 ")
    assert fast[4].startswith("('ArgumentError', 'actions[1, 1, 3] is 2; it must be 0 to 1")
    assert fast[5].count("'ClosedError'") == 2
    assert fast[6:11] == ["TypeError", "TypeError", "AttributeError", "1", "0"]


def test_replacing_a_step_and_actions_in_the_wrong_place_are_errors():
    with doorstep.Simulator(1) as sim:
        before = sim.hash()
        refuses(None, setattr, sim, "step", None, error=AttributeError)
        refuses(r"no arguments: set sim\.actions, then call sim\.step\(\)", sim.step, sim.actions, error=TypeError)
        refuses("takes no keyword arguments", sim.step, error=TypeError, actions=sim.actions)
        assert sim.hash() == before


def test_what_is_no_handle_or_a_wrong_number_of_arguments_is_refused():
    calls = fast_calls()
    for handle in (-1, 2**64, "1", None, 1.0):
        refuses(None, calls["step"], handle, error=(TypeError, OverflowError))
    for handle in (0, 1, 2**64 - 1):  # of nothing
        refuses(None, calls["step"], handle, error=doorstep.ClosedError)
    refuses(r"step_method\(\) takes 2 arguments, not 1", calls["step_method"], doorstep.Simulator, error=TypeError)
    for arguments in ((), (0,), (0, 1, 2, 3)):
        refuses(rf"act\(\) takes 5 arguments, not {len(arguments)}", calls["act"], *arguments, error=TypeError)
