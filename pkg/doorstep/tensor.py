"""A view of simulator memory, and the protocols by which other libraries read it in place.

A tensor, and every array made from it without a copy, holds the memory: it stays valid after the simulator was closed.
What it shows is overwritten by the next step, reset or refresh; take a copy of what you want to keep.

Read-only tensors are read-only arrays for numpy and flagged so in DLPack. PyTorch ignores that flag: writing to such a
torch tensor changes what you see until the next step, and nothing else.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from doorstep._arguments import refuse
from doorstep._native import Dtype, Memory, TensorInfo

if TYPE_CHECKING:
    import jax
    import torch
    from typing_extensions import CapsuleType  # known to type checkers; not needed to run

DTYPES = {dtype: np.dtype(dtype.name.lower()) for dtype in Dtype}
DLPACK_CPU = (1, 0)  # kDLCPU, device 0


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

    __slots__ = ("__weakref__", "_array", "_device", "_dtype", "_info", "_memory", "_name", "_shape", "_strides")

    def __init__(self, name: str, info: TensorInfo, memory: Memory, device: str) -> None:
        self._name = name
        self._info = info
        self._memory = memory
        self._device = device
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
        raise TypeError("a Tensor is a view of simulator memory; pickle tensor.to_numpy().copy() instead")

    # ---- Array protocols ----

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "typestr": self._dtype.str,
            "shape": self._shape,
            "strides": self._strides,
            "data": (self._info.data, self.readonly),
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
        return DLPACK_CPU

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """A DLPack capsule of this memory, or of a copy of it if copy is True.

        Raises:
            BufferError: another device is asked for, or a stream, which a CPU tensor does not have.
        """
        if dl_device is not None and tuple(dl_device) != DLPACK_CPU:
            raise BufferError(f"{self!r} is on device {DLPACK_CPU}; it cannot be exported to {tuple(dl_device)}")
        if stream is not None:
            raise BufferError(f"stream is {stream!r}; it must be None for a tensor on the CPU")
        versioned = max_version is not None and max_version[0] >= 1
        if copy:
            return _export_copy(self.to_numpy(), versioned)
        return self._memory.export_dlpack(self._info, versioned)

    # ---- Conversions ----

    def to_numpy(self) -> NDArray[Any]:
        """A numpy array of this memory, without a copy; read-only if the tensor is."""
        if self._array is None:
            self._array = np.asarray(_ArraySource(self.__array_interface__, self._memory))
        view: NDArray[Any] = self._array.view()
        return view

    def to_torch(self) -> torch.Tensor:
        """A PyTorch tensor of this memory, without a copy. PyTorch knows no read-only memory: do not write to such."""
        import torch

        return torch.from_dlpack(self)  # type: ignore[no-any-return,attr-defined,unused-ignore]

    def to_jax(self, *, copy: bool = False) -> jax.Array:
        """A JAX array of this memory, without a copy unless copy is True.

        JAX takes arrays for immutable; this one changes with every step. A warning says so once per process.

        Raises:
            ArgumentError: the tensor is a state field and copy is False; JAX reads contiguous memory only.
        """
        import jax

        array = self.to_numpy()
        if copy:
            return jax.numpy.asarray(array.copy())
        if not array.flags.c_contiguous:
            refuse("copy", f"True for {self._name}, which is not contiguous", copy)
        _warn_about_immutability()
        return jax.dlpack.from_dlpack(self)  # type: ignore[no-any-return,unused-ignore]


def _export_copy(array: NDArray[Any], versioned: bool) -> CapsuleType:
    """numpy exports its own copy. Only numpy 2.1 and later know versions; an old capsule is always allowed."""
    knows_versions = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
    options: dict[str, Any] = {"max_version": (1, 0)} if versioned and knows_versions else {}
    capsule: CapsuleType = array.copy().__dlpack__(**options)
    return capsule


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
