"""PyTorch and JAX for tests and measurements that need them on the GPU."""

from __future__ import annotations

from typing import Any

import pytest


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
    """The module; skips the test, or the whole file, where PyTorch is missing or was built without CUDA."""
    torch = pytest.importorskip("torch")
    if reason := why_not_torch():
        pytest.skip(reason, allow_module_level=True)
    return torch


def cuda_jax() -> Any:
    """The module; skips the test where JAX is missing or does not use the GPU."""
    jax = pytest.importorskip("jax")
    if reason := why_not_jax():
        pytest.skip(reason)
    return jax
