"""The tensors of one simulator by name: views of its memory, assignment from other tensors, binding to other memory."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import final

from doorstep._arguments import refuse
from doorstep._native import CAMERA_TENSORS, STREAM_OWN, TENSORS, CameraTensors, Place, Session
from doorstep._native.foreign_tensor import ELEMENT_TYPES, ForeignTensor
from doorstep._tensors.checks import ReadRules, check_fits, refuse_gaps
from doorstep._tensors.libraries import INTEGERS, contiguous_copy, int32_copy, is_convertible, memory_owner
from doorstep._tensors.reader import read_memory
from doorstep.config import SimulatorConfig
from doorstep.errors import AbsentTensorError, ArgumentError
from doorstep.tensor import Tensor, describe

TENSOR_INDEX = {row.name: index for index, row in enumerate(TENSORS)}
CAMERA_TENSOR_NAMES = tuple(row.name for row in CAMERA_TENSORS)
FLAT_TENSORS = tuple(row.name for row in TENSORS if row.flat)
LEVEL_TENSORS = tuple(row.name for row in TENSORS if row.levels)

INT32 = ELEMENT_TYPES["int32"]  # of `actions` and `resets`, which take other integers too


@final
class TensorMap:
    """Makes the Tensor objects once, and new ones when they are bound to other memory."""

    __slots__ = ("_accepted", "_binding", "_device", "_session", "_tensors")

    def __init__(self, session: Session, device: str, config: SimulatorConfig) -> None:
        self._session = session
        self._device = device
        # Held while tensors are bound to other memory; reentrant, because a signal handler may run in the same thread.
        self._binding = threading.RLock()
        # dtype, shape and device that each tensor was set from last: checked already
        self._accepted: dict[str, tuple[object, ...]] = {}
        no_flat = () if config.has_flat_observations else FLAT_TENSORS
        absent = {*no_flat, *(() if config.max_levels else LEVEL_TENSORS)}
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
        if name in LEVEL_TENSORS:
            raise AbsentTensorError(
                f"max_levels is 0; it must be at least 1 for {name!r} to exist",
                argument="max_levels",
                hint="make the simulator with max_levels=8, or as many as you have",
            )
        raise AbsentTensorError(
            f"observations is 'by_name'; it must be parts for {name!r} to exist",
            argument="observations",
            hint="make the simulator with observations=doorstep.OBSERVATIONS, the default",
        )

    def forget(self) -> None:
        """Releases the tensors, and with them their memory; those that users hold stay valid."""
        with self._binding:
            self._tensors = MappingProxyType({})
        self._session.release_owners()

    # ---- Assignment ----

    def assign(self, name: str, value: object) -> None:
        """See Simulator: `sim.actions = value`."""
        tensor = self[name]
        if tensor.readonly:
            hint = "set `actions`, `resets` or `level_weights`"
            if name in TENSOR_INDEX:
                hint += "; with bind() the simulator writes to memory of yours"
            raise ArgumentError(f"only the simulator writes {describe(tensor)}", argument=name, hint=hint)
        if value is tensor:  # `sim.actions += 1` has written the memory already
            return
        with self._session.turn:
            given = self._read_source(tensor, value)
            on_gpu = given.device != "cpu"
            self._session.set_tensor(TENSOR_INDEX[name], given.pointer, tensor.nbytes, on_gpu, given.stream)
            if on_gpu and given.stream is None:
                self._session.wait(None)

    def _read_source(self, tensor: Tensor, value: object) -> ForeignTensor:
        """Memory with the tensor's dtype and layout: the value's own, or that of a converted copy."""
        rules = ReadRules(tensor.name, stream=self._stream())
        given = read_memory(value, rules)
        kind = (given.dtype, given.shape, given.device)
        if self._accepted.get(tensor.name) != kind:
            self._check_source(tensor, given)
            self._accepted[tensor.name] = kind
        if ELEMENT_TYPES[str(tensor.dtype)] == INT32 != given.dtype:
            given = read_memory(int32_copy(given), rules)
        if given.contiguous:
            return given
        copy = contiguous_copy(given)
        if copy is None:
            refuse_gaps(tensor.name, given)
        return read_memory(copy, rules)

    def _check_source(self, tensor: Tensor, given: ForeignTensor) -> None:
        from_integers = given.dtype.name in INTEGERS and str(tensor.dtype) == "int32"
        convertible = from_integers or (given.dtype.name == "bool" and tensor.name == "resets")
        dtype = given.dtype.name if convertible and is_convertible(given) else str(tensor.dtype)
        device = "cpu" if given.device == "cpu" else self._device
        check_fits(given, tensor.name, dtype, tensor.shape, device, bool_allowed=False)

    def _stream(self) -> int:
        """The CUstream that the simulator's next work goes to."""
        stream = self._session.stream.handle() if self._session.stream else None
        return STREAM_OWN if stream is None else stream

    # ---- Binding to other memory ----

    def bind(self, values: Mapping[str, object]) -> None:
        """See Simulator.bind()."""
        tensors = {name: self[name] for name in values}
        for name in {*tensors}.intersection(CAMERA_TENSOR_NAMES):
            raise ArgumentError(
                f"{describe(tensors[name])} is drawn in the simulator's own memory; it cannot be bound to other memory",
                argument=name,
                hint=f"copy it, or read sim.{name} in place",
            )
        with self._session.turn:
            places = [self._read_place(tensors[name], value) for name, value in values.items()]
            with self._binding:
                bound = {
                    name: Tensor(name, self._session.tensor_info(TENSOR_INDEX[name]), memory, self._device)
                    for name, memory in zip(tensors, self._session.bind(places), strict=True)
                }
                if not self._session.closed:
                    self._tensors = MappingProxyType({**self._tensors, **bound})
        del tensors  # they refer to the memory that is no longer used
        self._session.release_owners()

    def _read_place(self, tensor: Tensor, value: object) -> Place:
        index = TENSOR_INDEX[tensor.name]
        if value is None:
            return Place(index, None, tensor.nbytes, None, None)
        rules = ReadRules(tensor.name, requires_grad_allowed=False, written=True, stream=self._stream())
        given = read_memory(value, rules)
        check_fits(given, tensor.name, str(tensor.dtype), tensor.shape, self._device, bool_allowed=True)
        if not given.contiguous:
            refuse_gaps(tensor.name, given)
        owner, words = memory_owner(given)
        return Place(index, given.pointer or None, tensor.nbytes, owner, given.stream, words if given.pointer else ())
