"""Semaphores: order between streams and the work of another API."""

from __future__ import annotations

from typing import final

from doorstep._arguments import check_flag, check_integer
from doorstep._copies import Owner
from doorstep._native import Resource, resources
from doorstep.cuda.device import Device, check_device_index
from doorstep.cuda.interop_buffer import MAX_DESCRIPTOR
from doorstep.cuda.stream import Stream, as_stream

MAX_VALUE = 2**64 - 1


@final
class Semaphore(Owner):
    """A semaphore of Vulkan, or of another API of the process, that streams signal and wait for.

    Created by `Semaphore.import_fd`. A *timeline* semaphore has a value that only grows: a signal sets it, a wait ends
    when the value has been reached, any number of times. A *binary* semaphore has no value: every signal ends one wait,
    and one signal must be waited for before the next.
    """

    __slots__ = ("__weakref__", "_device_index", "_resource", "_timeline")

    _device_index: int
    _resource: Resource
    _timeline: bool

    def __init__(self) -> None:
        raise TypeError("semaphores are made by the other API; use Semaphore.import_fd(fd, ...)")

    @classmethod
    def import_fd(cls, fd: int, device: Device | int | None = None, *, timeline: bool = False) -> Semaphore:
        """A semaphore that the other API has exported.

        Args:
            fd: its file descriptor, of the handle type OPAQUE_FD_BIT. This takes ownership: the descriptor is closed
                when this returns. If this raises, the descriptor stays open and belongs to the caller.
            device: a Device or its number; None: PyTorch's current device if PyTorch uses CUDA, else 0.
            timeline: whether it was created as a timeline (VK_SEMAPHORE_TYPE_TIMELINE).

        Raises:
            ArgumentError: the descriptor is not that of such a semaphore.
            DeviceError: the GPU does not support timelines of other APIs.
            DriverFunctionError: the driver cannot import semaphores.
        """
        fd = check_integer("fd", fd, 0, MAX_DESCRIPTOR)
        made = object.__new__(cls)
        made._timeline = check_flag("timeline", timeline)
        made._device_index = check_device_index(device)
        made._resource = resources.import_semaphore(resources.context(made._device_index), fd, made._timeline)
        return made

    @property
    def is_timeline(self) -> bool:
        """True for a timeline, False for a binary semaphore."""
        return self._timeline

    def signal(self, stream: Stream | object, value: int = 0) -> None:
        """Signals it when all work begun on the stream up to now has ended. Returns at once.

        Args:
            stream: a Stream, a CUstream as an integer, or an object with `__cuda_stream__()`.
            value: the new value of a timeline, greater than its value then; 0 for a binary semaphore.
        """
        value = check_integer("value", value, 0, MAX_VALUE)
        resources.signal_semaphore(self._resource, as_stream(stream, self._device_index)._resource, value)

    def wait(self, stream: Stream | object, value: int = 0) -> None:
        """Makes all work begun on the stream from now on wait for it. Returns at once.

        Args:
            stream: a Stream, a CUstream as an integer, or an object with `__cuda_stream__()`.
            value: the value that a timeline must have reached; 0 for a binary semaphore.
        """
        value = check_integer("value", value, 0, MAX_VALUE)
        resources.wait_for_semaphore(self._resource, as_stream(stream, self._device_index)._resource, value)

    def close(self) -> None:
        """Waits until the work with the semaphore has ended, then releases it.

        If that takes more than some seconds, because the other API does not signal it, or if a graph may use it again,
        the semaphore is never released.
        """
        self._resource.close()

    @property
    def closed(self) -> bool:
        """True after `close()`."""
        return self._resource.closed

    def __repr__(self) -> str:
        state = "closed" if self.closed else "timeline" if self._timeline else "binary"
        return f"cuda.Semaphore({state}, cuda:{self._device_index})"
