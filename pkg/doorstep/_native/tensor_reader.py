"""Reads tensors of every library, in Python: the slow way that always works, and the one place that refuses.

Native code (native/src/interop/python/tensor_reader.h) reads plain tensors itself and comes here for all others. Where
there is no native way, this is all there is. Both give the same results.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from doorstep._native._generated import STREAM_OWN, PythonLibrary, PythonTensor
from doorstep._native.dlpack_capsule import read_dlpack
from doorstep._native.tensor_names import BOOL, COMPLEX, CPU, CUDA, DTYPE_NAMES, DTYPES, FLOAT, SIGNED, UNSIGNED, Dtype
from doorstep._native.tensor_types import TensorKind, TensorType, find_tensor_type, find_type_offset
from doorstep.errors import ArgumentError, DeviceError

# Libraries that tell on which stream they work.
ORDERED_BY_STREAM = (PythonLibrary.TORCH, PythonLibrary.CUPY, PythonLibrary.WARP)

MAX_RANK = 16
NUMPY_KINDS = {"i": SIGNED, "u": UNSIGNED, "f": FLOAT, "c": COMPLEX, "b": BOOL}


class Rules(NamedTuple):
    """What a tensor must be like; see ReadRules in native/src/interop/python/tensor_bridge.h."""

    name: str = "tensor"
    requires_grad_allowed: bool = True
    written: bool = False
    stream: int = STREAM_OWN


class Facts(NamedTuple):
    """What is known of a tensor; strides in elements."""

    library: PythonLibrary
    pointer: int
    shape: Sequence[int]
    strides: Sequence[int]
    dtype: Dtype
    device: tuple[int, int]
    requires_grad: bool = False
    read_only: bool = False


# ---- What native code calls ----


def examine_type(cls: type) -> tuple[int, ...]:
    """The numbers of find_tensor_type() and find_type_offset(), in one row."""
    *numbers, layout = find_tensor_type(cls)
    return (*numbers, *layout, find_type_offset())


def read(tensor: object, address: int, name: str, requires_grad_allowed: bool, written: bool, stream: int) -> bool:
    """Fills in the PythonTensor at an address. True if all tensors of PyTorch with the same dispatch keys are plain."""
    view = PythonTensor.from_address(address)
    read_into(view, tensor, Rules(name, requires_grad_allowed, written, stream))
    return view.count > 0 and _has_plain_keys(tensor)  # without elements nothing was looked for in memory


# ---- Reading ----


def read_into(view: PythonTensor, tensor: Any, rules: Rules) -> None:
    """Reads a tensor of any library.

    Raises:
        ArgumentError: it is no tensor, not one that lies in memory as it is described, or against the rules.
    """
    facts = _read_facts(tensor, find_tensor_type(type(tensor)), rules)
    _check_rules(facts, rules)
    view.rank = len(facts.shape)
    view.data = facts.pointer
    view.count = math.prod(facts.shape)
    view.device_type, view.device_index = facts.device
    view.dtype_code, view.dtype_bits, view.dtype_lanes = facts.dtype
    view.contiguous = is_contiguous(facts.shape, facts.strides)
    view.requires_grad = facts.requires_grad
    view.read_only = facts.read_only
    view.library = facts.library
    view.shape[: view.rank] = list(facts.shape)
    view.strides[: view.rank] = list(facts.strides)


def _read_facts(tensor: Any, found: TensorType, rules: Rules) -> Facts:
    if found.kind == TensorKind.NONE:
        refuse(rules.name, f"a {type(tensor).__name__}, which is no tensor", "pass an object with __dlpack__")
    if found.library == PythonLibrary.TORCH:
        try:
            return _read_torch(tensor, rules)
        except ArgumentError:
            raise
        except Exception as error:  # whatever PyTorch or a class derived from its tensors raises
            _refuse_to_read(tensor, error, rules)
    if found.library == PythonLibrary.NUMPY:
        return _read_numpy(tensor, rules)
    return _read_dlpack(tensor, found.library, rules)


def _check_rules(facts: Facts, rules: Rules) -> None:
    if len(facts.shape) > MAX_RANK:
        refuse(rules.name, f"a tensor of {len(facts.shape)} dimensions", f"reshape it to {MAX_RANK} or fewer")
    count = math.prod(facts.shape)
    if count and not facts.pointer:
        refuse(rules.name, "a tensor without memory", "pass one that holds data: no fake, functional or wrapped one")
    if facts.requires_grad and not rules.requires_grad_allowed:
        refuse(rules.name, "a tensor that requires grad, which would be lost", "pass tensor.detach()")
    if facts.read_only and rules.written:
        refuse(rules.name, "a read-only tensor, but it would be written to", "pass a writable copy")


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    if 0 in shape:
        return True
    packed = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != packed:
            return False
        packed *= extent
    return True


def refuse(name: str, what: str, hint: str) -> NoReturn:
    raise ArgumentError(f"{name} is {what}", argument=name, hint=hint)


def _refuse_to_read(tensor: object, error: Exception, rules: Rules) -> NoReturn:
    text = f"{type(error).__name__}: {error}"
    refuse(rules.name, f"a {type(tensor).__name__} that cannot be read in place ({text})", "pass a copy")


# ---- PyTorch ----


def _read_torch(tensor: Any, rules: Rules) -> Facts:
    torch = sys.modules["torch"]
    without_hooks = getattr(torch._C, "DisableTorchFunctionSubclass", None) or torch._C.DisableTorchFunction
    with without_hooks():
        _refuse_unusual(torch, tensor, rules.name)
        try:
            pointer = tensor.data_ptr()
        except RuntimeError:  # of wrappers of several kinds
            pointer = 0
        dtype = _torch_dtypes(torch).get(tensor.dtype)
        if dtype is None:
            refuse(rules.name, f"a tensor of {tensor.dtype}, which DLPack has no name for", "convert it with .to()")
        if pointer and tensor.numel():
            _refuse_resized(tensor, rules.name)
        return Facts(
            PythonLibrary.TORCH,
            pointer if tensor.numel() else 0,
            tuple(tensor.shape),
            tensor.stride(),
            dtype,
            _torch_device(tensor.device, rules.name),
            tensor.requires_grad,
        )


def _refuse_unusual(torch: Any, tensor: Any, name: str) -> None:
    """Refuses whatever does not lie in memory as shape, strides and dtype say."""
    fakes = sys.modules.get("torch._subclasses.fake_tensor")
    if fakes is not None and isinstance(tensor, fakes.FakeTensor):
        refuse(name, "a fake tensor, which has no memory", "pass a real one; do not trace this call")
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        refuse(name, "a tensor within a transform of torch.func, which has no memory", "call this outside of it")
    if tensor.is_nested:
        refuse(name, "a nested tensor", "pass its tensors one by one, or tensor.to_padded_tensor(0)")
    if tensor.layout != torch.strided:
        refuse(name, f"a tensor of layout {tensor.layout}", "pass tensor.to_dense()")
    if tensor.is_quantized:
        refuse(name, "a quantised tensor", "pass tensor.dequantize() or tensor.int_repr()")
    if tensor.is_meta:
        refuse(name, "a tensor on the meta device, which has no memory", "pass one on a real device")
    if tensor.is_conj():
        refuse(name, "a tensor with the conjugate bit set", "pass tensor.resolve_conj()")
    if tensor.is_neg():
        refuse(name, "a tensor with the negative bit set", "pass tensor.resolve_neg()")


def _refuse_resized(tensor: Any, name: str) -> None:
    """Refuses a tensor whose storage has been resized below what the tensor describes."""
    extents = zip(tensor.shape, tensor.stride(), strict=True)
    end = tensor.storage_offset() + 1 + sum((extent - 1) * stride for extent, stride in extents)
    needed, nbytes = end * tensor.element_size(), tensor.untyped_storage().nbytes()
    if needed > nbytes:
        hint = "resize the storage back before, or pass another tensor"
        refuse(name, f"a tensor that needs {needed} bytes of a storage resized to {nbytes}", hint)


def _torch_dtypes(torch: Any) -> dict[Any, Dtype]:
    if not _known_torch_dtypes:
        for name, dtype in {**DTYPES, "float4_e2m1fn_x2": (17, 4, 2)}.items():
            if hasattr(torch, name):
                _known_torch_dtypes[getattr(torch, name)] = dtype
    return _known_torch_dtypes


_known_torch_dtypes: dict[Any, Dtype] = {}


def _torch_device(device: Any, name: str) -> tuple[int, int]:
    torch_types = {"cpu": CPU, "cuda": 10 if sys.modules["torch"].version.hip else CUDA, "xpu": 14, "mps": 8}
    if device.type not in torch_types:
        refuse(name, f"a tensor on {device}, which DLPack has no name for", "move it to the CPU or to a GPU")
    return torch_types[device.type], device.index or 0


def _has_plain_keys(tensor: Any) -> bool:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensor, torch.Tensor):
        return False
    return type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__


# ---- numpy ----


def _read_numpy(array: Any, rules: Rules) -> Facts:
    if isinstance(array, np.ma.MaskedArray):
        refuse(rules.name, "a masked array, whose mask would be lost", "pass array.filled()")
    dtype = _numpy_dtype(array.dtype)
    if dtype is None:
        refuse(rules.name, f"an array of {array.dtype}", "convert it to plain numbers of this machine's byte order")
    if any(stride % array.itemsize and extent > 1 for stride, extent in zip(array.strides, array.shape, strict=True)):
        refuse(rules.name, "an array spaced by parts of elements", "pass array.copy()")
    strides = tuple(stride // array.itemsize for stride in array.strides)
    pointer = array.ctypes.data if array.size else 0
    device = (CPU, 0)
    return Facts(
        PythonLibrary.NUMPY, pointer, array.shape, strides, dtype, device, read_only=not array.flags.writeable
    )


def _numpy_dtype(dtype: np.dtype[Any]) -> Dtype | None:
    bits = dtype.itemsize * 8
    if dtype.type.__module__ == "ml_dtypes":  # what JAX adds to numpy
        known = DTYPES.get(dtype.name)
        return known if known is not None and known[1] == bits else None
    code = NUMPY_KINDS.get(dtype.kind)
    return (code, bits, 1) if code is not None and dtype.isnative and (code, bits) in DTYPE_NAMES else None


# ---- Everything else ----


def _read_dlpack(tensor: Any, library: PythonLibrary, rules: Rules) -> Facts:
    try:
        exported = read_dlpack(tensor, rules.stream)
    except Exception as error:  # whatever a library raises when it cannot export
        _refuse_to_read(tensor, error, rules)
    read_only = exported.read_only or library == PythonLibrary.JAX  # whose capsules do not say so
    return Facts(
        library, exported.pointer, exported.shape, exported.strides, exported.dtype, exported.device, False, read_only
    )


# ---- What the exchange API does for the libraries that have it ----


def stream_of_owner(tensor: Any, view: PythonTensor) -> int | None:
    """The CUstream that the library of a tensor that was read works on; None on the host, and if it does not tell."""
    if view.device_type != CUDA or view.library not in ORDERED_BY_STREAM:
        return None
    return current_stream(tensor, CUDA, view.device_index)


def current_stream(tensor: Any, device_type: int, device_index: int) -> int:
    """The CUstream that a tensor's library works on now.

    Raises:
        DeviceError: the library does not tell, or cannot use the device.
    """
    if device_type != CUDA:
        return 0
    library = find_tensor_type(type(tensor)).library
    if library in ORDERED_BY_STREAM:
        try:
            return _stream_of(library, device_index)
        except Exception as error:  # whatever a library raises that has no CUDA or no such device
            raise DeviceError(f"{library.name.lower()} cannot use cuda:{device_index}: {error}") from error
    raise DeviceError(
        f"a {type(tensor).__name__} does not tell on which stream its library works",
        argument="device",
        hint="order the work with the library's own means, and pass the stream",
    )


def _stream_of(library: PythonLibrary, device_index: int) -> int:
    if library == PythonLibrary.TORCH:
        torch = sys.modules["torch"]
        if not torch.backends.cuda.is_built():  # says the exchange API too
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
    library = find_tensor_type(type(tensor)).library
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
        refuse("tensor", f"a {type(tensor).__name__}, whose library makes none in a standard way", "make one yourself")
    namespace = tensor.__array_namespace__()
    return (namespace.zeros_like if zeros else namespace.empty_like)(tensor)
