"""Calls of the training kernels with arrays of numpy, on either device."""

import ctypes
from contextlib import contextmanager

import numpy as np
from tests.cuda.users_memory import filled

import doorstep
from doorstep import cuda
from doorstep._native import check, load
from doorstep._native._generated import Advantages, Dtype, MultiDiscrete

SIZES = doorstep.ACTIONS
DTYPES = {"float32": Dtype.FLOAT32, "float64": Dtype.FLOAT64}


@contextmanager
def prepared():
    check(load().ds_training_prepare(0))
    try:
        yield
    finally:
        check(load().ds_training_release(0))


def advantages(dtype, num_steps, num_columns):
    """A call without addresses, what it reads, and what it writes."""
    generator, shape = np.random.default_rng(0), (num_steps, num_columns)
    floats = ("rewards", "values", "next_values", "log_ratios")
    inputs = {name: generator.normal(size=shape).astype(dtype) for name in floats}
    inputs |= {name: (generator.random(shape) < 0.1).astype(np.uint8) for name in ("terminations", "truncations")}
    call = Advantages(ctypes.sizeof(Advantages), num_steps=num_steps, num_columns=num_columns, dtype=DTYPES[dtype])
    call.gamma, call.gae_lambda, call.rho_clip, call.c_clip = 0.99, 0.95, 1.0, 1.0
    return call, inputs, {name: np.empty(shape, dtype) for name in ("advantages", "targets")}


def multi_discrete(dtype, num_rows, *, draws):
    generator = np.random.default_rng(0)
    inputs = {"logits": generator.normal(size=(num_rows, sum(SIZES))).astype(dtype)}
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


def run_on_cpu(name, call, inputs, results):
    found = {field: array.copy() for field, array in results.items()}
    for field, array in (inputs | found).items():
        setattr(call, field, array.ctypes.data)
    check(getattr(load(), f"ds_{name}")(ctypes.byref(call)))
    return found


def on_gpu(call, inputs, results, stream):
    """What the call reads and writes, in buffers."""
    call.device_kind, call.stream = 1, stream.handle
    buffers = {field: filled(array, stream=stream) for field, array in (inputs | results).items()}
    for field, buffer in buffers.items():
        setattr(call, field, buffer.pointer)
    return buffers


def run_on_gpu(name, call, inputs, results):
    buffers = on_gpu(call, inputs, results, cuda.Stream())
    check(getattr(load(), f"ds_{name}")(ctypes.byref(call)))
    return {field: buffers[field].copy_to_host(array.dtype).reshape(array.shape) for field, array in results.items()}


def assert_same(name, made):
    expected, found = run_on_cpu(name, *made), run_on_gpu(name, *made)
    for field, array in expected.items():
        assert found[field].tobytes() == array.tobytes(), field
