"""Operators of PyTorch: one table per operator says what each tensor must be and whether it is read or written.

The operator's schema, the checks of its tensors and the shapes in its fake kernel all follow from the table.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from doorstep._native import DeviceKind, Dtype, fast_calls
from doorstep._native.tensor_calls import ALLOWED_DTYPES, DeviceStream, OperandAccess, TensorCall, TensorSpec
from doorstep._tensors.checks import refuse_tensor

DTYPES = {key: tuple(getattr(torch, name) for name in names) for key, names in ALLOWED_DTYPES.items()}
NATIVE_DTYPES = {torch.float32: Dtype.FLOAT32, torch.float64: Dtype.FLOAT64}
LOW_PRECISION = (torch.float16, torch.bfloat16)


def _learn_how_tensors_lie() -> None:
    """Has the library find out once how PyTorch's tensors lie in memory. This would fail later, when an operator is
    first called inside fake tensors or checks of schemas."""
    calls = fast_calls()
    if calls:
        calls["is_tensor"](torch.empty(0, device="cpu"))


_learn_how_tensors_lie()  # before anything is registered: this fails where the library cannot be loaded

# Kept as long as the process: its definitions would go with it.
LIBRARY = torch.library.Library("doorstep", "DEF")  # type: ignore[no-untyped-call,unused-ignore]


class CheckedTensors(NamedTuple):
    """Extents, device and addresses of tensors that have been checked, for a call of the C API."""

    extents: dict[str, int]  # by symbol
    where: DeviceStream
    addresses: dict[str, int]  # by name; not of None


@dataclass(frozen=True)
class OperatorSpec:
    """An operator: the tensors that it takes, those that it makes, and the numbers that it takes after the tensors, as
    torch.library writes them."""

    name: str
    operands: tuple[TensorSpec, ...]
    results: tuple[TensorSpec, ...]
    numbers: str

    def schema(self) -> str:
        """The schema for torch.library.Library.define()."""
        tensors = ", ".join(_declaration(index, spec) for index, spec in enumerate(self.operands))
        results = ", ".join("Tensor" for _ in self.results)
        return f"{self.name}({tensors}, {self.numbers}) -> ({results})"

    def tensors(self) -> tuple[TensorSpec, ...]:
        """All tensors of a call: operands, then results."""
        return (*self.operands, *self.results)

    def split(self, arguments: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """The tensors and the numbers of a call."""
        return arguments[: len(self.operands)], arguments[len(self.operands) :]

    def check(self, tensors: Sequence[torch.Tensor | None], **extents: int) -> dict[str, int]:
        """Checks everything that tensors without memory have too; returns the extents by symbol.

        Raises:
            ArgumentError: a tensor does not match its row of the table.
        """
        first = next(tensor for tensor in tensors if tensor is not None)
        floats = None
        for spec, tensor in zip(self.tensors(), tensors, strict=False):  # results may be missing
            if tensor is None and spec.optional:
                continue
            if not isinstance(tensor, torch.Tensor):
                refuse_tensor(spec.name, type(tensor).__name__, "a torch.Tensor")
            _check_dtype(spec, tensor, floats)
            floats = tensor.dtype if spec.dtype == "float" else floats
            _check_shape(spec, tensor, extents)
            _check_memory(spec, tensor, first.device)
        return extents

    def run(self, call: TensorCall, tensors: Sequence[torch.Tensor | None], **extents: int) -> None:
        """Checks everything and calls. The native library finds out whether a check fails; then this says which.

        Args:
            call: made with tensors().
            tensors: operands, then results.
            extents: those that are known, by symbol.

        Raises:
            ArgumentError: a tensor does not match its row of the table, or shares memory that is written.
        """
        if call(*tensors):
            return
        checked = self.read(tensors, **extents)
        dtype = NATIVE_DTYPES.get(tensors[0].dtype) if tensors[0] is not None else None
        call.call_checked(checked.where, dtype, checked.extents, checked.addresses)

    def read(self, tensors: Sequence[torch.Tensor | None], **extents: int) -> CheckedTensors:
        """Checks everything and returns addresses.

        Raises:
            ArgumentError: a tensor does not match its row of the table, or shares memory that is written.
        """
        extents = self.check(tensors, **extents)
        pairs = zip(self.tensors(), tensors, strict=True)
        present = [(spec, tensor) for spec, tensor in pairs if tensor is not None]
        _check_overlap(present)
        somewhere = present[0][1].data_ptr()  # for tensors without elements, whose address is not used
        addresses = {spec.name: tensor.data_ptr() or somewhere for spec, tensor in present}
        return CheckedTensors(extents, device_stream(present[0][1].device), addresses)


def define(
    operator: OperatorSpec,
    kernel: Callable[..., Any],
    fake: Callable[..., Any],
    keep: Callable[..., Any] | None = None,
    backward: Callable[..., Any] | None = None,
) -> None:
    """Registers `torch.ops.doorstep.<name>`, for memory of the CPU and of CUDA devices.

    Args:
        operator: its table.
        kernel: does the work on tensors.
        fake: the same for tensors without memory.
        keep: what autograd has to remember, see torch.library.register_autograd().
        backward: gradients of the inputs; without it, the operator has none.
    """
    name = f"doorstep::{operator.name}"
    tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
    LIBRARY.define(operator.schema(), tags=tags)  # type: ignore[no-untyped-call,unused-ignore]
    for device in ("CPU", "CUDA"):
        LIBRARY.impl(operator.name, kernel, device)  # type: ignore[no-untyped-call,unused-ignore]
    torch.library.register_fake(name, _with_lowering(operator, fake), lib=LIBRARY)
    if backward is not None:
        torch.library.register_autograd(name, backward, setup_context=keep, lib=LIBRARY)


def _with_lowering(operator: OperatorSpec, fake: Callable[..., Any]) -> Callable[..., Any]:
    """The fake kernel, which also registers how inductor lowers the operator, before inductor first does so."""

    def run(*arguments: Any) -> Any:
        if "torch._inductor.lowering" in sys.modules:  # slow to import, and needed by no other backend
            _lower_after_readers(operator)
        return fake(*arguments)

    return run


@functools.cache
def _lower_after_readers(operator: OperatorSpec) -> None:
    """Has inductor compute what reads the tensors that the operator writes before the operator runs.

    By itself, inductor (of PyTorch 2.13) puts the operator into its program first. A value that was computed from these
    tensors, and that is used both before and after the operator, would then be computed again from what was written.
    """
    from torch._inductor import lowering
    from torch._inductor.virtualized import V

    written = [index for index, spec in enumerate(operator.operands) if spec.access is not OperandAccess.READ]
    operation = getattr(torch.ops.doorstep, operator.name).default
    lower = lowering.fallback_handler(operation, add_to_fallback_set=False)

    def lower_after(*arguments: Any) -> Any:
        for index in written:
            if arguments[index] is not None:
                V.graph.mark_buffer_mutated(arguments[index].get_name())
        return lower(*arguments)

    lowering.register_lowering(operation, type_promotion_kind=None)(lower_after)


@functools.cache
def prepare_once(prepare: Callable[..., None], *arguments: int) -> None:
    """Loads what a device needs, once for the process: before that nothing can be recorded into a graph."""
    prepare(*arguments)


def device_stream(device: torch.device) -> DeviceStream:
    """A device, and PyTorch's current stream on it."""
    if device.type == "cpu":
        return DeviceStream(DeviceKind.CPU, 0, 0)
    index = torch.cuda.current_device() if device.index is None else device.index
    return DeviceStream(DeviceKind.CUDA, index, torch.cuda.current_stream(index).cuda_stream)


