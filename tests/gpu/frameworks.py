"""The GPU, and PyTorch and JAX on it, for tests and measurements that need them."""

from __future__ import annotations

from typing import Any

import pytest

import doorstep
from doorstep import cuda


def need_gpu() -> None:
    """Skips the test, or the whole file, on a machine without a GPU."""
    try:
        cuda.Device()
    except doorstep.DeviceError as reason:
        pytest.skip(f"no GPU: {reason}", allow_module_level=True)


def why_not_torch() -> str:
    """Why PyTorch cannot use the GPU; empty if it can."""
    try:
        import torch
    except ImportError as error:
        return str(error)
    return "" if torch.cuda.is_available() else f"PyTorch {torch.__version__} cannot use the GPU"


def why_not_jax() -> str:
    """Why JAX cannot use the GPU; empty if it can."""
    try:
        import jax
    except ImportError as error:
        return str(error)
    return "" if jax.default_backend() == "gpu" else f"JAX {jax.__version__} cannot use the GPU"


def cuda_torch() -> Any:
    """The module; skips the test, or the whole file, without a GPU or a PyTorch that uses it."""
    need_gpu()
    torch = pytest.importorskip("torch")
    if reason := why_not_torch():
        pytest.skip(reason, allow_module_level=True)
    return torch


def has_bf16() -> bool:
    """Whether the tensor cores of PyTorch's GPU multiply bfloat16."""
    import torch

    return bool(torch.cuda.get_device_capability() >= (8, 0))


def cuda_jax() -> Any:
    """The module; skips the test without a GPU or a JAX that uses it."""
    need_gpu()
    jax = pytest.importorskip("jax")
    if reason := why_not_jax():
        pytest.skip(reason)
    return jax
