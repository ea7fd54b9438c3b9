"""The CUDA driver and its devices. The first call opens the driver; nothing else of this package does."""

from __future__ import annotations

import ctypes

from doorstep._native._generated import CudaCompileInfo, CudaDeviceInfo, CudaDriverInfo
from doorstep._native.library import load
from doorstep._native.status import check


def cuda_driver() -> CudaDriverInfo:
    info = CudaDriverInfo(struct_size=ctypes.sizeof(CudaDriverInfo))
    check(load().ds_cuda_get_driver(ctypes.byref(info)))
    return info


def cuda_device(index: int) -> CudaDeviceInfo:
    info = CudaDeviceInfo(struct_size=ctypes.sizeof(CudaDeviceInfo))
    check(load().ds_cuda_get_device(index, ctypes.byref(info)))
    return info


def cuda_compile(architecture: str, num_agents: int) -> CudaCompileInfo:
    """Compiles the kernels for an architecture ("sm_103"); needs neither GPU nor driver."""
    info = CudaCompileInfo(struct_size=ctypes.sizeof(CudaCompileInfo))
    check(load().ds_cuda_compile(architecture.encode(), num_agents, ctypes.byref(info)))
    return info


def cuda_architectures() -> list[str]:
    """The architectures that the library has machine code for; empty if it was built without kernels."""
    text: bytes = load().ds_cuda_architectures()
    return text.decode().split(",") if text else []
