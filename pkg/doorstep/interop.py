"""Tensors of PyTorch, numpy, JAX, CuPy, Warp and any other library with `__dlpack__`, as native code sees them.

What a tensor is (address, shape, strides, type, device), which stream its library works on, copies between tensors and
raw addresses, and new tensors like old ones. Plain tensors of PyTorch and numpy are read by the native library through
DLPack's C exchange API and the buffer protocol, in tens of nanoseconds; everything else takes microseconds, with the
same results. Native code has the same functions in `doorstep/python.h`.

Tensors whose elements do not lie in memory as they are described are refused with an ArgumentError that says what to
do: fake, meta, nested, quantised, sparse, masked and wrapped tensors, and those with the conjugate or the negative bit
set. Tensors that require grad are read like others; autograd sees nothing of what is done here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doorstep._arguments import check_integer
from doorstep._native import fast_calls
from doorstep._native.foreign_tensor import CUDA, CUDA_MANAGED, ForeignTensor
from doorstep._native.tensor_calls import copy_tensor, tensor_signature
from doorstep._tensors.checks import ReadRules
from doorstep._tensors.libraries import current_stream as _stream_of_library
from doorstep._tensors.libraries import make_like
from doorstep._tensors.reader import read_tensor
from doorstep._tensors.types import TensorKind, find_tensor_type
from doorstep.errors import DeviceError, LibraryError

__all__ = [
    "copy_from_pointer",
    "copy_to_pointer",
    "current_stream",
    "describe",
    "describe_many",
    "empty_like",
    "is_tensor",
    "signature",
    "zeros_like",
]

MAX_ADDRESS = 2**64 - 1
MAX_DEVICES = 2**31 - 1
OWN_DEVICE = 0  # in place of a DLPack device type


class TensorDescription:
    """The properties of a tensor at the time it was described. It keeps neither the tensor nor its memory alive.

    Descriptions come from `describe()` and `describe_many()`, never change, and are equal if all their attributes are.
    """

    __slots__ = ()

    _tensor: ForeignTensor

    def __init__(self) -> None:
        raise TypeError("descriptions come from describe() and describe_many()")

    @property
    def pointer(self) -> int:
        """Address of the first element; 0 if there are none."""
        return self._tensor.pointer

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements per dimension."""
        return self._tensor.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one to the next, per dimension; undefined where a dimension has one element."""
        return self._tensor.element_strides

    @property
    def dtype(self) -> str:
        """Type of the elements: "float32", "bfloat16", "bool", ..."""
        return self._tensor.dtype.name

    @property
    def device(self) -> str:
        """Device of the memory: "cpu", "cuda:1", ..."""
        return self._tensor.device

    @property
    def library(self) -> str:
        """ "torch", "numpy", "jax", "cupy", "warp", "doorstep" or "other"."""
        return self._tensor.library.name.lower()

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._tensor.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._tensor.dtype.itemsize

    @property
    def contiguous(self) -> bool:
        """True if the elements lie side by side in row-major order."""
        return self._tensor.contiguous

    @property
    def requires_grad(self) -> bool:
        """True if PyTorch records gradients for the tensor."""
        return self._tensor.requires_grad

    @property
    def readonly(self) -> bool:
        """True if the memory must not be written to. PyTorch cannot tell, and says False."""
        return self._tensor.read_only

    @property
    def nbytes(self) -> int:
        """Bytes of all elements together."""
        return self.size * self.itemsize

    def _facts(self) -> tuple[object, ...]:
        place = (self.pointer, self.shape, self.strides, self.dtype, self.device, self.library)
        return (*place, self.requires_grad, self.readonly)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorDescription):
            return NotImplemented
        return self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def __copy__(self) -> TensorDescription:
        return self

    def __deepcopy__(self, _: object) -> TensorDescription:
        return self

    def __repr__(self) -> str:
        notes = [("strided", not self.contiguous), ("requires grad", self.requires_grad), ("read-only", self.readonly)]
        words = "".join(f", {note}" for note, applies in notes if applies)
        return f"TensorDescription({self.library}, {self.dtype} {list(self.shape)}, {self.device}{words})"


class _PythonDescription(TensorDescription):
    """A description made by Python; those made by the native library store the same in C."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: ForeignTensor) -> None:
        object.__setattr__(self, "_tensor", tensor._replace(owner=None))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a TensorDescription has no attribute {name!r} that can be set")


# ---- Reading ----
# These four are replaced by builtins of the native library at the end of the module.


def is_tensor(object: object) -> bool:
    """Whether an object is a tensor of some library: whether its class has `__dlpack__`.

    >>> import numpy
    >>> from doorstep.interop import is_tensor
    >>> is_tensor(numpy.zeros(3)), is_tensor([0, 0, 0])
    (True, False)
    """
    return find_tensor_type(type(object)).kind != TensorKind.NONE


def describe(tensor: object) -> TensorDescription:
    """Describes a tensor.

    >>> import numpy
    >>> from doorstep.interop import describe
    >>> array = numpy.zeros((4, 5), numpy.float32)
    >>> described = describe(array[:, ::2])
    >>> described
    TensorDescription(numpy, float32 [4, 3], cpu, strided)
    >>> described.strides, described.pointer == array.ctypes.data
    ((5, 2), True)

    Raises:
        ArgumentError: it is no tensor, or does not lie in memory as it is described.
    """
    return _PythonDescription(read_tensor(tensor, ReadRules()))


