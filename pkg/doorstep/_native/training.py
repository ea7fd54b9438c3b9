"""Training kernels and batches of the C API, on addresses that the caller has checked."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from doorstep._native._generated import Advantages, Batch, DeviceKind, Dtype, MultiDiscrete
from doorstep._native.library import load
from doorstep._native.status import check


class Place(NamedTuple):
    """Where the arrays of a call lie, and the CUstream that its work goes to."""

    device_kind: DeviceKind
    device_index: int
    stream: int


def prepare_training(device_index: int) -> None:
    """Loads the training kernels on a CUDA device for the rest of the process."""
    check(load().ds_training_prepare(device_index))


def prepare_batches(device_index: int, num_agents: int) -> None:
    """Loads what steps of worlds need on a CUDA device for the rest of the process."""
    batch = Batch(ctypes.sizeof(Batch), DeviceKind.CUDA, device_index, num_agents=num_agents)
    check(load().ds_batch_prepare(ctypes.byref(batch)))


def estimate_advantages(
    function: str,
    place: Place,
    dtype: Dtype,
    extents: tuple[int, int],
    addresses: Mapping[str, int],
    numbers: Mapping[str, float],
) -> None:
    """ds_generalized_advantages or ds_v_trace. Addresses and numbers are fields of ds_advantages."""
    call = Advantages(ctypes.sizeof(Advantages), *place, *extents, dtype, **addresses, **numbers)
    check(getattr(load(), function)(ctypes.byref(call)))


def run_multi_discrete(
    function: str, place: Place, dtype: Dtype, num_rows: int, sizes: Sequence[int], addresses: Mapping[str, int]
) -> None:
    """ds_multi_discrete_sample, _evaluate or _backward. Addresses are fields of ds_multi_discrete."""
    size = ctypes.sizeof(MultiDiscrete)
    call = MultiDiscrete(size, *place, num_rows, dtype, len(sizes), (ctypes.c_int32 * 16)(*sizes), **addresses)
    check(getattr(load(), function)(ctypes.byref(call)))


class BatchRules(NamedTuple):
    """What a step of worlds does; fields of ds_batch, in its order."""

    num_worlds: int
    num_agents: int
    episode_length: int
    auto_reset: bool
    action_check: int


class BatchMemory(NamedTuple):
    """Addresses and size of what a call on worlds is given; fields of ds_batch, in its order."""

    worlds: int
    tensors: Sequence[int]
    scratch: int
    scratch_bytes: int


def _batch(place: Place, rules: BatchRules, memory: BatchMemory) -> Batch:
    tensors = (ctypes.c_void_p * len(memory.tensors))(*memory.tensors)
    address = ctypes.cast(tensors, ctypes.c_void_p)
    batch = Batch(
        ctypes.sizeof(Batch), *place, *rules, memory.worlds, address, memory.scratch or None, memory.scratch_bytes
    )
    batch.keeps = tensors
    return batch


def create_batch(place: Place, rules: BatchRules, memory: BatchMemory, seed: int, world_offset: int) -> None:
    """ds_batch_create()."""
    check(load().ds_batch_create(ctypes.byref(_batch(place, rules, memory)), seed, world_offset))


def step_batch(place: Place, rules: BatchRules, memory: BatchMemory) -> None:
    """ds_batch_step()."""
    check(load().ds_batch_step(ctypes.byref(_batch(place, rules, memory))))