def check_is_tensor(name: str, value: object) -> None:
    """Refuses everything but tensors of PyTorch."""
    if not isinstance(value, torch.Tensor):
        refuse_tensor(name, type(value).__name__, "a torch.Tensor")


def _declaration(index: int, spec: TensorSpec) -> str:
    alias = "" if spec.access is OperandAccess.READ else f"(a{index}!)"
    return f"Tensor{alias}{'?' if spec.optional else ''} {spec.name}"


def _check_dtype(spec: TensorSpec, tensor: torch.Tensor, floats: torch.dtype | None) -> None:
    allowed = (floats,) if spec.dtype == "float" and floats else DTYPES[spec.dtype]
    if tensor.dtype in allowed:
        return
    hint = f"convert it with .to({allowed[0]})"
    if tensor.dtype in LOW_PRECISION:
        hint = "convert it with .float(); half precision is too little here, and autocast does not change that"
    refuse_tensor(spec.name, str(tensor.dtype), " or ".join(map(str, allowed)), hint)


def _check_shape(spec: TensorSpec, tensor: torch.Tensor, extents: dict[str, int]) -> None:
    wanted = [int(symbol) if symbol.isdigit() else extents.get(symbol, symbol) for symbol in spec.shape]
    if tensor.dim() == len(wanted):
        found = zip(tensor.shape, wanted, strict=True)
        if all(isinstance(entry, str) or size == entry for size, entry in found):
            extents.update((symbol, size) for size, symbol in zip(tensor.shape, spec.shape, strict=True))
            return
    refuse_tensor(spec.name, f"of shape {list(tensor.shape)}", f"of shape [{', '.join(map(str, wanted))}]")


def check_contiguous(name: str, tensor: torch.Tensor) -> None:
    """Refuses tensors whose elements do not lie side by side in row-major order."""
    if tensor.layout != torch.strided or not tensor.is_contiguous():
        refuse_tensor(name, "not contiguous", "contiguous", "make it contiguous with .contiguous()")


def _check_memory(spec: TensorSpec, tensor: torch.Tensor, device: torch.device) -> None:
    if tensor.device != device:
        hint = f"move it with .to('{device}')"
        refuse_tensor(spec.name, f"on {tensor.device}", f"on {device}, as the others are", hint)
    check_contiguous(spec.name, tensor)
    if spec.access is not OperandAccess.READ and tensor.requires_grad:
        hint = "a tensor that is written has no gradient"
        refuse_tensor(spec.name, "a tensor that requires grad", "one that does not", hint)


def _check_overlap(present: Sequence[tuple[TensorSpec, torch.Tensor]]) -> None:
    """Refuses memory that is written if any other tensor shares a byte of it."""
    spans = [(tensor.data_ptr(), tensor.nbytes, spec) for spec, tensor in present if tensor.numel()]
    end = written_end = 0  # how far those before reach
    last = last_written = present[0][0]
    for address, size, spec in sorted(spans, key=lambda span: span[0]):
        reads = spec.access is OperandAccess.READ
        if address < (written_end if reads else end):
            other = last_written if reads else last
            shared = f"partly the same memory as {other.name}"
            refuse_tensor(spec.name, shared, "memory of its own", "pass a .clone()")
        if address + size > end:
            end, last = address + size, spec
        if not reads and address + size > written_end:
            written_end, last_written = address + size, spec
