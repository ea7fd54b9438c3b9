"""Calls of the training kernels with arrays of numpy, on either device."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

import doorstep
from doorstep import cuda
from doorstep._native import check, load
from doorstep._native._generated import Advantages, Dtype, MultiDiscrete

Array = npt.NDArray[Any]
Arrays = dict[str, Array]

SIZES = doorstep.ACTIONS
DTYPES = {"float32": Dtype.FLOAT32, "float64": Dtype.FLOAT64}


@contextmanager
def prepared() -> Iterator[None]:
    check(load().ds_training_prepare(0))
    yield
    check(load().ds_training_release(0))


def advantages(dtype: str, num_steps: int, num_columns: int) -> tuple[Advantages, Arrays, Arrays]:
    """A call without addresses, what it reads, and what it writes."""
    generator, shape = np.random.default_rng(0), (num_steps, num_columns)
    floats = ("rewards", "values", "next_values", "log_ratios")
    inputs: Arrays = {name: generator.normal(size=shape).astype(dtype) for name in floats}
    inputs |= {name: (generator.random(shape) < 0.1).astype(np.uint8) for name in ("terminations", "truncations")}
    call = Advantages(ctypes.sizeof(Advantages), num_steps=num_steps, num_columns=num_columns, dtype=DTYPES[dtype])
    call.gamma, call.gae_lambda, call.rho_clip, call.c_clip = 0.99, 0.95, 1.0, 1.0
    return call, inputs, {name: np.empty(shape, dtype) for name in ("advantages", "targets")}


def multi_discrete(dtype: str, num_rows: int, *, draws: bool) -> tuple[MultiDiscrete, Arrays, Arrays]:
    generator = np.random.default_rng(0)
    inputs: Arrays = {"logits": generator.normal(size=(num_rows, sum(SIZES))).astype(dtype)}
    inputs["uniforms"] = generator.random((num_rows, len(SIZES))).astype(dtype)
    for name in ("log_probability_gradients", "entropy_gradients"):
        inputs[name] = generator.normal(size=num_rows).astype(dtype)
    actions = generator.integers(0, SIZES, (num_rows, len(SIZES)), dtype=np.int32)
    results = {name: np.empty(num_rows, dtype) for name in ("log_probabilities", "entropies")}
    results["logit_gradients"] = np.empty_like(inputs["logits"])
    (results if draws else inputs)["actions"] = actions
    call = MultiDiscrete(ctypes.sizeof(MultiDiscrete), num_rows=num_rows, dtype=DTYPES[dtype])
    call.num_components, call.sizes = len(SIZES), (ctypes.c_int32 * 16)(*SIZES)
    return call, inputs, results


def run_on_cpu(name: str, call: Any, inputs: Arrays, results: Arrays) -> Arrays:
    found = {field: array.copy() for field, array in results.items()}
    for field, array in (inputs | found).items():
        setattr(call, field, array.ctypes.data)
    check(getattr(load(), f"ds_{name}")(ctypes.byref(call)))
    return found


def run_on_gpu(name: str, call: Any, inputs: Arrays, results: Arrays) -> Arrays:
    stream = cuda.Stream()
    call.device_kind, call.stream = 1, stream.handle
    buffers = {field: cuda.Buffer(array.nbytes, stream=stream) for field, array in (inputs | results).items()}
    for field, array in inputs.items():
        buffers[field].copy_from_host(array)
    for field, buffer in buffers.items():
        setattr(call, field, buffer.pointer)
    check(getattr(load(), f"ds_{name}")(ctypes.byref(call)))
    return {field: buffers[field].copy_to_host(array.dtype).reshape(array.shape) for field, array in results.items()}


def assert_same(name: str, made: tuple[Any, Arrays, Arrays]) -> None:
    expected, found = run_on_cpu(name, *made), run_on_gpu(name, *made)
    for field, array in expected.items():
        assert found[field].tobytes() == array.tobytes(), field
