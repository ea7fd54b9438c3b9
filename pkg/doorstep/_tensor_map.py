"""The tensors of one simulator by name: views of its memory, assignment from other tensors, binding to other memory."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, final

import numpy as np

from doorstep._arguments import refuse
from doorstep._given import Given, check_fits, contiguous_copy, read_given, refuse_gaps
from doorstep._native import CAMERA_TENSORS, STREAM_OWN, TENSORS, CameraTensors, Place, Session
from doorstep.errors import AbsentTensorError, ArgumentError
from doorstep.tensor import Tensor, describe

TENSOR_INDEX = {row.name: index for index, row in enumerate(TENSORS)}
CAMERA_TENSOR_NAMES = tuple(row.name for row in CAMERA_TENSORS)
FLAT_TENSORS = ("observations", "final_observations")


INT32 = np.iinfo(np.int32)
INTEGERS = ("int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64")  # converted to int32 when assigned


@final
class TensorMap:
    """Makes the Tensor objects once, and new ones when they are bound to other memory."""

    __slots__ = ("_accepted", "_binding", "_device", "_session", "_tensors")

    def __init__(self, session: Session, device: str, *, flat_observations: bool) -> None:
        self._session = session
        self._device = device
        # Held while tensors are bound to other memory; reentrant, because a signal handler may run in the same thread.
        self._binding = threading.RLock()
        self._accepted: dict[
            str, tuple[object, ...]
        ] = {}  # dtype, shape and device that each tensor was set from last: checked already
        absent = () if flat_observations else FLAT_TENSORS
        memory = session.memory
        self._tensors: Mapping[str, Tensor] = MappingProxyType(
            {
                name: Tensor(name, session.tensor_info(index), memory, device)
                for name, index in TENSOR_INDEX.items()
                if name not in absent
            }
        )

    def add_cameras(self, cameras: CameraTensors) -> None:
        """The tensors of cameras come after all others."""
        views = {name: Tensor(name, *place, self._device) for name, place in cameras.tensors.items()}
        self._tensors = MappingProxyType({**self._tensors, **views})

    def all(self) -> Mapping[str, Tensor]:
        """By name, in the order of the table; raises ClosedError once the simulator is closed."""
        tensors = self._tensors  # read before the check: a thread that closes the simulator empties it afterwards
        _ = self._session.memory
        return tensors

    def __getitem__(self, name: str) -> Tensor:
        tensors = self.all()
        if name in tensors:
            return tensors[name]
        if name in CAMERA_TENSOR_NAMES:
            raise AbsentTensorError(
                f"this simulator has no cameras that make {name!r}",
                argument="cameras",
                hint=f"make the simulator with cameras=doorstep.Cameras({name}=True)",
            )
        if name not in TENSOR_INDEX:
            refuse("tensors", "the name of a tensor", name, f"this simulator has {', '.join(tensors)}")
        raise AbsentTensorError(
            f"flat_observations is False; it must be True for {name!r} to exist",
            argument="flat_observations",
            hint="make the simulator with flat_observations=True",
        )

    def forget(self) -> None:
        """Drops the tensors and with them the memory; tensors that users hold stay valid."""
        with self._binding:
            self._tensors = MappingProxyType({})
        self._session.let_go()

    # ---- Assignment ----

    def assign(self, name: str, value: object) -> None:
        """See Simulator: `sim.actions = value`."""
        tensor = self[name]
        if tensor.readonly:
            hint = "set `actions` or `resets`"
            if name in TENSOR_INDEX:
                hint += "; with bind() the simulator writes to memory of yours"
            raise ArgumentError(f"{describe(tensor)} is written by the simulator alone", argument=name, hint=hint)
        if value is tensor:  # `sim.actions += 1` has written the memory already
            return
        with self._session.turn:
            given = self._read_source(tensor, value)
            on_gpu = given.device != "cpu"
            self._session.set_tensor(TENSOR_INDEX[name], given.pointer, tensor.nbytes, on_gpu, given.stream)
            if on_gpu and given.stream is None:
                self._session.wait(None)

    def _read_source(self, tensor: Tensor, value: object) -> Given:
        """Memory with the tensor's dtype and layout: the value's own, or that of a converted copy."""
        given = read_given(tensor.name, value, written=False, stream=self._stream())
        kind = (given.dtype, given.shape, given.device)
        if self._accepted.get(tensor.name) != kind:
            self._check_source(tensor, given, value)
            self._accepted[tensor.name] = kind
        if given.dtype != str(tensor.dtype):
            return read_given(tensor.name, _as_int32(value, given), written=False, stream=self._stream())
        if given.contiguous:
            return given
        copy = contiguous_copy(value)
        if copy is None:
            refuse_gaps(tensor.name, given)
        return read_given(tensor.name, copy, written=False, stream=self._stream())

    def _check_source(self, tensor: Tensor, given: Given, value: object) -> None:
        convertible = given.dtype in INTEGERS or (given.dtype == "bool" and tensor.name == "resets")
        convertible &= given.device == "cpu" or hasattr(value, "clamp") or hasattr(value, "clip")
        same_type = given._replace(dtype=str(tensor.dtype)) if convertible else given
        device = "cpu" if given.device == "cpu" else self._device
        check_fits(tensor, same_type, value, device=device, bool_allowed=False)

    def _stream(self) -> int:
        """The CUstream that the simulator's next work goes to."""
        stream = self._session.stream.handle() if self._session.stream else None
        return STREAM_OWN if stream is None else stream

    # ---- Binding to other memory ----

    def bind(self, values: Mapping[str, object]) -> None:
        """See Simulator.bind()."""
        self._bind(values)
        self._session.let_go()

    def _bind(self, values: Mapping[str, object]) -> None:
        tensors = {name: self._bindable(name) for name in values}
        with self._session.turn:
            given = {name: self._read_place(tensors[name], value) for name, value in values.items()}
            places = [
                Place(TENSOR_INDEX[name], found.pointer or None, tensors[name].nbytes, found.owner, found.stream)
                for name, found in given.items()
            ]
            with self._binding:
                self._rebind(tuple(values), places)

    def _bindable(self, name: str) -> Tensor:
        tensor = self[name]
        if name in CAMERA_TENSOR_NAMES:
            raise ArgumentError(
                f"{describe(tensor)} is drawn in the simulator's own memory; it cannot be bound to other memory",
                argument=name,
                hint=f"copy it, or read sim.{name} in place",
            )
        return tensor

    def _rebind(self, names: Sequence[str], places: Sequence[Place]) -> None:
        memories = self._session.bind(places)
        bound = {
            name: Tensor(name, self._session.tensor_info(TENSOR_INDEX[name]), memory, self._device)
            for name, memory in zip(names, memories, strict=True)
        }
        if not self._session.closed:
            self._tensors = MappingProxyType({**self._tensors, **bound})

    def _read_place(self, tensor: Tensor, value: object) -> Given:
        if value is None:
            return NOWHERE
        given = read_given(tensor.name, value, written=True, stream=self._stream())
        check_fits(tensor, given, value, device=self._device, bool_allowed=True)
        if not given.contiguous:
            refuse_gaps(tensor.name, given)
        return given


def _as_int32(value: Any, given: Given) -> Any:
    """A copy as int32. What is out of its range becomes the nearest limit: no illegal action becomes a legal one."""
    limits = (INT32.min, INT32.max)
    is_wide = given.dtype in ("int64", "uint32", "uint64")
    if given.device == "cpu":
        array = np.asarray(value)
        return (array.clip(0 if given.dtype[0] == "u" else limits[0], limits[1]) if is_wide else array).astype(np.int32)
    if hasattr(value, "clamp"):  # PyTorch
        return (value.clamp(*limits) if is_wide else value).int()
    return (value.clip(*limits) if is_wide else value).astype("int32")


NOWHERE = Given(0, "", (), "", True, None, None)
