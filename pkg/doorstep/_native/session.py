"""A simulator of the C API in Python's types: its handle, its memory, its calls. Values come here checked."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._copies import Owner
from doorstep._native._generated import (
    Binding,
    DeviceKind,
    EpisodeStart,
    Health,
    Level,
    LevelRewards,
    SimulatorConfig,
    SimulatorInfo,
    TensorInfo,
)
from doorstep._native.calls import check, fast_calls, read_struct, read_value, sized, wait
from doorstep._native.finalizer import Finalizer
from doorstep._native.handle import Handle, new_handle
from doorstep._native.library import LIBRARY_PATH, PYTHON, load
from doorstep._native.memory import Memory
from doorstep._native.simulator_stream import SimulatorStream
from doorstep.errors import ClosedError

Slots: TypeAlias = NDArray[Any]  # int64, distinct


def create_saved_state(saved: bytes) -> Handle:
    """Raises StateError if it is not a save of one world, damaged, or if its episode is over."""
    made = new_handle(load().ds_saved_state_create, saved, len(saved))
    return Handle(made, load().ds_saved_state_release)


class Place(NamedTuple):
    """Memory that a tensor is moved to.

    Attributes:
        tensor: its number.
        pointer: None for the simulator's own memory.
        nbytes: of the whole tensor.
        owner: kept alive as long as the memory is used.
        stream: the CUstream on which the caller uses the memory; None: the simulator's.
        words: see `ds_simulator_watch()`: at most two; none: the memory stays where it is.
    """

    tensor: int
    pointer: int | None
    nbytes: int
    owner: object
    stream: int | None
    words: Sequence[int] = ()


@final
class Session(Owner):
    """Ends with close(), with its last reference, or with the interpreter. Exported memory outlives it.

    Args:
        settings: the fields of ds_simulator_config.
        current_stream: returns the CUDA stream that is current for this thread; None: the stream is fixed.
        stream_owner: kept alive until the simulator has ended.
    """

    __slots__ = ("__weakref__", "_finalizer", "_memory", "_step", "functions", "handle", "stream", "turn")

    def __init__(
        self, settings: dict[str, Any], current_stream: Callable[[], int] | None, stream_owner: object
    ) -> None:
        self.functions = load()
        config = sized(SimulatorConfig, **settings)
        self.handle = new_handle(self.functions.ds_simulator_create, ctypes.byref(config))
        self._finalizer = Finalizer(self, _end_simulator, self.handle, stream_owner, at_exit=True)
        on_gpu = self.info().device_kind == DeviceKind.CUDA
        self.stream = SimulatorStream(self.handle, current_stream, config.stream) if on_gpu else None
        self.turn: AbstractContextManager[None] = self.stream or nullcontext()
        calls = fast_calls()
        self._step = calls["step"] if calls else _step_with_ctypes
        memory = new_handle(self.functions.ds_simulator_get_memory, self.handle)
        self._memory: Memory | None = Memory(memory, self.stream)

    def close(self) -> None:
        self._finalizer()
        self._memory = None

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    @property
    def memory(self) -> Memory:
        if self._memory is None:
            raise ClosedError("this simulator was closed", hint="make a new one; tensors taken before stay valid")
        return self._memory

    def info(self) -> SimulatorInfo:
        return read_struct(self.functions.ds_simulator_get_info, SimulatorInfo, self.handle)

    def health(self) -> Health:
        with self.turn:
            return read_struct(self.functions.ds_simulator_get_health, Health, self.handle)

    def tensor_info(self, index: int) -> TensorInfo:
        return read_struct(self.functions.ds_simulator_get_tensor, TensorInfo, self.handle, index)

    def state_info(self, index: int) -> TensorInfo:
        with self.turn:
            return read_struct(self.functions.ds_simulator_get_state, TensorInfo, self.handle, index)

    def viewed_state_info(self, index: int) -> TensorInfo:
        """For reading only: steps do not check the memory for edits."""
        with self.turn:
            return read_struct(self.functions.ds_simulator_view_state, TensorInfo, self.handle, index)

    def set_levels(self, levels: ctypes.Array[Level], weights: NDArray[np.float32] | None) -> None:
        """weights: as many as levels, or None for equal ones."""
        pointer = None if weights is None else weights.ctypes.data
        with self.turn:
            check(self.functions.ds_simulator_set_levels(self.handle, levels, len(levels), pointer))

    def set_rewards(self, rewards: LevelRewards) -> None:
        with self.turn:
            check(self.functions.ds_simulator_set_rewards(self.handle, ctypes.byref(rewards)))

    def on_stream(self, stream: int | None) -> AbstractContextManager[None]:
        """Within it, calls use the CUstream, if one is given."""
        return self.turn if stream is None or self.stream is None else self.stream.moved_to(stream)

    def set_tensor(self, index: int, pointer: int, nbytes: int, on_gpu: bool, stream: int | None) -> None:
        """Copies from memory of the host or, on a CUstream, of the simulator's GPU."""
        kind = DeviceKind.CUDA if on_gpu else DeviceKind.CPU
        with self.on_stream(stream):
            check(self.functions.ds_simulator_set_tensor(self.handle, index, pointer, nbytes, kind))

    def setter(self, index: int) -> Callable[[object], bool]:
        """Sets a tensor from an array and returns True; False, with nothing done, for arrays that it does not read."""
        calls = fast_calls()
        if calls is None or self.stream is not None:
            return lambda _: False
        setter: Callable[[object], bool] = calls["bind_setter"](self.handle, index)
        return setter

    def bind(self, places: Sequence[Place]) -> list[Memory]:
        """Moves tensors with their elements, all or none. Returns references to their new memories."""
        count = len(places)
        memories = (ctypes.c_uint64 * count)()
        bind = self.functions.ds_simulator_bind
        with ExitStack() as streams:
            for stream in {place.stream for place in places}:
                streams.enter_context(self.on_stream(stream))
            self._move(places, lambda bindings: bind(self.handle, bindings, count, memories))
        made = [Memory(memory, self.stream, bool(place.words)) for memory, place in zip(memories, places, strict=True)]
        for place in places:
            if place.words:
                check(self.functions.ds_simulator_watch(self.handle, place.tensor, *(*place.words, None)[:2]))
        return made

    def _move(self, places: Sequence[Place], call: Callable[[ctypes.Array[Binding]], int]) -> None:
        """The call takes over a reference to each owner, if it does not fail."""
        release = ctypes.cast(self.functions.ds_python_release, ctypes.c_void_p).value
        bindings = (Binding * len(places))()
        for binding, place in zip(bindings, places, strict=True):
            binding.tensor, binding.data, binding.bytes = place.tensor, place.pointer, place.nbytes
            binding.owner, binding.release_owner = id(place.owner), release
        owners = [ctypes.py_object(place.owner) for place in places]
        for owner in owners:
            PYTHON.Py_IncRef(owner)
        status = call(bindings)
        if status:
            for owner in owners:
                PYTHON.Py_DecRef(owner)
        check(status)

    def redirector(self, index: int) -> Callable[[NDArray[Any] | None], None]:
        """Redirects a tensor on the CPU to arrays like it, see ds_simulator_redirect; None: to the simulator's memory.

        The simulator refers to the array until it is redirected again.
        """
        calls = fast_calls()
        if calls is None:
            return functools.partial(self._redirect, index)
        redirect: Callable[[NDArray[Any] | None], None] = calls["bind_redirect"](self.handle, index)
        return redirect

    def _redirect(self, index: int, array: NDArray[Any] | None) -> None:
        pointer, nbytes = (None, 0) if array is None else (array.ctypes.data, array.nbytes)
        place = Place(index, pointer, nbytes, array, None)
        self._move([place], lambda bindings: self.functions.ds_simulator_redirect(self.handle, bindings))
        self.release_owners()

    def release_owners(self) -> None:
        """Releases owners of memory that is no longer bound, which Python's main thread would do when it is not busy.

        Their finalizers run here: callers hold no lock.
        """
        _with_gil().ds_python_release_now()

    def step(self) -> None:
        with self.turn:
            self._step(self.handle)

    def step_async(self) -> int:
        with self.turn:
            return new_handle(self.functions.ds_simulator_step_async, self.handle)

    def wait(self, timeout: float | None) -> bool:
        # One for all slices: steps that are begun meanwhile are not waited for
        return EventHandle(new_handle(self.functions.ds_simulator_get_end, self.handle)).wait(timeout)

    def reset(self, worlds: Slots | None) -> None:
        with self.turn:
            check(self.functions.ds_simulator_reset(self.handle, *_pointer_and_count(worlds)))

    def reset_mask(self, mask: NDArray[Any]) -> None:
        with self.turn:
            check(self.functions.ds_simulator_reset_mask(self.handle, mask.ctypes.data, mask.size))

    def begin(self, worlds: Slots, seeds: NDArray[np.int64], max_steps: int) -> None:
        """Begins an episode in each of the worlds; all have the same limit, 0 for none."""
        starts = (EpisodeStart * len(worlds))()
        for start, world, seed in zip(starts, worlds.tolist(), seeds.tolist(), strict=True):
            start.world, start.seed, start.max_steps = world, seed, max_steps
        with self.turn:
            check(self.functions.ds_simulator_begin(self.handle, starts, len(starts)))

    def resume(self, world: int, saved: bytes) -> None:
        state = create_saved_state(saved)
        start = EpisodeStart(world=world, state=state.value)
        with self.turn:
            check(self.functions.ds_simulator_begin(self.handle, ctypes.byref(start), 1))

    def refresh(self) -> None:
        with self.turn:
            check(self.functions.ds_simulator_refresh(self.handle))

    def save(self, worlds: Slots | None, num_worlds: int) -> bytes:
        count = num_worlds if worlds is None else worlds.size
        size = read_value(self.functions.ds_simulator_save_size, ctypes.c_uint64, self.handle, count)
        buffer = np.empty(size, np.uint8)
        pointer = None if worlds is None else worlds.ctypes.data
        with self.turn:
            check(self.functions.ds_simulator_save(self.handle, pointer, count, buffer.ctypes.data, buffer.nbytes))
        return buffer.tobytes()

    def restore(self, data: NDArray[np.uint8], worlds: Slots | None) -> None:
        pointer, count = _pointer_and_count(worlds)
        with self.turn:
            check(self.functions.ds_simulator_restore(self.handle, data.ctypes.data, data.nbytes, pointer, count))

    def hash(self, worlds: Slots | None) -> int:
        function, chosen = self.functions.ds_simulator_hash, _pointer_and_count(worlds)
        with self.turn:
            value: int = read_value(function, ctypes.c_uint64, self.handle, *chosen)
        return value

    def world_hashes(self, num_worlds: int) -> NDArray[np.uint64]:
        hashes = np.empty(num_worlds, np.uint64)
        with self.turn:
            check(self.functions.ds_simulator_world_hashes(self.handle, hashes.ctypes.data, hashes.size))
        return hashes

    def set_profiling(self, enabled: bool) -> None:
        check(self.functions.ds_simulator_profile(self.handle, enabled))

    def profile(self, num_stages: int) -> list[int]:
        ticks = np.zeros(num_stages, np.uint64)
        check(self.functions.ds_simulator_get_profile(self.handle, ticks.ctypes.data, ticks.size))
        return [int(count) for count in ticks]


