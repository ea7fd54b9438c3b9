"""PyTorch for tests that need it on the GPU."""

from __future__ import annotations

from typing import Any

import pytest


def cuda_torch() -> Any:
    """The module; skips the test, or the whole file, where PyTorch is missing or was built without CUDA."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip(f"PyTorch {torch.__version__} cannot use the GPU", allow_module_level=True)
    return torch
