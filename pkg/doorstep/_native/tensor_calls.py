"""Calls of the C API on tensors: copies, training kernels, and steps of worlds that lie in tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, final

from doorstep._native._generated import (
    PYTHON_SIGNATURE_BYTES,
    TENSORS,
    Advantages,
    Batch,
    DeviceKind,
    Dtype,
    MultiDiscrete,
    Operand,
    Operator,
    OperatorFunction,
    PythonTensor,
)
from doorstep._native.calls import check, fast_calls, sized
from doorstep._native.library import load

CallStruct = Advantages | MultiDiscrete | Batch

TENSOR_NAMES = [row.name for row in TENSORS]
UNKNOWN = NOWHERE = -1
FUNCTIONS = {function: f"ds_{function.name.lower()}" for function in OperatorFunction} | {
    OperatorFunction.STEP: "ds_batch_step"
}

# Element types that a tensor of an operator may have, by the name in its TensorSpec.
ALLOWED_DTYPES = {
    "float": ("float32", "float64"),  # the same for all of an operator's
    "float32": ("float32",),
    "int32": ("int32",),
    "uint8": ("uint8",),
    "flag": ("bool", "uint8"),
}
# Bits of ds_operand's dtypes: those of ds_dtype, then bool.
DTYPE_BITS = {dtype.name.lower(): 1 << dtype for dtype in Dtype} | {"bool": 1 << len(Dtype)}


class OperandAccess(IntEnum):
    """Whether an operator reads or writes a tensor; numbers as in ds_operand."""

    READ = 0
    WRITE = 1
    READ_WRITE = 2


@dataclass(frozen=True)
class TensorSpec:
    """A tensor of an operator. Entries of its shape are numbers, or symbols that mean the same number everywhere.

    Its name is also that of the field of the call's struct, or of the simulator's tensor, that takes its address.
    """

    name: str
    dtype: str  # a key of ALLOWED_DTYPES
    shape: tuple[str, ...]
    access: OperandAccess = OperandAccess.READ
    optional: bool = False


class DeviceStream(NamedTuple):
    """The device of a call's tensors, and the CUstream that it uses."""

    device_kind: DeviceKind
    device_index: int
    stream: int


# ---- Copies and signatures of one tensor ----


def tensor_signature(tensor: PythonTensor) -> str:
    """See doorstep.interop.signature()."""
    text = ctypes.create_string_buffer(PYTHON_SIGNATURE_BYTES)
    check(load().ds_python_signature(ctypes.byref(tensor), text, None))
    return text.value.decode()


def copy_tensor(tensor: PythonTensor, stream: int, pointer: int, nbytes: int, *, to_pointer: bool) -> None:
    """Begins a copy between all elements and an address."""
    function = load().ds_python_copy_out if to_pointer else load().ds_python_copy_in
    check(function(ctypes.byref(tensor), stream, pointer, nbytes))


# ---- Operators ----


def prepare_training(device_index: int) -> None:
    """Loads the training kernels on a CUDA device, for the rest of the process."""
    check(load().ds_training_prepare(device_index))


def advantages_struct(gamma: float, gae_lambda: float, rho_clip: float = 0.0, c_clip: float = 0.0) -> Advantages:
    """The numbers of a call."""
    return sized(Advantages, gamma=gamma, gae_lambda=gae_lambda, rho_clip=rho_clip, c_clip=c_clip)


def multi_discrete_struct(sizes: Sequence[int]) -> MultiDiscrete:
    """The numbers of a call."""
    array = (ctypes.c_int32 * len(MultiDiscrete(0).sizes))(*sizes)
    return sized(MultiDiscrete, num_components=len(sizes), sizes=array)


@final
class TensorCall:
    """A call on tensors: everything but the tensors.

    Args:
        function: what is called.
        call: with its numbers; extents, types and addresses are filled in from the tensors.
        specs: the tensors that it takes.
        extents: those that are known, by symbol; any other is taken from the first tensor that has it.
        extent_fields: the fields of the call's struct for extents, by symbol.
    """

    def __init__(
        self,
        function: OperatorFunction,
        call: CallStruct,
        specs: Sequence[TensorSpec],
        extents: Mapping[str, int],
        extent_fields: Mapping[str, str],
    ) -> None:
        self._name = FUNCTIONS[function]
        self._template = call
        self._extent_fields = extent_fields
        symbols = list(dict.fromkeys(symbol for spec in specs for symbol in spec.shape))
        sizes = [int(symbol) if symbol.isdigit() else extents.get(symbol, UNKNOWN) for symbol in symbols]
        places = [
            getattr(type(call), extent_fields[symbol]).offset if symbol in extent_fields else NOWHERE
            for symbol in symbols
        ]
        self._extents = (ctypes.c_int64 * len(symbols))(*sizes)
        self._extents_at = (ctypes.c_int32 * len(symbols))(*places)
        self._operands = (Operand * len(specs))(*(_operand(spec, symbols, type(call)) for spec in specs))
        addresses = bytes(8 * len(TENSORS)) if isinstance(call, Batch) else b""
        self._call = ctypes.create_string_buffer(bytes(call) + addresses, ctypes.sizeof(call) + len(addresses))
        self._operator = Operator(
            ctypes.sizeof(Operator),
            function,
            len(specs),
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
        """Checks the tensors against their specs, and calls on PyTorch's current stream.

        False, with nothing done, if a tensor does not match its spec or there are no fast calls.
        """
        return self._fast is not None and bool(self._fast(self._address, *tensors))

    def call_checked(
        self, where: DeviceStream, dtype: Dtype | None, extents: Mapping[str, int], addresses: Mapping[str, int]
    ) -> None:
        """The same for tensors that have been checked. Addresses are by the names of the specs."""
        call = self.fill(where, dtype, extents, addresses)
        check(getattr(load(), self._name)(ctypes.byref(call)))

    def fill(
        self, where: DeviceStream, dtype: Dtype | None, extents: Mapping[str, int], addresses: Mapping[str, int]
    ) -> CallStruct:
        """The struct of such a call. It keeps no tensor alive."""
        call = type(self._template).from_buffer_copy(self._template)
        call.device_kind, call.device_index, call.stream = where
        for symbol, field in self._extent_fields.items():
            setattr(call, field, extents[symbol])
        if isinstance(call, Batch):
            tensors = (ctypes.c_void_p * len(TENSORS))(*(addresses.get(name) for name in TENSOR_NAMES))
            call.tensors = ctypes.addressof(tensors)
            call.keeps_tensors = tensors
            addresses = {name: address for name, address in addresses.items() if name not in TENSOR_NAMES}
        elif dtype is not None:
            call.dtype = dtype
        for name, address in addresses.items():
            setattr(call, name, address)
        return call


def _operand(spec: TensorSpec, symbols: Sequence[str], structure: type[ctypes.Structure]) -> Operand:
    if structure is Batch and spec.name in TENSOR_NAMES:
        address_at = ctypes.sizeof(Batch) + 8 * TENSOR_NAMES.index(spec.name)
    else:
        address_at = getattr(structure, spec.name).offset
    dtypes = sum(DTYPE_BITS[name] for name in ALLOWED_DTYPES[spec.dtype])
    axes = (ctypes.c_int32 * 4)(*map(symbols.index, spec.shape))
    return Operand(spec.access, spec.optional, dtypes, len(spec.shape), axes, address_at)