def _step_with_ctypes(handle: int) -> None:
    check(load().ds_simulator_step(handle))


@functools.cache
def _with_gil() -> ctypes.PyDLL:
    """The library, for calls that keep the GIL."""
    library = ctypes.PyDLL(LIBRARY_PATH)
    library.ds_python_release_now.restype = None
    return library


def _end_simulator(handle: int, _stream_owner: object) -> None:
    if not threading.main_thread().is_alive():  # the interpreter exits
        _silence_daemon_threads()
    load().ds_simulator_close(handle)


@functools.cache
def _silence_daemon_threads() -> None:
    """Simulators end before daemon threads do: their ClosedError is no news at the interpreter's exit."""
    report = threading.excepthook

    def report_others(arguments: threading.ExceptHookArgs) -> None:
        thread = arguments.thread
        if not (issubclass(arguments.exc_type, ClosedError) and thread is not None and thread.daemon):
            report(arguments)

    threading.excepthook = report_others


@final
class EventHandle(Owner):
    """The end of an asynchronous step; closed with its last reference."""

    __slots__ = ("__weakref__", "_handle")

    def __init__(self, handle: int) -> None:
        self._handle = handle
        Finalizer(self, load().ds_event_close, handle)

    def wait(self, timeout: float | None) -> bool:
        return wait(load().ds_event_wait, self._handle, timeout)


def _pointer_and_count(worlds: Slots | None) -> tuple[int | None, int]:
    return (None, 0) if worlds is None else (worlds.ctypes.data, worlds.size)
