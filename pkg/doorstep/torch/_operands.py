"""What an operator is given: one table per operator says what each tensor must be and whether it is read or written.

The operator's schema, the check of its tensors and the shapes that its fake kernel goes by all follow from the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, NoReturn

import torch

from doorstep._native._generated import DeviceKind, Dtype
from doorstep._native.training import BOOL_BIT, OperandRow, Place, TensorCall
from doorstep.errors import ArgumentError

DTYPES = {
    "float": (torch.float32, torch.float64),  # the same for all of an operator's
    "float32": (torch.float32,),
    "int32": (torch.int32,),
    "uint8": (torch.uint8,),
    "flag": (torch.bool, torch.uint8),
}
NATIVE_DTYPES = {torch.float32: Dtype.FLOAT32, torch.float64: Dtype.FLOAT64}
LOW_PRECISION = (torch.float16, torch.bfloat16)


NATIVE_BITS = {
    torch.uint8: 1 << Dtype.UINT8,
    torch.int32: 1 << Dtype.INT32,
    torch.float32: 1 << Dtype.FLOAT32,
    torch.float64: 1 << Dtype.FLOAT64,
    torch.bool: 1 << BOOL_BIT,
}


class Access(IntEnum):
    """What an operator does with a tensor; numbers as in ds_operand."""

    READ = 0
    WRITE = 1
    READ_WRITE = 2


@dataclass(frozen=True)
class Operand:
    """A tensor of an operator. Entries of its shape are numbers, or symbols that mean the same number everywhere."""

    name: str
    dtype: str
    shape: tuple[str, ...]
    access: Access = Access.READ
    optional: bool = False

    def row(self) -> OperandRow:
        """The same for the native library, where every operand is a field of that name."""
        dtypes = sum(NATIVE_BITS[dtype] for dtype in DTYPES[self.dtype])
        return OperandRow(self.access, self.optional, dtypes, self.shape, self.name)


class Operands(NamedTuple):
    """Tensors that have been checked: what a call of the C API needs to know of them."""

    extents: dict[str, int]  # by symbol
    place: Place
    addresses: dict[str, int]  # by name; not of None


@dataclass(frozen=True)
class Operator:
    """An operator: the tensors that it takes, those that it makes, and the numbers that it takes after the tensors, as
    torch.library writes them."""

    name: str
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]
    numbers: str

    def schema(self) -> str:
        """As torch.library.Library.define() takes it."""
        tensors = ", ".join(_declaration(index, operand) for index, operand in enumerate(self.operands))
        results = ", ".join("Tensor" for _ in self.results)
        return f"{self.name}({tensors}, {self.numbers}) -> ({results})"

    def rows(self) -> list[OperandRow]:
        """All tensors of a call."""
        return [operand.row() for operand in (*self.operands, *self.results)]

    def check(self, tensors: Sequence[torch.Tensor | None], **extents: int) -> dict[str, int]:
        """Checks everything that tensors without memory have too; gives the extents by symbol.

        Raises:
            ArgumentError: a tensor is not as its row of the table says.
        """
        first = next(tensor for tensor in tensors if tensor is not None)
        floats = None
        for operand, tensor in zip((*self.operands, *self.results), tensors, strict=False):  # results may be missing
            if tensor is None and operand.optional:
                continue
            if not isinstance(tensor, torch.Tensor):
                refuse_tensor(operand.name, type(tensor).__name__, "a torch.Tensor")
            _check_dtype(operand, tensor, floats)
            floats = tensor.dtype if operand.dtype == "float" else floats
            _check_shape(operand, tensor, extents)
            _check_memory(operand, tensor, first.device)
        return extents

    def run(self, call: TensorCall, tensors: Sequence[torch.Tensor | None], **extents: int) -> None:
        """Checks everything and calls. The native library finds out whether all is well; if it is not, this says why.

        Args:
            call: made with rows().
            tensors: operands, then results.
            extents: those that are known, by symbol.

        Raises:
            ArgumentError: a tensor is not as its row of the table says, or shares what is written.
        """
        if call(*tensors):
            return
        operands = self.read(tensors, **extents)
        dtype = NATIVE_DTYPES.get(tensors[0].dtype) if tensors[0] is not None else None
        call.call_checked(operands.place, dtype, operands.extents, operands.addresses)

    def read(self, tensors: Sequence[torch.Tensor | None], **extents: int) -> Operands:
        """Checks everything and gives addresses.

        Raises:
            ArgumentError: a tensor is not as its row of the table says, or shares what is written.
        """
        extents = self.check(tensors, **extents)
        pairs = zip((*self.operands, *self.results), tensors, strict=True)
        given = [(operand, tensor) for operand, tensor in pairs if tensor is not None]
        _check_overlap(given)
        somewhere = given[0][1].data_ptr()  # for tensors without elements: an address that nobody looks at
        addresses = {operand.name: tensor.data_ptr() or somewhere for operand, tensor in given}
        return Operands(extents, place_of(given[0][1].device), addresses)


def place_of(device: torch.device) -> Place:
    """A device, and PyTorch's current stream on it."""
    if device.type == "cpu":
        return Place(DeviceKind.CPU, 0, 0)
    index = torch.cuda.current_device() if device.index is None else device.index
    return Place(DeviceKind.CUDA, index, torch.cuda.current_stream(index).cuda_stream)


