"""Batches of the C API: worlds in the caller's memory, and the custom calls of XLA over them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from doorstep._native._generated import Batch, BatchInfo, DeviceKind, LevelRewards, Observations
from doorstep._native.calls import check, read_struct, read_value, sized
from doorstep._native.library import load


def batch_info(
    device_kind: DeviceKind,
    device_index: int,
    num_worlds: int,
    num_agents: int,
    max_levels: int = 0,
    observations: Sequence[float] | None = None,
) -> BatchInfo:
    """Sizes of a batch's tensors, in bytes. On CUDA this asks the device. observations: as of `batch_struct()`; None:
    the default parts."""
    batch = sized(
        Batch,
        device_kind=device_kind,
        device_index=device_index,
        num_worlds=num_worlds,
        num_agents=num_agents,
        max_levels=max_levels,
    )
    if observations is not None:
        _give_observations(batch, observations)
    return read_struct(load().ds_batch_get_info, BatchInfo, ctypes.byref(batch))


def batch_struct(
    num_agents: int,
    episode_length: int,
    auto_reset: bool,
    action_check: int,
    max_levels: int,
    observations: Sequence[float],
    reward: Sequence[float],
) -> Batch:
    """The rules of a batch, without its tensors.

    observations: number and scale of each part, one after the other. reward: the numbers of a ds_level_rewards, or
    none.
    """
    batch = sized(
        Batch,
        num_agents=num_agents,
        episode_length=episode_length,
        auto_reset=auto_reset,
        action_check=action_check,
        max_levels=max_levels,
    )
    _give_observations(batch, observations)
    if reward:
        batch.keeps_reward = LevelRewards(*reward)
        batch.reward = ctypes.addressof(batch.keeps_reward)
    return batch


def _give_observations(batch: Batch, observations: Sequence[float]) -> None:
    batch.keeps_observations = parts = Observations(num_parts=len(observations) // 2)
    for index in range(parts.num_parts):
        parts.parts[index] = int(observations[2 * index])
        parts.scales[index] = observations[2 * index + 1]
    batch.observations = ctypes.addressof(parts)


def prepare_batches(device_index: int, num_agents: int, max_levels: int) -> None:
    """Loads what steps of worlds need on a CUDA device, for the rest of the process."""
    where = {"device_kind": DeviceKind.CUDA, "device_index": device_index}
    batch = sized(Batch, **where, num_agents=num_agents, max_levels=max_levels)
    check(load().ds_batch_prepare(ctypes.byref(batch)))


def create_batch(batch: ctypes.Structure, seed: int, world_offset: int) -> None:
    """Writes the first levels of worlds to the batch's tensors."""
    check(load().ds_batch_create(ctypes.byref(batch), seed, world_offset))


def xla_handler(name: str) -> ctypes.c_void_p:
    """The address of a handler of XLA's FFI."""
    return ctypes.c_void_p(read_value(load().ds_xla_handler, ctypes.c_void_p, name.encode()))
