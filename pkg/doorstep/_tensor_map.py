"""The tensors of one simulator: where they lie, and what they are set from."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import final

from doorstep._arguments import refuse
from doorstep._given import Given, check_fits, contiguous_copy, read_given, refuse_gaps
from doorstep._native import CAMERA_TENSORS, STREAM_OWN, TENSORS, CameraTensors, Place, Session
from doorstep.errors import ArgumentError
from doorstep.tensor import Tensor

TENSOR_INDEX = {row.name: index for index, row in enumerate(TENSORS)}
CAMERA_TENSOR_NAMES = tuple(row.name for row in CAMERA_TENSORS)
FLAT_TENSORS = ("observations", "final_observations")


@final
class TensorMap:
    """Describes the tensors once, and again when they are bound to other memory."""

    __slots__ = ("_accepted", "_binding", "_device", "_session", "_tensors")

    def __init__(self, session: Session, device: str, flat_observations: bool) -> None:
        self._session = session
        self._device = device
        # Held over a change of where tensors lie; a signal handler may come back in the same thread.
        self._binding = threading.RLock()
        self._accepted: dict[str, tuple[object, ...]] = {}  # the latest kind of memory that each tensor was set from
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
        """By name, in the order of the table; ClosedError once the simulator is closed."""
        tensors = self._tensors  # taken before the check: a thread that closes meanwhile empties it after that
        _ = self._session.memory
        return tensors

    def __getitem__(self, name: str) -> Tensor:
        tensors = self.all()
        if name in tensors:
            return tensors[name]
        if name in CAMERA_TENSOR_NAMES:
            raise ArgumentError(
                f"this simulator has no cameras that make {name!r}",
                argument="cameras",
                hint=f"make the simulator with cameras=doorstep.Cameras({name}=True)",
            )
        if name not in TENSOR_INDEX:
            refuse("tensors", "the name of a tensor", name, f"this simulator has {', '.join(tensors)}")
        raise ArgumentError(
            f"flat_observations is False; it must be True for {name!r} to exist",
            argument="flat_observations",
            hint="make the simulator with flat_observations=True",
        )

    def forget(self) -> None:
        """Lets go of the tensors, and of the memory with them; those that users took stay valid."""
        with self._binding:
            self._tensors = MappingProxyType({})
        self._session.let_go()

    # ---- Tensors set from others ----

    def assign(self, name: str, value: object) -> None:
        """See Simulator: `sim.actions = value`."""
        tensor = self[name]
        if tensor.readonly:
            hint = "set `actions` or `resets`"
            if name in TENSOR_INDEX:
                hint += "; with bind() the simulator writes to memory of yours"
            raise ArgumentError(f"{tensor!r} is written by the simulator alone", argument=name, hint=hint)
        with self._session.turn:
            given = self._read_source(tensor, value)
            on_gpu = given.device != "cpu"
            self._session.set_tensor(TENSOR_INDEX[name], given.pointer, tensor.nbytes, on_gpu, given.stream)
            if on_gpu and given.stream is None:
                self._session.wait(None)

    def _read_source(self, tensor: Tensor, value: object) -> Given:
        given = read_given(tensor.name, value, written=False, stream=self._stream())
        device = "cpu" if given.device == "cpu" else self._device
        kind = (given.dtype, given.shape, given.device)
        if self._accepted.get(tensor.name) != kind:
            check_fits(tensor, given, value, device=device, bool_allowed=False)
            self._accepted[tensor.name] = kind
        if given.contiguous:
            return given
        copy = contiguous_copy(value)
        if copy is None:
            refuse_gaps(tensor.name, given)
        return read_given(tensor.name, copy, written=False, stream=self._stream())

    def _stream(self) -> int:
        """The CUstream that the simulator's next work goes to."""
        stream = self._session.stream.handle() if self._session.stream else None
        return STREAM_OWN if stream is None else stream

    # ---- Tensors in memory of others ----

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
                f"{tensor!r} is drawn in the simulator's own memory; it cannot be bound to other memory",
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


NOWHERE = Given(0, "", (), "", True, None, None)
