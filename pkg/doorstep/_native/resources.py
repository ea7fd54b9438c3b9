"""Handles of CUDA resources. The library keeps the parents of each alive: a stream's context, the stream of memory."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, final

from doorstep._copies import Owner
from doorstep._native._generated import ResourceInfo, ResourceKind, RowCopy
from doorstep._native.calls import check, read_struct, read_value, sized, wait
from doorstep._native.finalizer import Finalizer
from doorstep._native.handle import new_handle
from doorstep._native.library import load
from doorstep.errors import ClosedError, Status


@final
class Resource(Owner):
    """One handle, released by close() or with the last reference to this object."""

    __slots__ = ("__weakref__", "_finalizer", "_handle")

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._finalizer = Finalizer(self, load().ds_resource_release, handle)

    @property
    def handle(self) -> int:
        if self.closed:
            raise ClosedError("this CUDA object was closed", hint="make a new one")
        return self._handle

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    def close(self) -> None:
        self._finalizer()

    def info(self) -> ResourceInfo:
        return read_struct(load().ds_resource_get_info, ResourceInfo, self.handle)


class PitchedRows(NamedTuple):
    """Rows of bytes in memory: address of the first, and bytes from the beginning of one to that of the next."""

    pointer: int
    pitch: int


def _made_by(function: Any, *arguments: Any) -> Resource:
    return Resource(new_handle(function, *arguments))


def resource_counts() -> dict[str, int]:
    """Number of CUDA resources of each kind alive in this process, by any owner."""
    return {kind.name.lower(): read_value(load().ds_resource_count, ctypes.c_int64, kind) for kind in ResourceKind}


# ---- Contexts ----


def context(device_index: int) -> Resource:
    """The device's primary context."""
    return _made_by(load().ds_context_create, device_index)


def synchronize_context(context: Resource) -> None:
    check(load().ds_context_synchronize(context.handle))


# ---- Streams ----
# Borrowed handles are made without an owner that the library would release: that would take a Python callback from any
# thread, even while the interpreter ends. Instead the Python object that borrows keeps the owner alive, and every
# Python object that needs the resource keeps that object alive.


def create_stream(context: Resource) -> Resource:
    return _made_by(load().ds_stream_create, context.handle)


def borrow_stream(context: Resource, raw: int) -> Resource:
    return _made_by(load().ds_stream_borrow, context.handle, raw, None, None)


def synchronize_stream(stream: Resource) -> None:
    check(load().ds_stream_synchronize(stream.handle))


def stream_is_done(stream: Resource) -> bool:
    status = load().ds_stream_query(stream.handle)
    if status == Status.PENDING:
        return False
    check(status)
    return True


def stream_is_capturing(stream: Resource) -> bool:
    return bool(read_value(load().ds_stream_is_capturing, ctypes.c_int32, stream.handle))


def stream_follow(stream: Resource, earlier: Resource) -> None:
    """Orders work begun from now on after all work begun on another stream. Does nothing if one is being recorded."""
    check(load().ds_stream_follow(stream.handle, earlier.handle))


def stream_wait_event(stream: Resource, event: Resource) -> None:
    check(load().ds_stream_wait_event(stream.handle, event.handle))


def copy(stream: Resource, destination: int, source: int, nbytes: int) -> None:
    """Begins a copy between two addresses of device or host."""
    check(load().ds_copy(stream.handle, destination, source, nbytes))


def copy_rows(stream: Resource, destination: PitchedRows, source: PitchedRows, row_bytes: int, num_rows: int) -> None:
    """Begins a copy of rows within device memory."""
    copied = sized(
        RowCopy,
        destination=destination.pointer,
        destination_pitch=destination.pitch,
        source=source.pointer,
        source_pitch=source.pitch,
        row_bytes=row_bytes,
        num_rows=num_rows,
    )
    check(load().ds_copy_rows(stream.handle, ctypes.byref(copied)))


# ---- Events ----


def create_event(context: Resource, timing: bool) -> Resource:
    return _made_by(load().ds_cuda_event_create, context.handle, timing)


def borrow_event(context: Resource, raw: int) -> Resource:
    return _made_by(load().ds_cuda_event_borrow, context.handle, raw, None, None)


def record_event(event: Resource, stream: Resource) -> None:
    check(load().ds_cuda_event_record(event.handle, stream.handle))


def wait_for_event(event: Resource, timeout: float | None) -> bool:
    return wait(load().ds_cuda_event_wait, event.handle, timeout)


def milliseconds_between(start: Resource, end: Resource) -> float | None:
    """None if one of the events has not happened yet."""
    milliseconds = ctypes.c_float()
    status = load().ds_cuda_event_elapsed(start.handle, end.handle, ctypes.byref(milliseconds))
    if status == Status.PENDING:
        return None
    check(status)
    return milliseconds.value


# ---- Memory ----


def default_memory_pool(context: Resource) -> Resource:
    return _made_by(load().ds_memory_pool_default, context.handle)


def create_device_memory(pool: Resource, stream: Resource, nbytes: int) -> Resource:
    return _made_by(load().ds_device_memory_create, pool.handle, stream.handle, nbytes)


def borrow_device_memory(context: Resource, pointer: int, nbytes: int) -> Resource:
    return _made_by(load().ds_device_memory_borrow, context.handle, pointer, nbytes, None, None)


def create_pinned_memory(context: Resource, nbytes: int) -> Resource:
    return _made_by(load().ds_pinned_memory_create, context.handle, nbytes)


# ---- Memory and semaphores that are shared with other APIs ----


def create_exported_memory(stream: Resource, nbytes: int) -> Resource:
    return _made_by(load().ds_exported_memory_create, stream.handle, nbytes)


def export_memory(memory: Resource) -> int:
    """A new file descriptor, which the caller owns."""
    descriptor: int = read_value(load().ds_exported_memory_export, ctypes.c_int32, memory.handle)
    return descriptor


def import_memory(stream: Resource, descriptor: int, nbytes: int, dedicated: bool) -> Resource:
    return _made_by(load().ds_imported_memory_create, stream.handle, descriptor, nbytes, dedicated)


def import_semaphore(context: Resource, descriptor: int, timeline: bool) -> Resource:
    return _made_by(load().ds_semaphore_import, context.handle, descriptor, timeline)


def signal_semaphore(semaphore: Resource, stream: Resource, value: int) -> None:
    check(load().ds_semaphore_signal(semaphore.handle, stream.handle, value))


def wait_for_semaphore(semaphore: Resource, stream: Resource, value: int) -> None:
    check(load().ds_semaphore_wait(semaphore.handle, stream.handle, value))
