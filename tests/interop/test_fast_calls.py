"""Builtins that the library makes of Python's own functions: they do what ctypes does, without its cost."""

from __future__ import annotations

import gc
import inspect
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from tests.interop.modes import both_modes, environment

import doorstep
from doorstep._native import fast_calls, load
from doorstep.errors import Status

RunPython = Callable[..., str]


def calls() -> dict[str, Callable[..., Any]]:
    made = fast_calls()
    assert made is not None
    return dict(made)


def test_every_supported_python_has_them() -> None:
    for name, builtin in calls().items():
        assert inspect.isbuiltin(builtin)
        assert (builtin.__name__, builtin.__module__) == (name, "doorstep._native")
        assert builtin.__doc__
        assert inspect.signature(builtin).parameters


@both_modes
def test_the_switch_decides_which_way_is_taken(mode: str, run_python: RunPython) -> None:
    code = """
import doorstep, inspect
from doorstep._native import fast_calls
sim = doorstep.Simulator(1)
print(fast_calls() is not None, inspect.isfunction(doorstep.Simulator.step))
"""
    assert run_python(code, **environment(mode)) == ("True False\n" if mode == "1" else "False True\n")


@both_modes
def test_a_step_that_users_replaced_stays_theirs(mode: str, run_python: RunPython) -> None:
    code = """
import doorstep
own = doorstep.Simulator.step
doorstep.Simulator.step = lambda self: print("replaced")
doorstep.Simulator(1).step()
doorstep.Simulator.step = own
sim = doorstep.Simulator(1)
sim.step()
print(sim.step_count)
"""
    assert run_python(code, **environment(mode)) == "replaced\n1\n"


@both_modes
def test_descriptions_outlive_the_module_that_made_them(mode: str, run_python: RunPython) -> None:
    code = """
import copy, gc, importlib, sys, numpy
from doorstep import interop

def describe(count):
    return [interop.describe(numpy.zeros(3)) for _ in range(count)]

first, kept = type(describe(1)[0]), describe(100)
importlib.reload(interop)
second = type(describe(1)[0])
before = sys.getrefcount(first), sys.getrefcount(second)
kept.clear()
gc.collect()
after = sys.getrefcount(first), sys.getrefcount(second)
print(first is not second, before[0] - after[0], before[1] - after[1])
description, = describe(1)
print(copy.copy(description) is description, copy.deepcopy([description])[0] is description)
try:
    interop.TensorDescription()
except TypeError as error:
    print(error)
"""
    expected = "True 100 0\nTrue True\ndescriptions come from describe() and describe_many()\n"
    assert run_python(code, **environment(mode)) == expected


def test_a_step_makes_no_frame() -> None:
    events = []
    with doorstep.Simulator(1) as sim:
        sys.setprofile(lambda frame, event, argument: events.append((event, getattr(argument, "__name__", ""))))
        sim.step()
        sys.setprofile(None)
        assert sim.step_count == 1
    assert events[:2] == [("c_call", "step"), ("c_return", "step")]


BEHAVIOUR = """
import doorstep, inspect, gc

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
"""


def test_both_ways_behave_alike(run_python: RunPython) -> None:
    fast, plain = (run_python(BEHAVIOUR, **environment(mode)) for mode in ("1", "0"))
    assert fast == plain
    lines = fast.splitlines()
    assert lines[:2] == ["True", "['self'] []"]
    assert lines[2].startswith("3 ")
    assert lines[3].startswith("('ArgumentError', 'actions[1, 1, 3] is 2; it must be 0 to 1")
    assert lines[4].count("'ClosedError'") == 2
    assert lines[5:] == ["TypeError", "TypeError", "AttributeError", "1", "0"]


def test_a_simulator_dies_with_its_last_reference() -> None:
    gc.collect()
    gc.disable()
    try:
        sim = doorstep.Simulator(1)
        sim.step()
        alive = weakref.ref(sim)
        del sim
        assert alive() is None
    finally:
        gc.enable()


def test_a_misspelt_attribute_is_an_error() -> None:
    with doorstep.Simulator(1) as sim:
        with pytest.raises(AttributeError):
            sim.stepp()  # type: ignore[attr-defined]
        with pytest.raises(AttributeError):
            sim.step = None  # type: ignore[assignment,method-assign]


@pytest.mark.parametrize("handle", [-1, 2**64, "1", None, 1.0])
def test_what_is_no_handle_is_refused(handle: object) -> None:
    with pytest.raises((TypeError, OverflowError)):
        calls()["step"](handle)


