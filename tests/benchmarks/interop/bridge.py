"""The tensor bridge: tensors of PyTorch read from C and from Python, and made over a simulator's memory."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import torch
from tests.benchmarks.interop.compiling import FOLDER, load_library
from tests.benchmarks.interop.measuring import Row, Side, faster_than, medians, nanoseconds_at_most, per_call

import doorstep
from doorstep import interop
from doorstep._native import load

CALLS = 20_000
MANY = 8
HEADERS = FOLDER.parents[2] / "native" / "include"


def in_c(tensors: list[Any], signatures: bool) -> Side:
    """ds_python_read_tensors() for all tensors at once, in a loop of C; per tensor."""
    function = load_library("bridge_loops.cpp", f"-I{HEADERS}").nanoseconds_per_tensor
    function.restype = ctypes.c_double
    function.argtypes = (ctypes.c_void_p,) * 3 + (ctypes.c_uint64, ctypes.c_int)
    read = ctypes.cast(load().ds_python_read_tensors, ctypes.c_void_p)
    sign = ctypes.cast(load().ds_python_signature, ctypes.c_void_p) if signatures else None
    objects = (ctypes.py_object * len(tensors))(*tensors)
    return lambda: float(function(read, sign, objects, len(tensors), CALLS))


def per_call_of(function: Callable[[Any], object], argument: Any, calls: int = CALLS) -> Side:
    """As per_call(), for one argument, without a Python function around it."""

    def side() -> float:
        begin = time.process_time_ns()
        for _ in repeat(None, calls):
            function(argument)
        return (time.process_time_ns() - begin) / calls

    return side


def attributes(tensors: list[Any]) -> list[tuple[Any, ...]]:
    return [(t.data_ptr(), t.shape, t.stride(), t.dtype, t.device) for t in tensors]


def rows(rounds: int) -> Iterator[Row]:
    tensors = [torch.zeros(64, 4 + i) for i in range(MANY)]
    one, view = tensors[0], tensors[0][1:]
    with doorstep.Simulator(4, num_threads=1) as sim:
        rewards = sim.rewards
        taken = medians(
            rounds,
            {
                "c": in_c(tensors, signatures=False),
                "c, signed": in_c(tensors, signatures=True),
                "c, view": in_c([view], signatures=False),
                "describe": per_call_of(interop.describe, one),
                "describe_many": per_call_of(interop.describe_many, tensors),
                "data_ptr": per_call(one.data_ptr, CALLS),
                "attributes": per_call_of(attributes, tensors),
                "to_torch": per_call(rewards.to_torch, CALLS // 10),
                "from_dlpack": per_call_of(torch.utils.dlpack.from_dlpack, rewards, CALLS // 10),
            },
        )
    data_ptr = taken["data_ptr"]
    yield nanoseconds_at_most("a tensor read in C", taken["c"], "data_ptr() from Python", data_ptr, 60)
    yield nanoseconds_at_most("a view read in C", taken["c, view"], "data_ptr() from Python", data_ptr, 60)
    signing = taken["c, signed"] - taken["c"]
    yield nanoseconds_at_most("its signature, on top", signing, "data_ptr() from Python", data_ptr, 15)
    yield nanoseconds_at_most("`describe(tensor)`", taken["describe"], "data_ptr() from Python", data_ptr, 100)
    name = f"`describe_many({MANY} tensors)`"
    yield faster_than(name, taken["describe_many"], "their attributes", taken["attributes"], 5)
    yield faster_than("`sim.rewards.to_torch()`", taken["to_torch"], "torch.from_dlpack()", taken["from_dlpack"], 3)
