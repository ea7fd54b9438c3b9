"""Operations that differ between tensor libraries: current stream, copies, new tensors, owners of memory."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from doorstep._native._generated import PythonLibrary
from doorstep._native.foreign_tensor import CPU, CUDA, ForeignTensor
from doorstep._native.memory import array_at
from doorstep._tensors.checks import refuse_unusable
from doorstep._tensors.types import find_library, torch_layout
from doorstep.errors import DeviceError

# Libraries that tell on which stream they work.
ORDERED_BY_STREAM = (PythonLibrary.TORCH, PythonLibrary.CUPY, PythonLibrary.WARP)
# Element types that int32_copy() takes, apart from bool.
INTEGERS = ("int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64")


def stream_of(tensor: ForeignTensor) -> int | None:
    """The CUstream that the library of a tensor works on now; None on the host, and if the library does not tell."""
    if tensor.device_type != CUDA or tensor.library not in ORDERED_BY_STREAM:
        return None
    return current_stream(tensor.owner, CUDA, tensor.device_index)


def current_stream(tensor: Any, device_type: int, device_index: int) -> int:
    """The CUstream that a tensor's library works on now; 0 on the host.

    Raises:
        DeviceError: the library does not tell, or cannot use the device.
    """
    if device_type != CUDA:
        return 0
    library = find_library(type(tensor))
    if library in ORDERED_BY_STREAM:
        try:
            return _stream_of_library(library, device_index)
        except Exception as error:  # a library without CUDA, or without this device, may raise anything
            raise DeviceError(f"{library.name.lower()} cannot use cuda:{device_index}: {error}") from error
    raise DeviceError(
        f"a {type(tensor).__name__} does not tell on which stream its library works",
        argument="device",
        hint="order the work with the library's own means, and pass the stream",
    )


def _stream_of_library(library: PythonLibrary, device_index: int) -> int:
    if library == PythonLibrary.TORCH:
        torch = sys.modules["torch"]
        if not torch.backends.cuda.is_built():  # the exchange API says 0 then, too
            return 0
        return int(torch.cuda.current_stream(device_index).cuda_stream)
    if library == PythonLibrary.CUPY:
        cuda = sys.modules["cupy"].cuda
        with cuda.Device(device_index):
            return int(cuda.get_current_stream().ptr)
    return int(sys.modules["warp"].get_stream(f"cuda:{device_index}").cuda_stream)


def make_like(tensor: Any, zeros: bool) -> Any:
    """A new C-contiguous tensor of the same library, shape, dtype and device.

    Raises:
        ArgumentError: the library is not known to make tensors.
    """
    library = find_library(type(tensor))
    if library == PythonLibrary.TORCH:
        torch = sys.modules["torch"]
        make = torch.zeros if zeros else torch.empty
        return make(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    if library == PythonLibrary.NUMPY:
        return (np.zeros if zeros else np.empty)(tensor.shape, tensor.dtype)
    if library == PythonLibrary.WARP:
        warp = sys.modules["warp"]
        return (warp.zeros if zeros else warp.empty)(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    if not hasattr(tensor, "__array_namespace__"):
        found = f"a {type(tensor).__name__}, whose library has no standard way to make tensors"
        refuse_unusable("tensor", found, "make one yourself")
    namespace = tensor.__array_namespace__()
    return (namespace.zeros_like if zeros else namespace.empty_like)(tensor)


def contiguous_copy(tensor: ForeignTensor) -> Any | None:
    """A C-contiguous copy by the tensor's library; None unless it orders copies on the stream that it tells."""
    owner: Any = tensor.owner
    if tensor.library == PythonLibrary.TORCH:
        return owner.contiguous()
    return np.ascontiguousarray(owner) if tensor.library == PythonLibrary.NUMPY else None


def is_convertible(tensor: ForeignTensor) -> bool:
    """Whether `int32_copy()` knows how: on the CPU always, on a GPU by the tensor's library."""
    return tensor.device_type == CPU or any(hasattr(tensor.owner, name) for name in ("clamp", "clip"))


def int32_copy(tensor: ForeignTensor) -> Any:
    """A copy as int32. Numbers out of its range become the nearest limit: an illegal action stays illegal."""
    owner: Any = tensor.owner
    low, high = -(2**31), 2**31 - 1
    is_wide = tensor.dtype.name in ("int64", "uint32", "uint64")
    if tensor.device_type == CPU:
        # Not read by numpy, which reads no tensor that has DLPack alone
        array = array_at(tensor.pointer, tensor.dtype.name, tensor.shape, owner, tensor.strides)
        if is_wide:
            array = array.clip(max(low, np.iinfo(array.dtype).min), high)
        return array.astype(np.int32, order="C")
    if tensor.library == PythonLibrary.TORCH:
        return (owner.clamp(low, high) if is_wide else owner).int()
    return (owner.clip(low, high) if is_wide else owner).astype("int32")


def memory_owner(tensor: ForeignTensor) -> tuple[object, tuple[int, ...]]:
    """An object that keeps the memory valid, unless its owner frees or moves it, and the words that tell if it did: see
    `ds_simulator_watch()`. Arrays of numpy and tensors of PyTorch can; buffers are locked."""
    root: Any = tensor.owner
    while isinstance(root, np.ndarray) and root.base is not None:
        root = root.base
    if isinstance(root, np.ndarray):
        word = id(root) + object.__basicsize__  # behind what any object begins with: the first field of numpy's
        return tensor.owner, (word,)
    if find_library(type(root)) == PythonLibrary.TORCH:
        layout, storage = torch_layout(), root.untyped_storage()._cdata
        words = (root._cdata + layout.storage, storage + layout.storage_data) if layout else ()
        return (tensor.owner, root.detach()), words  # an alias keeps the storage if the tensor gets another
    try:
        return (tensor.owner, memoryview(root)), ()  # arrays over a buffer do not always hold it open themselves
    except TypeError:
        return tensor.owner, ()