@pytest.mark.parametrize("handle", [0, 1, 2**64 - 1])
def test_a_handle_of_nothing_is_a_closed_simulator(handle: int) -> None:
    with pytest.raises(doorstep.ClosedError):
        calls()["step"](handle)


def test_a_step_that_is_given_actions_says_where_they_go() -> None:
    with doorstep.Simulator(1) as sim:
        before = sim.hash()
        with pytest.raises(TypeError, match=r"takes no arguments: set sim\.actions, then call sim\.step\(\)"):
            sim.step(sim.actions)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="takes no keyword arguments"):
            sim.step(actions=sim.actions)  # type: ignore[call-arg]
        assert sim.hash() == before


def test_a_wrong_number_of_arguments_is_refused() -> None:
    with pytest.raises(TypeError, match=r"step_method\(\) takes 2 arguments, not 1"):
        calls()["step_method"](doorstep.Simulator)


def test_a_million_steps_leave_nothing_behind(run_python: RunPython) -> None:
    code = """
import doorstep, resource, sys
from doorstep._native import fast_calls

def counts():
    return [sys.getrefcount(thing) for thing in (sim, sim._step_handle, None, fast_calls()["step"])]

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

def steps(number):
    for _ in range(number):
        sim.step()

def failures(number):
    for _ in range(number):
        try:
            closed.step()
        except doorstep.ClosedError:
            pass

sim, closed = doorstep.Simulator(1, num_threads=1), doorstep.Simulator(1)
closed.close()
steps(10_000), failures(1_000)
before, memory = counts(), resident()
steps(1_000_000), failures(20_000)
after = counts()
print([abs(now - then) < 100 for now, then in zip(after, before)], resident() - memory < 1 << 18)
"""
    assert run_python(code, **environment("1")) == "[True, True, True, True] True\n"


ACTING = """
import doorstep, hashlib, numpy
policy = doorstep.load_policy("trained", sampling=doorstep.policy.SamplingParams(seed=1))
observations = numpy.random.default_rng(0).standard_normal((16, 2, policy.num_inputs), numpy.float32)
print(policy.state_size)
print(hashlib.sha256(b"".join(policy.act(observations).tobytes() for _ in range(20))).hexdigest())
"""


def test_policies_act_alike_in_both_ways(run_python: RunPython) -> None:
    fast, plain = (run_python(ACTING, **environment(mode)) for mode in ("1", "0"))
    assert fast == plain
    assert fast.startswith("0\n")  # it has no memory: its calls are prepared


@pytest.mark.slow
def test_a_million_calls_of_a_policy_leave_nothing_behind(run_python: RunPython) -> None:
    pytest.importorskip("torch")
    code = """
import doorstep, numpy, resource, sys, torch
from doorstep._native import fast_calls

def counts():
    kept = [observations, tensor, policy, policy._prepared, policy._count_step, fast_calls()["act"], None, True, False]
    return [sys.getrefcount(thing) for thing in kept]

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

def calls(number):
    for _ in range(number):
        policy.act(observations)
        policy.act(tensor)

def misfits(number):
    for _ in range(number):
        policy.act(other)
        try:
            policy.act(wrong)
        except doorstep.ArgumentError:
            pass
        policy.act(observations)

policy = doorstep.load_policy(torch.nn.Linear(94, 19))
observations, tensor, other = numpy.zeros((1, 1, 94), numpy.float32), torch.zeros(1, 1, 94), numpy.zeros((2, 94), "f4")
wrong = numpy.zeros((1, 1, 94))
calls(10_000), misfits(1_000)
before, memory = counts(), resident()
calls(500_000), misfits(10_000)
after = counts()
print([abs(now - then) < 100 for now, then in zip(after, before)], resident() - memory < 1 << 18)
"""
    assert run_python(code, **environment("1")) == f"{[True] * 9} True\n"


@pytest.mark.parametrize("arguments", [(), (0,), (0, 1, 2, 3)])
def test_a_wrong_number_of_arguments_of_act_is_refused(arguments: tuple[int, ...]) -> None:
    with pytest.raises(TypeError, match=rf"act\(\) takes 5 arguments, not {len(arguments)}"):
        calls()["act"](*arguments)


def test_python_functions_that_are_not_visible_are_said_aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(*_: object) -> int:
        status: int = load().ds_get_api(0, 1)  # fails with the same status
        return status

    class Library:
        def __init__(self, _: str) -> None:
            self.ds_python_bind = bind

    assert load().ds_get_api(0, 1) == Status.LIBRARY
    monkeypatch.setattr("ctypes.PyDLL", Library)
    with pytest.warns(RuntimeWarning, match="DOORSTEP_FAST_CALLS=0"):
        assert fast_calls.__wrapped__() is None
