"""What environments do with arrays, in numpy and in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from doorstep._arguments import refuse
from doorstep.tensor import Tensor


@final
@dataclass(frozen=True)
class Arrays:
    """A library's functions that numpy and PyTorch write differently.

    Attributes:
        view: the memory of a Tensor as an array.
        copy: an array with memory of its own.
        as_bool: the same memory of uint8, 0 or 1, as booleans.
        clear: sets the elements to 0 where a flag is set.
        repeat: each element of one dimension that many times.
        rows_where: a copy of the rows where a flag of one dimension is set; 0 elsewhere.
        may_ask: whether the values of flags may decide what is done. Not on a GPU, where asking waits for its work.
    """

    view: Callable[[Tensor], Any]
    copy: Callable[[Any], Any]
    as_bool: Callable[[Any], Any]
    clear: Callable[[Any, Any], object]
    repeat: Callable[[Any, int], Any]
    rows_where: Callable[[Any, Any], Any]
    may_ask: bool


def host_arrays(device: str) -> Arrays:
    """numpy's, of worlds on the CPU."""
    if device != "cpu":
        refuse("device", '"cpu"', device, "on a GPU use an environment with tensors of PyTorch")
    return Arrays(
        view=Tensor.to_numpy,
        copy=np.array,
        as_bool=lambda flags: flags.view(np.bool_),
        clear=lambda array, flags: np.putmask(array, flags, 0),
        repeat=lambda array, times: np.repeat(array, times),
        rows_where=_numpy_rows,
        may_ask=True,
    )


def torch_arrays(device: str) -> Arrays:
    import torch

    def chosen_rows(rows: Any, flags: Any) -> Any:
        shown = flags.reshape(flags.shape + (1,) * (rows.dim() - 1))
        return torch.where(shown, rows, torch.zeros((), dtype=rows.dtype, device=rows.device))

    def written_rows(rows: Any, flags: Any) -> Any:
        copied = torch.zeros_like(rows)
        copied[flags] = rows[flags]
        return copied

    on_cpu = device == "cpu"
    return Arrays(
        view=Tensor.to_torch,
        copy=torch.clone,
        as_bool=lambda flags: flags.view(torch.bool),
        clear=lambda array, flags: array.masked_fill_(flags, 0),
        repeat=lambda array, times: array.repeat_interleave(times),
        rows_where=written_rows if on_cpu else chosen_rows,
        may_ask=on_cpu,
    )


def _numpy_rows(rows: Any, flags: Any) -> Any:
    copied = np.zeros_like(rows)  # pages that are not written cost nothing
    copied[flags] = rows[flags]
    return copied
