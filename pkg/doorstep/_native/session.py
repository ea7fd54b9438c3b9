"""A simulator of the C API in Python's types: its handle, its memory, its calls. Values come here checked."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native._generated import DeviceKind, Health, SimulatorConfig, SimulatorInfo, TensorInfo
from doorstep._native.fast_calls import fast_calls
from doorstep._native.library import load
from doorstep._native.memory import Memory
from doorstep._native.simulator_stream import SimulatorStream
from doorstep._native.status import check
from doorstep._native.waiting import wait
from doorstep.errors import ClosedError

Slots: TypeAlias = NDArray[Any]  # int64, distinct


@final
class Session:
    """Ends with close(), with its last reference, or with the interpreter. Memory that was handed out outlives it.

    Args:
        settings: the fields of ds_simulator_config.
        current_stream: gives the CUDA stream that is current for this thread; None: the stream stays what it is.
        stream_owner: kept alive until the simulator has ended.
    """

    __slots__ = ("__weakref__", "_finalizer", "_memory", "_step", "_turn", "functions", "handle", "stream")

    def __init__(
        self, settings: dict[str, int], current_stream: Callable[[], int] | None, stream_owner: object
    ) -> None:
        self.functions = load()
        config = SimulatorConfig(struct_size=ctypes.sizeof(SimulatorConfig), **settings)
        handle, memory = ctypes.c_uint64(), ctypes.c_uint64()
        check(self.functions.ds_simulator_create(ctypes.byref(config), ctypes.byref(handle)))
        self.handle = handle.value
        self._finalizer = weakref.finalize(self, _end_simulator, self.handle, stream_owner)
        on_gpu = self.info().device_kind == DeviceKind.CUDA
        self.stream = SimulatorStream(self.handle, current_stream) if on_gpu else None
        self._turn: AbstractContextManager[None] = self.stream or nullcontext()
        calls = fast_calls()
        self._step = calls["step"] if calls else _step_with_ctypes
        check(self.functions.ds_simulator_get_memory(self.handle, ctypes.byref(memory)))
        self._memory: Memory | None = Memory(memory.value, self.stream)

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
        info = SimulatorInfo(struct_size=ctypes.sizeof(SimulatorInfo))
        check(self.functions.ds_simulator_get_info(self.handle, ctypes.byref(info)))
        return info

    def health(self) -> Health:
        health = Health(struct_size=ctypes.sizeof(Health))
        with self._turn:
            check(self.functions.ds_simulator_get_health(self.handle, ctypes.byref(health)))
        return health

    def tensor_info(self, index: int) -> TensorInfo:
        info = TensorInfo(struct_size=ctypes.sizeof(TensorInfo))
        check(self.functions.ds_simulator_get_tensor(self.handle, index, ctypes.byref(info)))
        return info

    def state_info(self, index: int) -> TensorInfo:
        info = TensorInfo(struct_size=ctypes.sizeof(TensorInfo))
        with self._turn:
            check(self.functions.ds_simulator_get_state(self.handle, index, ctypes.byref(info)))
        return info

    def step(self) -> None:
        with self._turn:
            self._step(self.handle)

    def step_async(self) -> int:
        event = ctypes.c_uint64()
        with self._turn:
            check(self.functions.ds_simulator_step_async(self.handle, ctypes.byref(event)))
        return event.value

    def wait(self, timeout: float | None) -> bool:
        return wait(self.functions.ds_simulator_wait, self.handle, timeout)

    def reset(self, worlds: Slots | None) -> None:
        with self._turn:
            check(self.functions.ds_simulator_reset(self.handle, *_pointer_and_count(worlds)))

    def reset_mask(self, mask: NDArray[Any]) -> None:
        with self._turn:
            check(self.functions.ds_simulator_reset_mask(self.handle, mask.ctypes.data, mask.size))

    def refresh(self) -> None:
        with self._turn:
            check(self.functions.ds_simulator_refresh(self.handle))

    def save(self, worlds: Slots | None, num_worlds: int) -> bytes:
        size = ctypes.c_uint64()
        count = num_worlds if worlds is None else worlds.size
        check(self.functions.ds_simulator_save_size(self.handle, count, ctypes.byref(size)))
        buffer = np.empty(size.value, np.uint8)
        pointer = None if worlds is None else worlds.ctypes.data
        with self._turn:
            check(self.functions.ds_simulator_save(self.handle, pointer, count, buffer.ctypes.data, buffer.nbytes))
        return buffer.tobytes()

    def restore(self, data: NDArray[np.uint8], worlds: Slots | None) -> None:
        pointer, count = _pointer_and_count(worlds)
        with self._turn:
            check(self.functions.ds_simulator_restore(self.handle, data.ctypes.data, data.nbytes, pointer, count))

    def hash(self, worlds: Slots | None) -> int:
        value = ctypes.c_uint64()
        with self._turn:
            check(self.functions.ds_simulator_hash(self.handle, *_pointer_and_count(worlds), ctypes.byref(value)))
        return value.value

    def world_hashes(self, num_worlds: int) -> NDArray[np.uint64]:
        hashes = np.empty(num_worlds, np.uint64)
        with self._turn:
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


def _end_simulator(handle: int, _stream_owner: object) -> None:
    load().ds_simulator_close(handle)


@final
class EventHandle:
    """The end of an asynchronous step; closed with its last reference."""

    __slots__ = ("__weakref__", "_handle")

    def __init__(self, handle: int) -> None:
        self._handle = handle
        weakref.finalize(self, load().ds_event_close, handle)

    def wait(self, timeout: float | None) -> bool:
        return wait(load().ds_event_wait, self._handle, timeout)


def _pointer_and_count(worlds: Slots | None) -> tuple[int | None, int]:
    return (None, 0) if worlds is None else (worlds.ctypes.data, worlds.size)
