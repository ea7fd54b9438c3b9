"""A step within jax.lax.scan beside what XLA takes for an elementwise operation on the same state: one world, the work
of the step subtracted."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from tests.benchmarks.interop.compiling import load_nanobind_module
from tests.benchmarks.interop.measuring import Row, Side, at_most, each_round

import doorstep
import doorstep.jax
from doorstep._native import load

LENGTH = 2_000  # iterations of a scan


def scan_of(body: Callable[[Any], Any], start: Any) -> Side:
    """Nanoseconds of an iteration."""
    program = jax.jit(lambda carry: jax.lax.scan(lambda carry, _: (body(carry), None), carry, None, length=LENGTH)[0])
    jax.block_until_ready(program(start))

    def side() -> float:
        begin = time.process_time_ns()
        jax.block_until_ready(program(start))
        return (time.process_time_ns() - begin) / LENGTH

    return side


def rows(rounds: int) -> Iterator[Row]:
    peer = load_nanobind_module("nanobind_peer.cpp")
    with doorstep.Simulator(1, num_threads=1) as sim:
        handle, address = sim._session.handle, ctypes.cast(load().ds_simulator_step, ctypes.c_void_p).value
        rooms = doorstep.jax.make(sim.config)
        state, actions = rooms.init(0), jnp.asarray(sim.actions.to_numpy())
        sides: dict[str, Side] = {
            "work": lambda: float(peer.nanoseconds_per_step(address, handle, LENGTH)),
            "step": scan_of(lambda state: rooms.step(state, actions), state),
            "operation": scan_of(lambda state: jax.tree_util.tree_map(lambda array: array * 3 + 1, state), state),
        }
        taken = each_round(rounds, sides)
    beside = [step - work for step, work in zip(taken["step"], taken["work"], strict=True)]
    yield at_most(
        "a step within `jax.lax.scan`",
        statistics.median(beside),
        "elementwise operation of XLA on the same state",
        statistics.median(taken["operation"]),
        3,
    )
