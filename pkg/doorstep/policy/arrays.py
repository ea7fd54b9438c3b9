"""The arrays that a policy is called with and those that it makes, where its weights are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from doorstep._optional import import_optional
from doorstep._streams import CurrentStream
from doorstep._tensors.checks import ReadRules, refuse_tensor
from doorstep._tensors.reader import read_memory
from doorstep.cuda.buffer import Buffer
from doorstep.errors import ArgumentError
from doorstep.tensor import Tensor

if TYPE_CHECKING:
    import torch


class Floats(NamedTuple):
    """A contiguous array of float32, and the object that keeps its memory."""

    address: int
    shape: tuple[int, ...]
    owner: Any


class Arrays(Protocol):
    """Arrays in one memory."""

    device: str  # "cpu", "cuda:0"

    def stream(self) -> int:
        """The CUstream that a call uses; 0 on the host."""

    def is_capturing(self) -> bool:
        """Whether that stream is being captured into a CUDA graph."""

    def read(self, name: str, value: Any, stream: int, *, written: bool) -> Floats:
        """Any tensor or array of float32 in this memory, in order before `stream`.

        Raises:
            ArgumentError: it is something else, is not contiguous, or would be written to and is read-only.
        """

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any: ...

    def zeros(self, shape: tuple[int, ...]) -> Any:
        """Of float32."""

    def copy(self, array: Any) -> Any: ...

    def upload(self, array: NDArray[Any]) -> Any:
        """A host's contiguous array in this memory, as bytes."""

    def address(self, array: Any) -> int:
        """The address of an array that one of these functions or `upload_beside_capture()` returned."""


def upload_beside_capture(array: NDArray[Any], arrays: Arrays) -> Buffer:
    """A host's array in memory of a GPU, whose stream is being captured: copied now, on another stream.

    PyTorch's allocator would give memory of the graph, which other work of the capture may have overwritten whenever
    the graph is launched; a copy in the graph would run only then, and later calls outside of it read the same array.
    """
    staging = Buffer.pinned(array.nbytes, int(arrays.device.removeprefix("cuda:")))
    np.asarray(staging)[:] = array.reshape(-1).view(np.uint8)
    made = Buffer(array.nbytes, staging.device)
    made.stream.copy(made.pointer, staging.pointer, array.nbytes)
    made.stream.synchronize()
    return made


def _check_floats(name: str, tensor: Any, value: Any, device: str) -> Floats:
    if tensor.device != device or tensor.dtype.name != "float32" or not tensor.contiguous:
        strides = "" if tensor.contiguous else ", not contiguous"
        where = "in the host's memory" if device == "cpu" else f"on {device}, where the policy is"
        hint = "" if tensor.device == device else "make the policy of a module on the same device as the simulator"
        refuse_tensor(name, f"{tensor.dtype.name} on {tensor.device}{strides}", f"float32, contiguous, {where}", hint)
    return Floats(tensor.pointer, tensor.shape, (value, tensor))


class HostArrays:
    """Arrays of numpy."""

    device = "cpu"

    def __init__(self) -> None:
        from doorstep.interop import describe  # it loads the library, as `import doorstep` does not

        self._describe = describe  # a builtin, which takes less than a microsecond

    def stream(self) -> int:
        return 0

    def is_capturing(self) -> bool:
        return False

    def read(self, name: str, value: Any, stream: int, *, written: bool) -> Floats:
        given = value.to_numpy() if isinstance(value, Tensor) and value.device == self.device else value
        try:
            found = self._describe(given)
            is_plain = found.dtype == "float32" and found.device == self.device and found.contiguous
            if is_plain and not (written and found.readonly):
                return Floats(found.pointer, found.shape, given)
        except ArgumentError:
            pass  # it has an array interface, or nothing of the kind
        return _check_floats(name, read_memory(value, ReadRules(name, written=written)), value, self.device)

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        return np.empty(shape, dtype)

    def zeros(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        return np.zeros(shape, np.float32)

    def copy(self, array: Any) -> NDArray[Any]:
        return np.array(array)

    def upload(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.view(np.uint8)  # of structs there is no description

    def address(self, array: NDArray[Any]) -> int:
        return self._describe(array).pointer


class TorchArrays:
    """Tensors of PyTorch on a GPU, on PyTorch's current stream."""

    def __init__(self, device_index: int) -> None:
        self._torch = import_optional("torch", "policies on a GPU need PyTorch", "torch")
        self.device = f"cuda:{device_index}"
        self._stream = CurrentStream(device_index)

    def stream(self) -> int:
        return self._stream()

    def is_capturing(self) -> bool:
        cuda = self._torch.cuda
        with cuda.device(self.device):
            return bool(cuda.is_current_stream_capturing())

    def read(self, name: str, value: Any, stream: int, *, written: bool) -> Floats:
        rules = ReadRules(name, written=written, stream=stream)
        return _check_floats(name, read_memory(value, rules), value, self.device)

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> torch.Tensor:
        kind = getattr(self._torch, np.dtype(dtype).name)
        return self._torch.empty(shape, dtype=kind, device=self.device)

    def zeros(self, shape: tuple[int, ...]) -> torch.Tensor:
        return self._torch.zeros(shape, dtype=self._torch.float32, device=self.device)

    def copy(self, array: Any) -> torch.Tensor:
        return self._torch.as_tensor(array, device=self.device).clone()

    def upload(self, array: NDArray[Any]) -> torch.Tensor:
        return self._torch.from_numpy(array.view(np.uint8)).to(self.device)

    def address(self, array: torch.Tensor | Buffer) -> int:
        address: int = array.pointer if isinstance(array, Buffer) else array.data_ptr()
        return address
