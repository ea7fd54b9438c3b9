"""Reads tensors of every library in Python: slower than native code, but of every kind, and with every refusal."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from doorstep._native._generated import PythonLibrary
from doorstep._native.dlpack import read_dlpack
from doorstep._native.foreign_tensor import (
    CPU,
    CUDA,
    ELEMENT_TYPES,
    ElementType,
    ForeignTensor,
    element_type,
    is_contiguous,
)
from doorstep._tensors.array_interfaces import as_array, numpy_element_type, read_cuda_interface
from doorstep._tensors.checks import ReadRules, check_rules, refuse_unusable
from doorstep._tensors.libraries import stream_of
from doorstep._tensors.types import TensorKind, TensorType, find_tensor_type, is_masked
from doorstep.errors import ArgumentError


def read_memory(value: Any, rules: ReadRules) -> ForeignTensor:
    """Reads any object with `__dlpack__`, an array interface or the buffer protocol, and the stream of its library.

    Raises:
        ArgumentError: it is no tensor, its elements do not lie in memory as it describes them, or it is against the
            rules.
    """
    if hasattr(type(value), "__dlpack__"):
        tensor = read_tensor(value, rules)
    elif hasattr(value, "__cuda_array_interface__"):
        return read_cuda_interface(value, rules)
    else:
        tensor = read_tensor(as_array(rules.name, value), rules)
    if tensor.device_type != CUDA:
        return tensor
    return tensor._replace(stream=_stream_of_owner(tensor, rules))


def read_tensor(value: Any, rules: ReadRules) -> ForeignTensor:
    """Reads an object with `__dlpack__`, without the stream of its library.

    Raises:
        ArgumentError: as for `read_memory`.
    """
    tensor = _read(value, find_tensor_type(type(value)), rules)
    check_rules(tensor, rules)
    return tensor


def _stream_of_owner(tensor: ForeignTensor, rules: ReadRules) -> int | None:
    """The stream of the library; if that is not known, the one that the object's array interface names."""
    may_tell = tensor.library in (PythonLibrary.OTHER, PythonLibrary.DOORSTEP)
    if may_tell and hasattr(tensor.owner, "__cuda_array_interface__"):
        return read_cuda_interface(tensor.owner, rules).stream
    return stream_of(tensor)


def _read(value: Any, found: TensorType, rules: ReadRules) -> ForeignTensor:
    if found.kind == TensorKind.NONE:
        refuse_unusable(rules.name, f"a {type(value).__name__}, which is no tensor", "pass an object with __dlpack__")
    if found.library == PythonLibrary.TORCH:
        try:
            return _read_torch(value, rules.name)
        except ArgumentError:
            raise
        except Exception as error:  # PyTorch and classes derived from its tensors may raise anything
            _refuse_to_read(value, error, rules.name)
    if found.library == PythonLibrary.NUMPY:
        return _read_numpy(value, rules.name)
    try:
        tensor = read_dlpack(value, found.library, rules.stream)
    except Exception as error:  # other libraries may raise anything
        _refuse_to_read(value, error, rules.name)
    # The capsules of JAX do not say that its arrays are read-only.
    return tensor._replace(read_only=True) if found.library == PythonLibrary.JAX else tensor


def _refuse_to_read(value: object, error: Exception, name: str) -> NoReturn:
    text = f"{type(error).__name__}: {error}"
    refuse_unusable(name, f"a {type(value).__name__} that cannot be read in place ({text})", "pass a copy")


# ---- PyTorch ----


def _read_torch(tensor: Any, name: str) -> ForeignTensor:
    torch = sys.modules["torch"]
    without_hooks = getattr(torch._C, "DisableTorchFunctionSubclass", None) or torch._C.DisableTorchFunction
    with without_hooks():
        _refuse_unusual(torch, tensor, name)
        try:
            pointer = tensor.data_ptr()
        except RuntimeError:  # of wrappers of several kinds
            pointer = 0
        dtype = _torch_dtypes(torch).get(tensor.dtype)
        if dtype is None:
            refuse_unusable(name, f"a tensor of {tensor.dtype}, which DLPack has no name for", "convert it with .to()")
        count = tensor.numel()
        if pointer and count:
            _refuse_resized(tensor, name)
        shape, itemsize = tuple(tensor.shape), dtype.itemsize
        strides = tuple([stride * itemsize for stride in tensor.stride()])
        return ForeignTensor(
            tensor,
            PythonLibrary.TORCH,
            pointer if count else 0,
            dtype,
            shape,
            strides,
            *_torch_device(tensor.device, name),
            is_contiguous(shape, strides, itemsize),
            tensor.requires_grad,
        )


