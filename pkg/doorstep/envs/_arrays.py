"""What environments do with arrays, in numpy and in PyTorch."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep._action_forms import ACTION_TABLE, NUM_ACTIONS
from doorstep._arguments import refuse
from doorstep._native import ACTIONS
from doorstep._optional import import_optional
from doorstep.envs._ring import Ring
from doorstep.errors import ArgumentError
from doorstep.tensor import Tensor


@final
@dataclasses.dataclass(frozen=True)
class Arrays:
    """How arrays are made and changed: in numpy for worlds on the CPU, in PyTorch for those on a GPU.

    Attributes:
        view: the memory of a Tensor as an array.
        shown: the memory of a Tensor as what callers get.
        copy: an array with memory of its own.
        copies_of: a function that copies an array which is large, and copied in every step.
        as_bool: the same memory of uint8, 0 or 1, as booleans.
        clear: sets the elements to 0 where a flag is set.
        repeat: each element of one dimension that many times.
        rows_where: a copy of the rows where a flag of one dimension is set; 0 elsewhere.
        from_caller: an argument of this name as an array.
        join: an argument of this name that is a sequence of arrays, as one array with them in its last dimension.
        decode: sets a simulator's actions by their numbers, an array of integers.
        to_caller: the same memory as what callers get.
        redirects: whether the simulator may write into memory that callers keep; else it is copied. Not on a GPU, where
            PyTorch uses memory again in the order of streams.
        may_ask: whether the values of flags may decide what is done. Not on a GPU, where asking waits for its work.
    """

    view: Callable[[Tensor], Any]
    shown: Callable[[Tensor], Any]
    copy: Callable[[Any], Any]
    copies_of: Callable[[Any], Callable[[], Any]]
    as_bool: Callable[[Any], Any]
    clear: Callable[[Any, Any], object]
    repeat: Callable[[Any, int], Any]
    rows_where: Callable[[Any, Any], Any]
    from_caller: Callable[[str, Any], Any]
    join: Callable[[str, Any], Any]
    decode: Callable[[Any, Tensor], object]
    to_caller: Callable[[Any], Any]
    redirects: bool
    may_ask: bool


def host_arrays(device: str) -> Arrays:
    """numpy's, of worlds on the CPU."""
    if device != "cpu":
        refuse("device", '"cpu"', device, "on a GPU use an environment with tensors of PyTorch")
    return Arrays(
        view=Tensor.to_numpy,
        shown=Tensor.to_numpy,
        copy=np.array,
        copies_of=lambda array: Ring(array).copy,
        as_bool=lambda flags: flags.view(np.bool_),
        clear=lambda array, flags: np.putmask(array, flags, 0),
        repeat=lambda array, times: np.repeat(array, times),
        rows_where=_numpy_rows,
        from_caller=as_array,
        join=lambda name, parts: as_array(name, [as_array(name, part) for part in parts]).T,
        decode=_numpy_decode,
        to_caller=lambda array: array,
        redirects=True,
        may_ask=True,
    )


def torch_arrays(device: str) -> Arrays:
    """Callers get tensors of PyTorch.

    On the CPU numpy makes them: PyTorch takes several times as long for an operation on a few thousand elements.
    """
    torch = import_optional("torch", "environments with tensors of PyTorch need it", "torch")
    if device == "cpu":
        return dataclasses.replace(host_arrays(device), shown=Tensor.to_torch, to_caller=torch.from_numpy)

    def chosen_rows(rows: Any, flags: Any) -> Any:
        shown = flags.reshape(flags.shape + (1,) * (rows.dim() - 1))
        return torch.where(shown, rows, torch.zeros((), dtype=rows.dtype, device=rows.device))

    def from_caller(name: str, value: Any) -> Any:
        return torch.as_tensor(value, device=device)

    # Looking for numbers outside would wait for the device: they become an action that `action_check` finds.
    actions = torch.as_tensor(np.concatenate([ACTION_TABLE, [ACTIONS]]), dtype=torch.int32, device=device)

    def decode(numbers: Any, tensor: Tensor) -> None:
        numbers = torch.as_tensor(numbers, device=device).long().flatten()
        numbers = torch.where((numbers >= 0) & (numbers < NUM_ACTIONS), numbers, NUM_ACTIONS)
        torch.index_select(actions, 0, numbers, out=tensor.to_torch().view(-1, len(ACTIONS)))

    return Arrays(
        view=Tensor.to_torch,
        shown=Tensor.to_torch,
        copy=torch.clone,
        copies_of=lambda tensor: functools.partial(torch.clone, tensor),  # PyTorch uses memory again by itself
        as_bool=lambda flags: flags.view(torch.bool),
        clear=lambda tensor, flags: tensor.masked_fill_(flags, 0),
        repeat=lambda tensor, times: tensor.repeat_interleave(times),
        rows_where=chosen_rows,
        from_caller=from_caller,
        join=lambda name, parts: torch.stack([from_caller(name, part) for part in parts], -1),
        decode=decode,
        to_caller=lambda tensor: tensor,
        redirects=False,
        may_ask=False,
    )


def as_array(name: str, value: Any) -> NDArray[Any]:
    """What numpy makes of nested sequences.

    Raises:
        ArgumentError: they have different lengths.
    """
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentError(f"{name} cannot be an array: {error}", argument=name) from error


def _numpy_decode(numbers: Any, tensor: Tensor) -> None:
    array = as_array("actions", numbers)
    if array.min() < 0 or array.max() >= NUM_ACTIONS:
        outside = array[(array < 0) | (array >= NUM_ACTIONS)]
        refuse("actions", f"the numbers of actions, 0 to {NUM_ACTIONS - 1}", outside[0].item())
    array = array.reshape(tensor.shape[:2]).astype(np.intp, copy=False)
    np.take(ACTION_TABLE, array, 0, tensor.to_numpy(), "clip")


def _numpy_rows(rows: Any, flags: Any) -> Any:
    copied = np.zeros_like(rows)  # pages that are not written cost nothing
    copied[flags] = rows[flags]
    return copied
