"""Checks of tensors of other libraries. A tensor that fails one is refused with an ArgumentError."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from doorstep._native import STREAM_OWN
from doorstep._native._generated import PythonLibrary
from doorstep._native.foreign_tensor import CPU, CUDA, ForeignTensor
from doorstep.errors import ArgumentError

MAX_RANK = 16


class ReadRules(NamedTuple):
    """The use of a tensor, which decides what is allowed; see ReadRules in native/src/interop/python/tensor_bridge.h.

    Attributes:
        name: of the argument, for messages.
        requires_grad_allowed: whether it may require grad, which is not seen by autograd.
        written: refuses read-only memory.
        stream: the CUstream of the use, before which libraries without a stream of their own order their work;
            STREAM_OWN: none.
    """

    name: str = "tensor"
    requires_grad_allowed: bool = True
    written: bool = False
    stream: int = STREAM_OWN


def refuse_unusable(name: str, found: str, hint: str) -> NoReturn:
    """Raises the error of an argument that cannot be used at all."""
    raise ArgumentError(f"{name} is {found}", argument=name, hint=hint)


def refuse_tensor(name: str, found: str, requirement: str, hint: str = "") -> NoReturn:
    """Raises the error of a tensor that does not meet a requirement."""
    raise ArgumentError(f"{name} is {found}; it must be {requirement}", argument=name, hint=hint)


def check_rules(tensor: ForeignTensor, rules: ReadRules) -> None:
    """Refuses tensors of too many dimensions or without memory, and those against the rules."""
    if len(tensor.shape) > MAX_RANK:
        refuse_unusable(rules.name, f"a tensor of {len(tensor.shape)} dimensions", f"reshape it to {MAX_RANK} or fewer")
    if not tensor.pointer and 0 not in tensor.shape:
        hint = "pass one that holds data: no fake, functional or wrapped one"
        refuse_unusable(rules.name, f"a {type(tensor.owner).__name__} without memory: its address is null", hint)
    if tensor.requires_grad and not rules.requires_grad_allowed:
        refuse_unusable(rules.name, "a tensor that requires grad, which would be lost", "pass tensor.detach()")
    if tensor.read_only and rules.written:
        refuse_unusable(rules.name, "a read-only tensor, but it would be written to", "pass a writable copy")


def check_fits(
    tensor: ForeignTensor, name: str, dtype: str, shape: tuple[int, ...], device: str, *, bool_allowed: bool
) -> None:
    """Refuses memory that is not a simulator's tensor's, or would not be once it is C-contiguous.

    Args:
        tensor: the memory.
        name: of the simulator's tensor.
        dtype: its type of elements.
        shape: its shape; worlds and agents may also be one dimension, and dimensions of 1 at the end may be absent.
        device: where the memory must be.
        bool_allowed: whether bool is accepted for uint8.
    """
    wanted, found = f"{dtype} {list(shape)}", f"{tensor.dtype.name} {list(tensor.shape)}"
    if tensor.device != device:
        hint = f"move it there: tensor.to({device!r}) in PyTorch"
        refuse_tensor(name, f"on {tensor.device}", f"on {device}", hint)
    if tensor.dtype.name != dtype and not (bool_allowed and (tensor.dtype.name, dtype) == ("bool", "uint8")):
        refuse_tensor(name, found, wanted, _conversion(tensor, dtype))
    if not _has_shape(tensor.shape, shape):
        hint = "worlds and agents may be one dimension, dimensions of 1 at the end may be absent"
        refuse_tensor(name, found, wanted, hint)


def _has_shape(shape: tuple[int, ...], own: tuple[int, ...]) -> bool:
    alternatives = (own, (own[0] * own[1], *own[2:]))
    return any(shape + (1,) * (len(full) - len(shape)) == full for full in alternatives if shape)


def _conversion(tensor: ForeignTensor, dtype: str) -> str:
    """How the value's library converts to another type of elements."""
    if tensor.library == PythonLibrary.TORCH:
        return f"convert it: tensor.to(torch.{dtype})"
    namespace = "jax.numpy" if tensor.library == PythonLibrary.JAX else "numpy"
    return f"convert it: array.astype({namespace}.{dtype})"


def refuse_gaps(name: str, tensor: ForeignTensor) -> NoReturn:
    """Raises the error of a tensor whose elements do not lie side by side in row-major order."""
    found = f"{tensor.dtype.name} {list(tensor.shape)}, not C-contiguous"
    refuse_tensor(name, found, "C-contiguous", "pass a contiguous copy")


def check_copyable(name: str, tensor: ForeignTensor, *, written: bool) -> None:
    """Refuses memory that CUDA's copies do not reach, and elements that would be written twice."""
    if tensor.device_type not in (CPU, CUDA):
        refuse_tensor(name, f"on {tensor.device}", "on the CPU or on a CUDA device")
    if written and _overlaps(tensor):
        kind, shape, strides = type(tensor.owner).__name__, list(tensor.shape), list(tensor.strides)
        found = f"a {kind} of shape {shape} with strides of {strides} bytes"
        refuse_tensor(name, found, "a tensor whose elements do not overlap")


def _overlaps(tensor: ForeignTensor) -> bool:
    """Whether an element may be written twice: sorted by stride, no dimension may reach into the next."""
    reach = tensor.dtype.itemsize
    dimensions = zip(map(abs, tensor.strides), tensor.shape, strict=True)
    for stride, extent in sorted(dimensions):
        if extent > 1 and stride < reach:
            return True
        reach += stride * (extent - 1)
    return False