def _declaration(index: int, operand: Operand) -> str:
    alias = "" if operand.access is Access.READ else f"(a{index}!)"
    return f"Tensor{alias}{'?' if operand.optional else ''} {operand.name}"


def refuse_tensor(name: str, found: str, wanted: str, hint: str = "") -> NoReturn:
    """Raises the ArgumentError of a tensor that is not as it must be."""
    raise ArgumentError(f"{name} is {found}; it must be {wanted}", argument=name, hint=hint)


def _check_dtype(operand: Operand, tensor: torch.Tensor, floats: torch.dtype | None) -> None:
    allowed = (floats,) if operand.dtype == "float" and floats else DTYPES[operand.dtype]
    if tensor.dtype in allowed:
        return
    hint = f"convert it with .to({allowed[0]})"
    if tensor.dtype in LOW_PRECISION:
        hint = "convert it with .float(); half the bits are too few here, and autocast does not change that"
    refuse_tensor(operand.name, str(tensor.dtype), " or ".join(map(str, allowed)), hint)


def _check_shape(operand: Operand, tensor: torch.Tensor, extents: dict[str, int]) -> None:
    wanted = [int(symbol) if symbol.isdigit() else extents.get(symbol, symbol) for symbol in operand.shape]
    if tensor.dim() == len(wanted):
        found = zip(tensor.shape, wanted, strict=True)
        if all(isinstance(entry, str) or size == entry for size, entry in found):
            extents.update((symbol, size) for size, symbol in zip(tensor.shape, operand.shape, strict=True))
            return
    refuse_tensor(operand.name, f"of shape {list(tensor.shape)}", f"of shape [{', '.join(map(str, wanted))}]")


def _check_memory(operand: Operand, tensor: torch.Tensor, device: torch.device) -> None:
    if tensor.device != device:
        hint = f"move it with .to('{device}')"
        refuse_tensor(operand.name, f"on {tensor.device}", f"on {device}, as the others are", hint)
    if tensor.layout != torch.strided or not tensor.is_contiguous():
        refuse_tensor(operand.name, "not contiguous", "contiguous", "make it so with .contiguous()")
    if operand.access is not Access.READ and tensor.requires_grad:
        hint = "what is written has no gradient"
        refuse_tensor(operand.name, "a tensor that requires grad", "one that does not", hint)


def _check_overlap(given: Sequence[tuple[Operand, torch.Tensor]]) -> None:
    """What is written shares no byte with anything else."""
    spans = [(tensor.data_ptr(), tensor.nbytes, operand) for operand, tensor in given if tensor.numel()]
    end = written_end = 0  # how far those before reach
    last = last_written = given[0][0]
    for address, size, operand in sorted(spans, key=lambda span: span[0]):
        reads = operand.access is Access.READ
        if address < (written_end if reads else end):
            other = last_written if reads else last
            shared = f"partly the same memory as {other.name}"
            refuse_tensor(operand.name, shared, "memory of its own", "pass a .clone()")
        if address + size > end:
            end, last = address + size, operand
        if not reads and address + size > written_end:
            written_end, last_written = address + size, operand
