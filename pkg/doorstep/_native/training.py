"""Calls of the C API on tensors: training kernels, and steps of worlds that lie in tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

from doorstep._native._generated import (
    TENSORS,
    Advantages,
    Batch,
    DeviceKind,
    Dtype,
    MultiDiscrete,
    Operand,
    Operator,
    OperatorFunction,
)
from doorstep._native.fast_calls import fast_calls
from doorstep._native.library import load
from doorstep._native.status import check

CallStruct = Advantages | MultiDiscrete | Batch

TENSOR_NAMES = [row.name for row in TENSORS]
UNKNOWN = NOWHERE = -1
BOOL_BIT = 5  # of ds_operand's dtypes, beside those of ds_dtype
FUNCTIONS = {function: f"ds_{function.name.lower()}" for function in OperatorFunction} | {
    OperatorFunction.STEP: "ds_batch_step"
}


class Place(NamedTuple):
    """Where the tensors of a call lie, and the CUstream that its work goes to."""

    device_kind: DeviceKind
    device_index: int
    stream: int


class OperandRow(NamedTuple):
    """A tensor that a call takes, as ds_operand has it, with names for what that has numbers for."""

    access: int
    optional: bool
    dtypes: int
    shape: tuple[str, ...]  # symbols of extents, or numbers
    field: str  # of the call's struct, or a tensor of the simulator: where the address goes


def prepare_training(device_index: int) -> None:
    """Loads the training kernels on a CUDA device for the rest of the process."""
    check(load().ds_training_prepare(device_index))


def prepare_batches(device_index: int, num_agents: int) -> None:
    """Loads what steps of worlds need on a CUDA device for the rest of the process."""
    batch = Batch(ctypes.sizeof(Batch), DeviceKind.CUDA, device_index, num_agents=num_agents)
    check(load().ds_batch_prepare(ctypes.byref(batch)))


def advantages_struct(discount: float, trace_decay: float, rho_clip: float, c_clip: float) -> Advantages:
    """The numbers of a call."""
    size = ctypes.sizeof(Advantages)
    return Advantages(size, discount=discount, trace_decay=trace_decay, rho_clip=rho_clip, c_clip=c_clip)


def multi_discrete_struct(sizes: Sequence[int]) -> MultiDiscrete:
    """The numbers of a call."""
    array = (ctypes.c_int32 * len(MultiDiscrete(0).sizes))(*sizes)
    return MultiDiscrete(ctypes.sizeof(MultiDiscrete), num_components=len(sizes), sizes=array)


def batch_struct(num_agents: int, episode_length: int, auto_reset: bool, action_check: int) -> Batch:
    """The numbers of a call."""
    rules = {"num_agents": num_agents, "episode_length": episode_length}
    return Batch(ctypes.sizeof(Batch), auto_reset=auto_reset, action_check=action_check, **rules)


@final
class TensorCall:
    """A call on tensors: everything but the tensors.

    Args:
        function: what is called.
        call: with its numbers; what the tensors tell is filled in.
        rows: the tensors that it takes.
        extents: those that are known, by symbol; any other is what the first tensor that has it says.
        extent_fields: the fields of the call's struct for extents, by symbol.
    """

    def __init__(
        self,
        function: OperatorFunction,
        call: CallStruct,
        rows: Sequence[OperandRow],
        extents: Mapping[str, int],
        extent_fields: Mapping[str, str],
    ) -> None:
        self._name = FUNCTIONS[function]
        self._template = call
        self._rows = rows
        self._extent_fields = extent_fields
        symbols = list(dict.fromkeys(symbol for row in rows for symbol in row.shape))
        sizes = [int(symbol) if symbol.isdigit() else extents.get(symbol, UNKNOWN) for symbol in symbols]
        places = [
            getattr(type(call), extent_fields[symbol]).offset if symbol in extent_fields else NOWHERE
            for symbol in symbols
        ]
        self._extents = (ctypes.c_int64 * len(symbols))(*sizes)
        self._extents_at = (ctypes.c_int32 * len(symbols))(*places)
        self._operands = (Operand * len(rows))(*(_operand(row, symbols, type(call)) for row in rows))
        addresses = bytes(8 * len(TENSORS)) if isinstance(call, Batch) else b""
        self._call = ctypes.create_string_buffer(bytes(call) + addresses, ctypes.sizeof(call) + len(addresses))
        self._operator = Operator(
            ctypes.sizeof(Operator),
            function,
            len(rows),
            len(symbols),
            ctypes.addressof(self._operands),
            ctypes.addressof(self._extents),
            ctypes.addressof(self._extents_at),
            ctypes.addressof(self._call),
            len(self._call),
            NOWHERE if isinstance(call, Batch) else type(call).dtype.offset,  # type: ignore[attr-defined]
        )
        self._address = ctypes.addressof(self._operator)
        calls = fast_calls()
        self._fast = calls["call_operator"] if calls else None

    def __call__(self, *tensors: object) -> bool:
        """Checks the tensors against the rows, and calls on PyTorch's current stream. False, and nothing is done, if
        one is not as it must be, or there are no fast calls."""
        return self._fast is not None and bool(self._fast(self._address, *tensors))

    def call_checked(
        self, place: Place, dtype: Dtype | None, extents: Mapping[str, int], addresses: Mapping[str, int]
    ) -> None:
        """The same for tensors that have been checked. Addresses are by the rows' fields."""
        call = self.fill(place, dtype, extents, addresses)
        check(getattr(load(), self._name)(ctypes.byref(call)))

    def fill(
        self, place: Place, dtype: Dtype | None, extents: Mapping[str, int], addresses: Mapping[str, int]
    ) -> CallStruct:
        """The struct of such a call. It holds no tensor."""
        call = type(self._template).from_buffer_copy(self._template)
        call.device_kind, call.device_index, call.stream = place
        for symbol, field in self._extent_fields.items():
            setattr(call, field, extents[symbol])
        if isinstance(call, Batch):
            tensors = (ctypes.c_void_p * len(TENSORS))(*(addresses.get(name) for name in TENSOR_NAMES))
            call.tensors = ctypes.addressof(tensors)
            call.keeps_tensors = tensors
            addresses = {name: address for name, address in addresses.items() if name not in TENSOR_NAMES}
        elif dtype is not None:
            call.dtype = dtype
        for field, address in addresses.items():
            setattr(call, field, address)
        return call


def create_batch(call: CallStruct, seed: int, world_offset: int) -> None:
    """ds_batch_create()."""
    check(load().ds_batch_create(ctypes.byref(call), seed, world_offset))


def _operand(row: OperandRow, symbols: Sequence[str], structure: type[ctypes.Structure]) -> Operand:
    if structure is Batch and row.field in TENSOR_NAMES:
        place = ctypes.sizeof(Batch) + 8 * TENSOR_NAMES.index(row.field)
    else:
        place = getattr(structure, row.field).offset
    axes = (ctypes.c_int32 * 4)(*map(symbols.index, row.shape))
    return Operand(row.access, row.optional, row.dtypes, len(row.shape), axes, place)
