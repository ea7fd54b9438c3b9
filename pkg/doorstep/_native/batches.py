"""Batches of the C API: worlds in the caller's memory, and the custom calls of XLA over them."""

from __future__ import annotations

import ctypes

from doorstep._native._generated import Batch, BatchInfo, DeviceKind
from doorstep._native.library import load
from doorstep._native.status import check


def batch_info(device_kind: DeviceKind, device_index: int, num_worlds: int, num_agents: int) -> BatchInfo:
    """What a batch needs: sizes in bytes. On CUDA this asks the device."""
    batch = Batch(
        struct_size=ctypes.sizeof(Batch),
        device_kind=device_kind,
        device_index=device_index,
        num_worlds=num_worlds,
        num_agents=num_agents,
    )
    info = BatchInfo(struct_size=ctypes.sizeof(BatchInfo))
    check(load().ds_batch_get_info(ctypes.byref(batch), ctypes.byref(info)))
    return info


def xla_handler(name: str) -> ctypes.c_void_p:
    """The address of a handler of XLA's FFI."""
    handler = ctypes.c_void_p()
    check(load().ds_xla_handler(name.encode(), ctypes.byref(handler)))
    return handler
