"""What tests of environments with tensors of PyTorch share."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from doorstep.envs._arrays import Arrays, torch_arrays

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"

# Operators whose result's shape or value the host has to know: on a GPU it waits for them.
WAITING = ("_local_scalar_dense", "nonzero", "is_nonzero", "masked_select", "repeat_interleave.Tensor", "unique")


class NoWaits(TorchDispatchMode):  # type: ignore[misc]
    """Within it, an operator that would wait for a GPU raises."""

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        name = str(function).removeprefix("aten.")
        masks = [index for index in _flat(arguments[1:2]) if getattr(index, "dtype", None) == torch.bool]
        if name.startswith(WAITING) or (name.startswith(("index.", "index_put")) and masks):
            raise AssertionError(f"{name} waits for a GPU")
        return function(*arguments, **(keywords or {}))


def arrays_of_a_gpu(device: str) -> Arrays:
    """What environments do with tensors on a GPU, done with tensors on the CPU."""
    assert device == "cpu"
    return dataclasses.replace(torch_arrays("cuda:0"), from_caller=torch.as_tensor)


def tensors_of(value: Any) -> list[Any]:
    """All tensors in nested tuples, dictionaries and tensordicts."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if hasattr(value, "values") and not callable(value) else value
    return [tensor for item in items for tensor in tensors_of(item)]


def assert_kept(stepped: Callable[[], Any], times: int) -> None:
    """What steps return is as it was, after all of them."""
    kept = [(tensor, tensor.clone()) for _ in range(times) for tensor in tensors_of(stepped())]
    assert all(torch.equal(tensor, copy) for tensor, copy in kept)
    assert len({tensor.untyped_storage().data_ptr() for tensor, _ in kept}) > times


def returns_printed_by(example: str) -> list[float]:
    """The mean returns that a run of docs/examples prints."""
    command = [sys.executable, str(EXAMPLES / example)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [float(line.split()[-1]) for line in done.stdout.splitlines() if "mean return" in line]


def _flat(value: Any) -> list[Any]:
    return [part for item in value for part in _flat(item)] if isinstance(value, (list, tuple)) else [value]