def describe_many(tensors: Sequence[object]) -> tuple[TensorDescription, ...]:
    """Describes many tensors in one call.

    Raises:
        ArgumentError: one of them is no tensor, or does not lie in memory as it is described; the message names it.
    """
    named = ((ReadRules(f"tensors[{i}]"), tensor) for i, tensor in enumerate(tensors))
    return tuple(_PythonDescription(read_tensor(tensor, rules)) for rules, tensor in named)


def signature(tensor: object) -> str:
    """The properties that decide where a tensor can be used, as a short text: a key for caches.

    Library, number of dimensions, type of elements, device, shape; then "strided", "grad" and "readonly" where true.

    >>> import numpy
    >>> from doorstep.interop import signature
    >>> signature(numpy.zeros((4, 5), numpy.float32))
    '[numpy,D2,Sfloat32,cpu,4x5]'

    Raises:
        ArgumentError: as for `describe`.
    """
    return tensor_signature(read_tensor(tensor, ReadRules()).struct())


# ---- Streams and copies ----


def current_stream(tensor: object, device_index: int | None = None) -> int:
    """The CUstream on which the library of a tensor works now; 0 for the CPU, and for the legacy default stream.

    Args:
        tensor: any tensor of the library.
        device_index: which GPU; None: the device of the tensor.

    Raises:
        ArgumentError: as for `describe`.
        DeviceError: the library does not tell (JAX), or cannot use that device.
    """
    if device_index is not None:
        check_integer("device_index", device_index, 0, MAX_DEVICES)
    if _calls is not None:
        device = (OWN_DEVICE, 0) if device_index is None else (CUDA, device_index)
        stream: int = _calls["current_stream"](tensor, *device)
        return stream
    found = read_tensor(tensor, ReadRules())
    device = (found.device_type, found.device_index) if device_index is None else (CUDA, device_index)
    return _stream_of_library(tensor, *device)


def copy_to_pointer(tensor: object, pointer: int, nbytes: int) -> None:
    """Copies all elements of a tensor to an address, side by side in row-major order.

    On the CPU the address is one of the host, and the copy is done when this returns. On CUDA it is any address that
    the driver knows, and the copy is begun on the stream that the tensor's library uses.

    >>> import numpy
    >>> from doorstep.interop import copy_to_pointer
    >>> source, target = numpy.arange(6).reshape(2, 3).T, numpy.zeros(6, numpy.int64)
    >>> copy_to_pointer(source, target.ctypes.data, target.nbytes)
    >>> target
    array([0, 3, 1, 4, 2, 5])

    Args:
        tensor: of any strides.
        pointer: address of as many bytes as follow.
        nbytes: bytes of all elements together.

    Raises:
        ArgumentError: as for `describe`; or nbytes is wrong; or the tensor is on another kind of device.
        DeviceError: the library does not tell its stream (JAX).
    """
    _copy("copy_to_pointer", tensor, pointer, nbytes)


def copy_from_pointer(tensor: object, pointer: int, nbytes: int) -> None:
    """Copies elements that lie side by side in row-major order at an address to a tensor.

    Otherwise like `copy_to_pointer`. Autograd does not see the copy.

    Raises:
        ArgumentError: as for `copy_to_pointer`; or the tensor is read-only; or its elements share memory (expanded).
        DeviceError: the library does not tell its stream (JAX).
    """
    _copy("copy_from_pointer", tensor, pointer, nbytes)


def _copy(name: str, tensor: object, pointer: int, nbytes: int) -> None:
    address = check_integer("pointer", pointer, 0, MAX_ADDRESS)
    size = check_integer("nbytes", nbytes, 0, MAX_ADDRESS)
    if _calls is not None:
        _calls[name](tensor, address, size)
        return
    found = read_tensor(tensor, ReadRules(written=name == "copy_from_pointer"))
    on_cuda = found.device_type in (CUDA, CUDA_MANAGED)
    stream = _stream_of_library(tensor, CUDA, found.device_index) if on_cuda else 0
    copy_tensor(found.struct(), stream, address, size, to_pointer=name == "copy_to_pointer")


# ---- New tensors ----


def empty_like(tensor: object) -> Any:
    """A new C-contiguous tensor of the same library, shape, dtype and device, of undefined content, without gradients.

    Raises:
        ArgumentError: as for `describe`; or the library has no known way to make tensors.
    """
    return _make_like(tensor, zeros=False)


def zeros_like(tensor: object) -> Any:
    """Like `empty_like`, with zeros, which are written on the stream that the library works on.

    >>> import numpy
    >>> from doorstep.interop import zeros_like
    >>> zeros_like(numpy.ones(3)[::2])
    array([0., 0.])

    Raises:
        ArgumentError: as for `empty_like`.
    """
    return _make_like(tensor, zeros=True)


def _make_like(tensor: object, zeros: bool) -> Any:
    if _calls is not None:
        return _calls["zeros_like" if zeros else "empty_like"](tensor)
    read_tensor(tensor, ReadRules())
    return make_like(tensor, zeros)


# ---- Builtins ----

# The examples in these are tested, and their docstrings are documented, whether or not builtins take their place.
__test__ = {function.__name__: function for function in (is_tensor, describe, describe_many, signature)}


def _use_builtins() -> Any:
    """Replaces the functions above that cost little more than a call by builtins; returns all fast calls, or None."""
    try:
        calls = fast_calls()
    except (DeviceError, LibraryError):  # raised again by every function that needs the library
        return None
    if calls is not None:
        calls["description_type"](TensorDescription)
        globals().update({name: calls[name] for name in __test__})
    return calls


_calls = _use_builtins()
