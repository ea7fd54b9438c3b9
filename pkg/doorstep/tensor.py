"""`Tensor`: simulator memory, and the protocols by which other libraries read it in place.

A tensor, and every array made from it without a copy, holds a reference to the memory: it stays valid after the
simulator was closed. The next step, reset or refresh overwrites its elements; copy what you want to keep.

Read-only tensors are read-only arrays in numpy and flagged read-only in DLPack. PyTorch ignores that flag, and
`__cuda_array_interface__` never sets it, because PyTorch would refuse such memory: what is written there is visible
until the next step and has no other effect.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import ArrayLike, DTypeLike, NDArray

from doorstep._arguments import refuse
from doorstep._copies import Owner
from doorstep._native import STREAM_OWN, Dtype, Memory, TensorInfo
from doorstep._native.foreign_tensor import packed_strides
from doorstep._optional import import_optional
from doorstep._streams import LEGACY_STREAM, interface_stream
from doorstep.errors import ArgumentError

if TYPE_CHECKING:
    import jax
    import torch
    from typing_extensions import CapsuleType  # known to type checkers; not needed to run

DTYPES = {dtype: np.dtype(dtype.name.lower()) for dtype in Dtype}
DLPACK_CPU = (1, 0)  # kDLCPU, device 0
DLPACK_CUDA = 2  # kDLCUDA
_SHOWN_ELEMENTS = 60  # of larger tensors repr() shows the ends
_SHORTENED_DIMENSIONS = 3  # and none of the values if there are more dimensions
DLPACK_NO_ORDER = -1  # a consumer's stream that waits for nothing


class _ArraySource:
    """The owner of the cached array in place of its tensor: numpy arrays take no part in garbage collection, so a cycle
    would never be freed."""

    __slots__ = ("__array_interface__", "_memory")

    def __init__(self, interface: dict[str, Any], memory: Memory) -> None:
        self.__array_interface__ = interface
        self._memory = memory


@final
class Tensor(NDArrayOperatorsMixin, Owner, remedy="copy its values: tensor.copy_to_host()"):
    """Memory of a simulator, read in place by numpy, PyTorch, JAX and every library that implements their protocols.

    Tensors come from a simulator (`sim.rewards`, `sim.tensors["rewards"]`, `sim.state.body_positions`).

    On the CPU a tensor behaves as the numpy array of its memory: `t[...]` is a view, `t[...] = x` writes, comparisons,
    arithmetic, numpy's functions and an array's methods (`t.mean()`) return arrays. On a GPU all of these raise
    TypeError, the methods AttributeError: use `to_torch()`, `to_jax()` or `copy_to_host()`.

    >>> import doorstep, numpy
    >>> sim = doorstep.Simulator(2)
    >>> sim.actions
    Tensor(actions, int32 [2, 2, 4], cpu, writable)
    [[[0 0 2 0]
      [0 0 2 0]]
    <BLANKLINE>
     [[0 0 2 0]
      [0 0 2 0]]]
    >>> sim.actions[:, :, 0] = 3
    >>> int(numpy.asarray(sim.actions)[1, 1, 0])
    3
    >>> bool((sim.dones == 1).any())
    False
    >>> sim.steps_remaining.max(axis=(1, 2))
    array([200, 200], dtype=int32)
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
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements together."""
        return self.size * self._dtype.itemsize

    @property
    def readonly(self) -> bool:
        """True if only the simulator writes this tensor."""
        return not self._info.access

    def __repr__(self) -> str:
        """Name, dtype, shape, device and access; on the CPU also the values, if they fit: many are shortened."""
        if self._on_gpu or (self.size > _SHOWN_ELEMENTS and self.ndim > _SHORTENED_DIMENSIONS):
            return describe(self)
        values = np.array2string(self.to_numpy(), threshold=_SHOWN_ELEMENTS, edgeitems=2, precision=4)
        return f"{describe(self)}\n{values}"

    def _repr_html_(self) -> str:
        """For notebooks."""
        import html  # here: `import doorstep` does not pay for it

        heading, _, values = repr(self).partition("\n")
        return f"<code>{html.escape(heading)}</code><pre>{html.escape(values)}</pre>"

    # ---- As numpy's array, on the CPU ----

    def __getitem__(self, index: Any) -> Any:
        return self._as_array("indexing")[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        array = self._as_array("writing to parts")
        if self.readonly:
            raise self._refused()
        array[index] = value

    def __len__(self) -> int:
        return self._shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._as_array("iteration"))

    def __contains__(self, value: object) -> bool:
        return value in self._as_array("the operator `in`")

    def __bool__(self) -> bool:
        return bool(self._as_array("a truth value"))

    def __getattr__(self, name: str) -> Any:
        """Methods and attributes of numpy's arrays, less its protocols, whose names begin with an underscore."""
        if name.startswith("_") or not hasattr(np.ndarray, name):
            return object.__getattribute__(self, name)  # raises, with the message of the property if there is one
        if self._on_gpu:
            remedy = "use to_torch(), to_jax() or copy_to_host()"
            raise AttributeError(f"{describe(self)} is GPU memory, which has no {name}; {remedy}")
        return getattr(self.to_numpy(), name)

    def __dir__(self) -> list[str]:
        of_arrays = () if self._on_gpu else (name for name in dir(np.ndarray) if not name.startswith("_"))
        return sorted({*object.__dir__(self), *of_arrays})

    __hash__ = None  # type: ignore[assignment]  # as numpy's arrays: `==` compares the elements

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Operators and numpy's element-wise functions, over the arrays of the tensors among their operands."""
        given = options.pop("out", None)
        if given is not None:
            options["out"] = tuple(_operand(each, ufunc) for each in given)
        result = getattr(ufunc, method)(*(_operand(each, ufunc) for each in inputs), **options)
        return given[0] if given is not None and len(given) == 1 else result

    def _as_array(self, operation: str) -> NDArray[Any]:
        if self._on_gpu:
            remedy = "use to_torch(), to_jax() or copy_to_host()"
            raise TypeError(f"{describe(self)} is GPU memory, where {operation} is not supported; {remedy}")
        return self.to_numpy()

    def _refused(self) -> ArgumentError:
        hint = "write `actions`, `resets` or a writable field of `state`"
        return ArgumentError(f"only the simulator writes {describe(self)}", argument=self._name, hint=hint)

    # ---- Array protocols ----

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self._on_gpu:
            raise AttributeError(f"{describe(self)} is GPU memory; it has a __cuda_array_interface__")
        self._memory.check()
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
            raise AttributeError(f"{describe(self)} is host memory; it has an __array_interface__")
        self._memory.check()
        return {
            "version": 3,
            "typestr": self._dtype.str,
            "shape": self._shape,
            # CuPy takes an address of 0 only without strides.
            "strides": self._strides if self.nbytes else None,
            "data": (self._info.data if self.nbytes else 0, False),
            "stream": interface_stream(self._memory.stream()),
        }

    def __buffer__(self, flags: int, /) -> memoryview:
        """The memory, without a copy, for `memoryview(tensor)` and other readers of buffers, from Python 3.12 on."""
        if self._on_gpu:
            raise BufferError(f"{describe(self)} is GPU memory, which has no buffer; use copy_to_host()")
        return memoryview(self.to_numpy())  # type: ignore[arg-type]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        array = self.to_numpy()
        same = dtype is None or np.dtype(dtype) == self._dtype
        if copy is False and not same:
            raise ValueError(f"{describe(self)} cannot become {np.dtype(dtype)} without a copy")
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
            stream: the CUstream on which the consumer will read: its later work there is ordered after everything begun
                on the simulator before. None and 1: the legacy default stream; 2: this thread's default stream; -1: no
                ordering. None on the CPU.
            max_version: the newest version of DLPack that the consumer knows.
            dl_device: the device the consumer wants the memory on: this tensor's, or the CPU for a copy.
            copy: True: a copy in host memory; False: never a copy; None: a copy only if dl_device requires one.

        Raises:
            BufferError: the tensor cannot be exported to that device or in that way.
        """
        versioned = max_version is not None and max_version[0] >= 1
        target = self._dlpack_device if dl_device is None else tuple(dl_device)
        if target == DLPACK_CPU and (copy or (self._on_gpu and copy is None)):
            knows_versions = np.lib.NumpyVersion(np.__version__) >= "2.1.0"  # the protocol always allows old capsules
            options: Any = {"max_version": (1, 0)} if versioned and knows_versions else {}
            return self.copy_to_host().__dlpack__(**options)
        if target != self._dlpack_device:
            raise BufferError(f"{describe(self)} is on device {self._dlpack_device}; it cannot be exported to {target}")
        if copy:
            raise BufferError(
                f"{describe(self)} is copied to the host only: pass dl_device={DLPACK_CPU}, or clone the result"
            )
        self._order(stream)
        return self._memory.export_dlpack(self._info, versioned)

    def _order(self, stream: object) -> None:
        """Orders the consumer's stream after the simulator's work, as the DLPack protocol demands."""
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
            TypeError: the tensor is on a GPU, where numpy cannot read it: use `copy_to_host()`.
        """
        if self._on_gpu:
            raise TypeError(f"{describe(self)} is GPU memory, which numpy cannot read in place; use copy_to_host()")
        self._memory.check()
        if self._array is None:
            self._array = np.asarray(_ArraySource(self.__array_interface__, self._memory))
        view: NDArray[Any] = self._array.view()
        return view

    def copy_to_host(self) -> NDArray[Any]:
        """A copy as a numpy array, ordered after everything begun on the simulator before; on any device.

        >>> import doorstep
        >>> sim = doorstep.Simulator(2)
        >>> sim.steps_remaining.copy_to_host().ravel()
        array([200, 200, 200, 200], dtype=int32)
        """
        array = np.empty(self._shape, self._dtype)
        self._memory.read(self._info, array)
        return array

    def copy_from_host(self, array: ArrayLike) -> None:
        """Sets all elements, ordered after everything begun on the simulator before; on any device.

        >>> import doorstep, numpy
        >>> sim = doorstep.Simulator(2)
        >>> sim.actions.copy_from_host(numpy.full((2, 2, 4), 1, numpy.int32))
        >>> sim.step()

        Raises:
            ArgumentError: the array has another shape or dtype, or the tensor is read-only. Nothing has changed.
        """
        if self.readonly:
            raise self._refused()
        source = np.asarray(array)
        if source.shape != self._shape or source.dtype != self._dtype:
            described = f"{source.dtype} {list(source.shape)}"
            refuse("array", f"{self._dtype} {list(self._shape)}", described)
        self._memory.write(self._info, np.ascontiguousarray(source))

    def to_torch(self) -> torch.Tensor:
        """A PyTorch tensor of this memory, without a copy. PyTorch does not know read-only memory: do not write to it.

        On a GPU, PyTorch's current stream is ordered after everything begun on the simulator before. Later steps are
        ordered too while the simulator uses that stream, as it does by default.

        Raises:
            LibraryError: PyTorch is missing: pip install "doorstep[torch]".
        """
        torch = import_optional("torch", "to_torch() needs PyTorch", "torch")
        if self._on_gpu:
            self._order(torch.cuda.current_stream(self._dlpack_device[1]).cuda_stream or LEGACY_STREAM)
        if torch.is_inference_mode_enabled():  # which what it makes would not outlive
            with torch.inference_mode(False):
                return self.to_torch()
        made = self._memory.export_object(torch.Tensor, self._info)
        if made is None:  # PyTorch is too old for the short way
            made = torch.from_dlpack(self)
        return made

    def to_jax(self, *, copy: bool = False) -> jax.Array:
        """A JAX array of this memory, without a copy unless copy is True.

        JAX assumes that arrays never change, but this one changes with every step. A warning says so once per process.
        A copy goes through the host's memory to JAX's default device.

        Raises:
            ArgumentError: the tensor is a state field and copy is False; JAX reads contiguous memory only.
            LibraryError: JAX is missing: pip install "doorstep[jax]".
        """
        jax = import_optional("jax", "to_jax() needs JAX", "jax")
        if copy:
            return jax.numpy.asarray(self.copy_to_host())
        if self._strides != packed_strides(self._shape, self._dtype.itemsize):
            refuse("copy", f"True for {self._name}, which is not contiguous", copy)
        _warn_about_immutability()
        return jax.dlpack.from_dlpack(self)


def lasting_view(make: Callable[[], Any]) -> Callable[[], Any]:
    """What returns a view of memory that is kept and handed out again and again. It is made anew once PyTorch has given
    it other memory, as `share_memory_()` does, which sending it to another process calls."""
    view = make()
    if not hasattr(view, "data_ptr"):  # numpy's, whose memory stays
        return lambda: view
    address = view.data_ptr()

    def current() -> Any:
        nonlocal view
        if view.data_ptr() != address:
            view = make()
        return view

    return current


def describe(tensor: Tensor) -> str:
    """Name, dtype, shape, device and access on one line, for messages."""
    access = "read-only" if tensor.readonly else "writable"
    return f"Tensor({tensor.name}, {tensor.dtype} {list(tensor.shape)}, {tensor.device}, {access})"


def _operand(value: Any, ufunc: np.ufunc) -> Any:
    return value._as_array(f"numpy.{ufunc.__name__}") if isinstance(value, Tensor) else value


@functools.cache
def _warn_about_immutability() -> None:
    text = "JAX assumes that arrays never change, but this one is simulator memory that every step overwrites. "
    warnings.warn(f"{text}Use to_jax(copy=True) unless you read it before the next step.", stacklevel=3)