def _refuse_unusual(torch: Any, tensor: Any, name: str) -> None:
    """Refuses tensors whose elements do not lie in memory as shape, strides and dtype say."""
    fake = getattr(sys.modules.get("torch._subclasses.fake_tensor"), "FakeTensor", None)  # None: not imported yet
    if fake is not None and isinstance(tensor, fake):
        refuse_unusable(name, "a fake tensor, which has no memory", "pass a real one; do not trace this call")
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        hint = "call this outside of it"
        refuse_unusable(name, "a tensor within a transform of torch.func, which has no memory", hint)
    if tensor.is_nested:
        refuse_unusable(name, "a nested tensor", "pass its tensors one by one, or tensor.to_padded_tensor(0)")
    if tensor.layout != torch.strided:
        refuse_unusable(name, f"a tensor of layout {tensor.layout}", "pass tensor.to_dense()")
    if tensor.is_quantized:
        refuse_unusable(name, "a quantised tensor", "pass tensor.dequantize() or tensor.int_repr()")
    if tensor.is_meta:
        refuse_unusable(name, "a tensor on the meta device, which has no memory", "pass one on a real device")
    if tensor.is_conj():
        refuse_unusable(name, "a tensor with the conjugate bit set", "pass tensor.resolve_conj()")
    if tensor.is_neg():
        refuse_unusable(name, "a tensor with the negative bit set", "pass tensor.resolve_neg()")


def _refuse_resized(tensor: Any, name: str) -> None:
    """Refuses a tensor whose storage has been resized below what the tensor describes."""
    extents = zip(tensor.shape, tensor.stride(), strict=True)
    end = tensor.storage_offset() + 1 + sum((extent - 1) * stride for extent, stride in extents)
    needed, nbytes = end * tensor.element_size(), tensor.untyped_storage().nbytes()
    if needed > nbytes:
        hint = "resize the storage back before, or pass another tensor"
        refuse_unusable(name, f"a tensor that needs {needed} bytes of a storage resized to {nbytes}", hint)


def _torch_dtypes(torch: Any) -> dict[Any, ElementType]:
    if not _known_torch_dtypes:
        for name, dtype in {**ELEMENT_TYPES, "float4_e2m1fn_x2": element_type(17, 4, 2)}.items():
            if hasattr(torch, name):
                _known_torch_dtypes[getattr(torch, name)] = dtype
    return _known_torch_dtypes


_known_torch_dtypes: dict[Any, ElementType] = {}


def _torch_device(device: Any, name: str) -> tuple[int, int]:
    torch_types = {"cpu": CPU, "cuda": 10 if sys.modules["torch"].version.hip else CUDA, "xpu": 14, "mps": 8}
    if device.type not in torch_types:
        refuse_unusable(name, f"a tensor on {device}, which DLPack has no name for", "move it to the CPU or to a GPU")
    return torch_types[device.type], device.index or 0


# ---- numpy ----


def _read_numpy(array: Any, name: str) -> ForeignTensor:
    if is_masked(type(array)):
        refuse_unusable(name, "a masked array, whose mask would be lost", "pass array.filled()")
    dtype = numpy_element_type(array.dtype)
    if dtype is None:
        hint = "convert it to plain numbers of this machine's byte order"
        refuse_unusable(name, f"an array of {array.dtype}", hint)
    itemsize, shape, strides = dtype.itemsize, array.shape, array.strides
    if any(stride % itemsize and extent > 1 for stride, extent in zip(strides, shape, strict=True)):
        refuse_unusable(name, "an array spaced by parts of elements", "pass array.copy()")
    return ForeignTensor(
        array,
        PythonLibrary.NUMPY,
        array.ctypes.data if array.size else 0,
        dtype,
        shape,
        strides,
        CPU,
        0,
        is_contiguous(shape, strides, itemsize),
        read_only=not array.flags.writeable,
    )
