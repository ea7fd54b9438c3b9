"""CUDA streams that users pass: numbers and objects of other libraries; and PyTorch's current stream."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, final

from doorstep._arguments import check_integer, is_integer, refuse
from doorstep._native import STREAM_OWN

STREAM_REQUIREMENT = "a CUstream as an integer, a doorstep.cuda.Stream, a torch.cuda.Stream or a __cuda_stream__ object"

LEGACY_STREAM = 1  # the driver's name for the default stream, also where 0 is not allowed


class RawStream(NamedTuple):
    """A CUstream and, if the object tells, the number of its device."""

    handle: int
    device_index: int | None


def check_stream(name: str, value: object) -> RawStream:
    """Reads an integer, or an object with `__cuda_stream__()` or `cuda_stream`."""
    protocol = getattr(value, "__cuda_stream__", None)
    if protocol is not None:
        described = protocol() if callable(protocol) else protocol
        if not (isinstance(described, tuple) and len(described) == 2 and described[0] == 0):
            refuse(name, "an object whose __cuda_stream__() gives (0, handle)", described)
        handle = described[1]
    else:
        handle = getattr(value, "cuda_stream", value)
    if not is_integer(handle):
        refuse(name, STREAM_REQUIREMENT, value)
    index = getattr(getattr(value, "device", None), "index", None)
    device_index = index if isinstance(index, int) else None
    return RawStream(check_integer(name, handle, 0, STREAM_OWN - 1), device_index)


def check_stream_on(name: str, value: object, device_index: int) -> int:
    """Reads a stream, and refuses one that says it is on another device."""
    stream = check_stream(name, value)
    if stream.device_index not in (None, device_index):
        refuse(name, f"a stream of cuda:{device_index}", value, f"it is a stream of cuda:{stream.device_index}")
    return stream.handle


def interface_stream(handle: int | None) -> int | None:
    """A CUstream as `__cuda_array_interface__` has it: the legacy default stream is 1, because 0 would be ambiguous."""
    return LEGACY_STREAM if handle == 0 else handle


@final
class CurrentStream:
    """A function: PyTorch's current stream on a device for this thread; STREAM_OWN until PyTorch uses CUDA.

    PyTorch is never imported for this. The function is called at every step, so PyTorch's own is kept once found.
    """

    __slots__ = ("_current_stream", "_device_index")

    def __init__(self, device_index: int) -> None:
        self._device_index = device_index
        self._current_stream: Callable[[int], int] | None = None

    def __call__(self) -> int:
        if self._current_stream is None:
            self._current_stream = _stream_getter_of_torch()
        return STREAM_OWN if self._current_stream is None else self._current_stream(self._device_index)


def current_device_index() -> int:
    """The number of PyTorch's current device if PyTorch uses CUDA, else 0."""
    cuda = _cuda_of_torch()
    return 0 if cuda is None else int(cuda.current_device())


def _cuda_of_torch() -> Any:
    """The module torch.cuda if it is loaded and has been initialised, else None."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    is_initialized = getattr(cuda, "is_initialized", None)  # absent while another thread is still importing it
    return cuda if is_initialized is not None and is_initialized() else None


def _stream_getter_of_torch() -> Callable[[int], int] | None:
    cuda = _cuda_of_torch()
    if cuda is None:
        return None
    # What torch.cuda.current_stream() calls itself, at a tenth of its cost.
    internals = getattr(sys.modules["torch"], "_C", None)
    fast: Callable[[int], int] | None = getattr(internals, "_cuda_getCurrentRawStream", None)
    return fast or (lambda device_index: int(cuda.current_stream(device_index).cuda_stream))
