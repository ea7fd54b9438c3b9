"""Tensors of other libraries that callers hand in, to be copied or to be worked in: read, and compared with ours."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np

from doorstep._arguments import refuse
from doorstep._cuda_interface import read_cuda_interface
from doorstep._native._generated import PythonLibrary, PythonTensor
from doorstep._native.tensor_names import CUDA, device_name, dtype_name
from doorstep._native.tensor_reader import Rules, read_into, stream_of_owner
from doorstep._native.tensor_types import find_library
from doorstep.errors import ArgumentError
from doorstep.tensor import Tensor


class Given(NamedTuple):
    """Memory of a caller.

    Attributes:
        owner: what keeps the memory valid.
        stream: on a GPU, the CUstream on which the caller uses the memory; None: whatever was begun on the memory comes
            before the simulator's next work, but nobody says how long the memory stays as it is.
    """

    pointer: int
    dtype: str
    shape: tuple[int, ...]
    device: str
    contiguous: bool
    owner: object
    stream: int | None


def read_given(name: str, value: Any, *, written: bool, stream: int) -> Given:
    """Whatever has DLPack, a buffer, or an interface of arrays.

    Args:
        name: of the argument, for messages.
        value: the caller's.
        written: refuses read-only memory.
        stream: the CUstream that the simulator works on, before which other libraries order their work; STREAM_OWN if
            there is none.

    Raises:
        ArgumentError: it is no tensor, not one that lies in memory as it is described, or read-only.
    """
    if hasattr(type(value), "__dlpack__"):
        return _read_tensor(name, value, written, stream)
    if hasattr(value, "__cuda_array_interface__"):
        return _read_interface(name, value, written)
    return _read_tensor(name, _as_numpy(name, value), written, stream)


def check_fits(tensor: Tensor, given: Given, value: object, *, device: str, bool_allowed: bool) -> None:
    """Raises ArgumentError unless the memory, once it is C-contiguous, could be the tensor's."""
    dtype = str(tensor.dtype)
    if given.device != device:
        hint = f"move it there: tensor.to({device!r}) in PyTorch"
        _refuse_as(tensor.name, f"on {device}", f"on {given.device}", hint)
    if given.dtype != dtype and not (bool_allowed and (given.dtype, dtype) == ("bool", "uint8")):
        _refuse_as(tensor.name, f"{dtype} {list(tensor.shape)}", _described(given), _conversion(value, dtype))
    if not _has_shape(given.shape, tensor.shape):
        hint = "worlds and agents may be one dimension, dimensions of 1 at the end may be absent"
        _refuse_as(tensor.name, f"{dtype} {list(tensor.shape)}", _described(given), hint)


def refuse_gaps(name: str, given: Given) -> NoReturn:
    _refuse_as(name, "C-contiguous", f"{_described(given)}, not C-contiguous", "pass a contiguous copy")


def contiguous_copy(value: Any) -> Any | None:
    """A copy by the value's library, if it is one that orders copies on the stream that it says it works on."""
    library = find_library(type(value))
    if library == PythonLibrary.TORCH:
        return value.contiguous()
    return np.ascontiguousarray(value) if library == PythonLibrary.NUMPY else None


# ---- Reading ----


def _read_tensor(name: str, value: Any, written: bool, stream: int) -> Given:
    view = PythonTensor()
    read_into(view, value, Rules(name, requires_grad_allowed=not written, written=written, stream=stream))
    return Given(
        view.data or 0,
        dtype_name(view.dtype_code, view.dtype_bits, view.dtype_lanes),
        tuple(view.shape[: view.rank]),
        device_name(view.device_type, view.device_index),
        bool(view.contiguous),
        _owner_of(value, view.library),
        stream_of_owner(value, view),
    )


def _owner_of(value: Any, library: int) -> object:
    """What keeps the memory valid: the tensor may be given other memory, or the memory be closed below it."""
    if library == PythonLibrary.TORCH:
        return value.detach()
    base = value
    while isinstance(base, np.ndarray):
        base = base.base
    try:
        return value, memoryview(base)  # arrays over a buffer do not always hold it open themselves
    except TypeError:
        return value


def _as_numpy(name: str, value: Any) -> Any:
    """An array over the memory of anything that numpy reads in place; a list of numbers has no such memory."""
    requirement = "a tensor of numpy, PyTorch, JAX or another library"
    hint = "from a list, make one with its dtype: numpy.asarray(value, numpy.int32)"
    if not hasattr(value, "__array_interface__"):
        try:
            value = memoryview(value)
        except TypeError:
            refuse(name, requirement, value, hint)
    try:
        return np.asarray(value)
    except Exception:  # whatever an interface raises
        refuse(name, requirement, value, hint)


def _read_interface(name: str, value: Any, written: bool) -> Given:
    found = read_cuda_interface(name, value, written=written)
    device = device_name(CUDA, found.device_index)
    return Given(found.pointer, str(found.dtype), found.shape, device, found.contiguous, value, found.stream)


# ---- Comparing ----


def _has_shape(shape: tuple[int, ...], own: tuple[int, ...]) -> bool:
    """The tensor's own shape, also with worlds and agents in one dimension, or without dimensions of 1 at the end."""
    alternatives = (own, (own[0] * own[1], *own[2:]))
    return any(shape + (1,) * (len(full) - len(shape)) == full for full in alternatives if shape)


def _described(given: Given) -> str:
    return f"{given.dtype} {list(given.shape)}"


def _refuse_as(name: str, requirement: str, description: str, hint: str) -> NoReturn:
    raise ArgumentError(f"{name} is {description}; it must be {requirement}", argument=name, hint=hint)


def _conversion(value: Any, dtype: str) -> str:
    """How to get the right type in the library of the value."""
    module = type(value).__module__.partition(".")[0]
    if module == "torch":
        return f"convert it: tensor.to(torch.{dtype})"
    return f"convert it: array.astype({'jax.numpy' if module.startswith('jax') else 'numpy'}.{dtype})"
