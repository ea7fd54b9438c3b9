"""A view of simulator memory, and the protocols by which other libraries read it in place.

A tensor, and every array made from it without a copy, holds the memory: it stays valid after the simulator was closed.
What it shows is overwritten by the next step, reset or refresh; take a copy of what you want to keep.

Read-only tensors are read-only arrays for numpy and flagged so in DLPack. PyTorch ignores that flag, and the interface
of CUDA arrays never has it set, because PyTorch would refuse such memory: writing to it changes what you see until the
next step, and nothing else.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from doorstep._arguments import refuse
from doorstep._native import STREAM_OWN, Dtype, Memory, TensorInfo
from doorstep._streams import LEGACY_STREAM, interface_stream
from doorstep.errors import ArgumentError

if TYPE_CHECKING:
    import jax
    import torch
    from typing_extensions import CapsuleType  # known to type checkers; not needed to run

DTYPES = {dtype: np.dtype(dtype.name.lower()) for dtype in Dtype}
DLPACK_CPU = (1, 0)  # kDLCPU, device 0
DLPACK_CUDA = 2  # kDLCUDA
DLPACK_NO_ORDER = -1  # a consumer's stream that waits for nothing


class _ArraySource:
    """What the cached array holds instead of its tensor: arrays are not garbage-collected, a cycle would stay."""

    __slots__ = ("__array_interface__", "_memory")

    def __init__(self, interface: dict[str, Any], memory: Memory) -> None:
        self.__array_interface__ = interface
        self._memory = memory


@final
class Tensor:
    """Memory of a simulator, read in place by numpy, PyTorch, JAX and everything that speaks their protocols.

    Tensors come from a simulator (`sim.rewards`, `sim.tensors["rewards"]`, `sim.state.body_positions`).

    >>> import doorstep, numpy
    >>> sim = doorstep.Simulator(2)
    >>> sim.actions
    Tensor(actions, int32 [2, 2, 4], cpu, writable)
    >>> sim.actions.to_numpy()[:, :, 0] = 3
    >>> int(numpy.asarray(sim.actions)[1, 1, 0])
    3
    """

    __slots__ = (
        "__weakref__",
        "_array",
        "_device",
        "_dlpack_device",
        "_dtype",
        "_info",
        "_memory",
        "_name",
        "_on_gpu",
        "_shape",
        "_strides",
    )

    def __init__(self, name: str, info: TensorInfo, memory: Memory, device: str) -> None:
        self._name = name
        self._info = info
        self._memory = memory
        self._device = device
        self._on_gpu = device != "cpu"
        self._dlpack_device = (DLPACK_CUDA, int(device.removeprefix("cuda:"))) if self._on_gpu else DLPACK_CPU
        self._dtype = DTYPES[Dtype(info.dtype)]
        self._shape = tuple(info.shape[: info.rank])
        self._strides = tuple(info.strides[: info.rank])
        self._array: NDArray[Any] | None = None

    @property
    def name(self) -> str:
        """Name of the property of the simulator (or of its state) that gives this tensor."""
        return self._name

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements per dimension; the first is the number of worlds."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements, as numpy has it."""
        return self._dtype

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, per dimension."""
        return self._strides

    @property
    def device(self) -> str:
        """Where the memory is: "cpu" or "cuda:K"."""
        return self._device

    @property
    def nbytes(self) -> int:
        """Bytes of all elements together."""
        return math.prod(self._shape) * self._dtype.itemsize

    @property
    def readonly(self) -> bool:
        """True if the simulator alone writes this tensor."""
        return not self._info.access

    def __len__(self) -> int:
        return self._shape[0]

    def __repr__(self) -> str:
        access = "read-only" if self.readonly else "writable"
        return f"Tensor({self._name}, {self._dtype} {list(self._shape)}, {self._device}, {access})"

    def __reduce__(self) -> Any:
        raise TypeError("a Tensor is a view of simulator memory; pickle tensor.copy_to_host() instead")

    # ---- Array protocols ----

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self._on_gpu:
            raise AttributeError(f"{self!r} is in the memory of a GPU; it has a __cuda_array_interface__")
        return {
            "version": 3,
            "typestr": self._dtype.str,
            "shape": self._shape,
            "strides": self._strides,
            "data": (self._info.data, self.readonly),
        }

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        # Never marked as read-only: PyTorch would refuse such memory altogether.
        if not self._on_gpu:
            raise AttributeError(f"{self!r} is in the memory of the host; it has an __array_interface__")
        return {
            "version": 3,
            "typestr": self._dtype.str,
            "shape": self._shape,
            "strides": self._strides,
            "data": (self._info.data if self.nbytes else 0, False),
            "stream": interface_stream(self._memory.stream()),
        }

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        array = self.to_numpy()
        same = dtype is None or np.dtype(dtype) == self._dtype
        if copy is False and not same:
            raise ValueError(f"{self!r} cannot become {np.dtype(dtype)} without a copy")
        if copy or not same:
            return np.array(array, dtype=dtype)
        return array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._dlpack_device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """A DLPack capsule of this memory, or of a copy in the host's memory.

        Args:
            stream: the CUstream on which the consumer will read: what it begins there afterwards sees everything begun
                on the simulator before. None and 1: the legacy default stream; 2: this thread's default stream; -1: no
                ordering. None on the CPU.
            max_version: the newest version of DLPack that the consumer knows.
            dl_device: the device the consumer wants the memory on: this tensor's, or the CPU for a copy.
            copy: True for a copy in the host's memory, False for none, None for one if dl_device needs it.

        Raises:
            BufferError: what is asked for cannot be had.
        """
        versioned = max_version is not None and max_version[0] >= 1
        target = self._dlpack_device if dl_device is None else tuple(dl_device)
        if target == DLPACK_CPU and (copy or (self._on_gpu and copy is None)):
            return _export_array(self.copy_to_host(), versioned)
        if target != self._dlpack_device:
            raise BufferError(f"{self!r} is on device {self._dlpack_device}; it cannot be exported to {target}")
        if copy:
            raise BufferError(f"{self!r} is copied to the host only: pass dl_device={DLPACK_CPU}, or clone the result")
        self._order(stream)
        return self._memory.export_dlpack(self._info, versioned)

    def _order(self, stream: object) -> None:
        """Makes the consumer's stream wait for the simulator's work, as the DLPack protocol has it."""
        if not self._on_gpu:
            if stream is not None:
                raise BufferError(f"stream is {stream!r}; it must be None for a tensor on the CPU")
            return
        if stream is None:
            stream = LEGACY_STREAM
        if isinstance(stream, bool) or not isinstance(stream, int) or stream == 0 or not -1 <= stream < STREAM_OWN:
            requirement = "None, -1, 1, 2 or a CUstream; 0 is ambiguous: pass 1 for the legacy default stream"
            raise BufferError(f"stream is {stream!r}; it must be {requirement}")
        if stream != DLPACK_NO_ORDER:
            self._memory.order(stream)

    # ---- Conversions ----

    def to_numpy(self) -> NDArray[Any]:
        """A numpy array of this memory, without a copy; read-only if the tensor is.

        Raises:
            TypeError: the memory is a GPU's, which numpy cannot read: use `copy_to_host()`.
        """
        if self._on_gpu:
            raise TypeError(f"{self!r} is memory of a GPU, which numpy cannot read in place; use copy_to_host()")
        if self._array is None:
            self._array = np.asarray(_ArraySource(self.__array_interface__, self._memory))
        view: NDArray[Any] = self._array.view()
        return view

    def copy_to_host(self) -> NDArray[Any]:
        """A new numpy array with the elements as they are after everything begun on the simulator; on any device.

        >>> import doorstep
        >>> sim = doorstep.Simulator(2)
        >>> sim.steps_remaining.copy_to_host().ravel()
        array([200, 200, 200, 200], dtype=int32)
        """
        array = np.empty(self._shape, self._dtype)
        self._memory.read(self._info, array)
        return array

    def copy_from_host(self, array: ArrayLike) -> None:
        """Sets all elements, after everything begun on the simulator; on any device.

        >>> import doorstep, numpy
        >>> sim = doorstep.Simulator(2)
        >>> sim.actions.copy_from_host(numpy.full((2, 2, 4), 1, numpy.int32))
        >>> sim.step()

        Raises:
            ArgumentError: the array has another shape or dtype, or the tensor is read-only. Nothing has changed.
        """
        if self.readonly:
            hint = "write `actions`, `resets` or a writable field of `state`"
            raise ArgumentError(f"{self!r} is written by the simulator alone", argument=self._name, hint=hint)
        source = np.asarray(array)
        if source.shape != self._shape or source.dtype != self._dtype:
            described = f"{source.dtype} {list(source.shape)}"
            refuse("array", f"{self._dtype} {list(self._shape)}", described)
        self._memory.write(self._info, np.ascontiguousarray(source))

    def to_torch(self) -> torch.Tensor:
        """A PyTorch tensor of this memory, without a copy. PyTorch knows no read-only memory: do not write to such.

        On a GPU, PyTorch's current stream waits for what was begun on the simulator before. Later steps are ordered
        too as long as the simulator works on that stream, which it does by default.
        """
        import torch

        if self._on_gpu:
            self._order(torch.cuda.current_stream(self._dlpack_device[1]).cuda_stream or LEGACY_STREAM)
        made = self._memory.export_object(torch.Tensor, self._info)
        if made is None:  # PyTorch is too old for the short way
            made = torch.from_dlpack(self)  # type: ignore[attr-defined,unused-ignore]
        return made  # type: ignore[no-any-return,unused-ignore]

    def to_jax(self, *, copy: bool = False) -> jax.Array:
        """A JAX array of this memory, without a copy unless copy is True.

        JAX takes arrays for immutable; this one changes with every step. A warning says so once per process.
        A copy goes through the host's memory to JAX's default device.

        Raises:
            ArgumentError: the tensor is a state field and copy is False; JAX reads contiguous memory only.
        """
        import jax

        if copy:
            return jax.numpy.asarray(self.copy_to_host())
        if self._strides != _contiguous_strides(self._shape, self._dtype.itemsize):
            refuse("copy", f"True for {self._name}, which is not contiguous", copy)
        _warn_about_immutability()
        return jax.dlpack.from_dlpack(self)  # type: ignore[no-any-return,unused-ignore]


def _export_array(array: NDArray[Any], versioned: bool) -> CapsuleType:
    """numpy exports an array. Only numpy 2.1 and later know versions; an old capsule is always allowed."""
    knows_versions = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
    options: dict[str, Any] = {"max_version": (1, 0)} if versioned and knows_versions else {}
    capsule: CapsuleType = array.__dlpack__(**options)
    return capsule


def _contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


_warned_about_immutability = False


def _warn_about_immutability() -> None:
    global _warned_about_immutability
    if not _warned_about_immutability:
        _warned_about_immutability = True
        warnings.warn(
            "JAX assumes that arrays never change, but this one is simulator memory that every step overwrites. "
            "Use to_jax(copy=True) unless you read it before the next step.",
            stacklevel=3,
        )
