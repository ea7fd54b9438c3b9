"""sim.step() beside the same C call through nanobind and through ctypes: one world, its work subtracted."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Iterator
from itertools import repeat
from typing import Protocol

from tests.benchmarks.interop.compiling import load_nanobind_module
from tests.benchmarks.interop.measuring import Row, Side, at_most, each_round, faster_than

import doorstep
from doorstep._native import load

CALLS = 10_000


class Steps(Protocol):
    def step(self) -> None: ...


class CtypesStepper:
    """A plain binding: the function is looked up once, the handle is passed, the status is looked at."""

    __slots__ = ("_function", "_simulator")

    def __init__(self, library: str, simulator: int) -> None:
        self._function = ctypes.CDLL(library).ds_simulator_step
        self._function.argtypes = (ctypes.c_void_p,)
        self._simulator = simulator

    def step(self) -> None:
        if self._function(self._simulator):
            raise ValueError("the step failed")


def steps_of(stepper: Steps) -> Side:
    """`stepper.step()` as users write it, in a loop of Python's."""

    def side() -> float:
        begin = time.process_time_ns()
        for _ in repeat(None, CALLS):
            stepper.step()
        return (time.process_time_ns() - begin) / CALLS

    return side


def empty_loop() -> float:
    begin = time.process_time_ns()
    for _ in repeat(None, CALLS):
        pass
    return (time.process_time_ns() - begin) / CALLS


def rows(rounds: int) -> Iterator[Row]:
    peer = load_nanobind_module("nanobind_peer.cpp")
    with doorstep.Simulator(1, num_threads=1, observations="by_name") as sim:
        simulator = sim._session.handle
        address = ctypes.cast(load().ds_simulator_step, ctypes.c_void_p).value
        sides: dict[str, Side] = {
            "work": lambda: float(peer.nanoseconds_per_step(address, simulator, CALLS)),
            "loop": empty_loop,
            "doorstep": steps_of(sim),
            "nanobind": steps_of(peer.Stepper(address, simulator)),
            "ctypes": steps_of(CtypesStepper(doorstep._native.LIBRARY_PATH, simulator)),
        }
        taken = each_round(rounds, sides)
    rest = [work + loop for work, loop in zip(taken["work"], taken["loop"], strict=True)]

    def overhead(name: str) -> float:
        return statistics.median(total - part for total, part in zip(taken[name], rest, strict=True))

    name, value = "call overhead of `sim.step()`", overhead("doorstep")
    yield at_most(name, value, "nanobind method that releases the GIL", overhead("nanobind"), 1.5)
    yield faster_than(name, value, "method that calls through ctypes", overhead("ctypes"), 3)
