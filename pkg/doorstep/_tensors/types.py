"""Decides for a Python type how its tensors are read."""

from __future__ import annotations

import functools
import sys
import warnings
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from doorstep._native._generated import PythonLibrary
from doorstep._native.dlpack import can_describe, exchange_api
from doorstep._native.object_layout import TorchLayout, find_torch_layout

# By the first part of the name of the module of a type or of a base.
LIBRARIES = {
    "torch": PythonLibrary.TORCH,
    "numpy": PythonLibrary.NUMPY,
    "jax": PythonLibrary.JAX,
    "jaxlib": PythonLibrary.JAX,
    "cupy": PythonLibrary.CUPY,
    "warp": PythonLibrary.WARP,
    "doorstep": PythonLibrary.DOORSTEP,
}


class TensorKind(IntEnum):
    """Numbers of the enumeration in native/src/interop/python/tensor_bridge.h, which explains them."""

    NONE = 0
    TORCH = 1
    EXCHANGE = 2
    BUFFER = 3
    READER = 4


class TensorType(NamedTuple):
    """The decision for a type, in the order in which native code stores it."""

    kind: TensorKind
    library: PythonLibrary
    is_own: bool  # a class of the library itself, of which there are few
    has_plain_attributes: bool = False
    exchange_api: int = 0
    layout: TorchLayout = TorchLayout(*[0] * len(TorchLayout._fields))


def find_tensor_type(cls: type) -> TensorType:
    """Decides how tensors of this class are read."""
    library = find_library(cls)
    if library == PythonLibrary.TORCH:
        return _torch_type(cls)
    if library == PythonLibrary.NUMPY:
        return _numpy_type(cls)
    is_own, api = _is_own(cls), exchange_api(cls)
    if api:
        return TensorType(TensorKind.EXCHANGE, library, is_own, exchange_api=api)
    return TensorType(TensorKind.READER if hasattr(cls, "__dlpack__") else TensorKind.NONE, library, is_own)


def find_library(cls: type) -> PythonLibrary:
    """The library whose class this is or is derived from."""
    for base in cls.__mro__:
        library = _library_of_module(base)
        if library is not None and hasattr(base, "__dlpack__"):
            return library
    return PythonLibrary.OTHER


def _library_of_module(cls: type) -> PythonLibrary | None:
    return LIBRARIES.get(str(getattr(cls, "__module__", "")).partition(".")[0])


def _is_own(cls: type) -> bool:
    return _library_of_module(cls) is not None and hasattr(cls, "__dlpack__")


def _torch_type(cls: Any) -> TensorType:
    """PyTorch's own tensors, if it has the exchange API and its layout could be found; otherwise read in Python."""
    torch = sys.modules.get("torch")
    if torch is None or not issubclass(cls, torch.Tensor):
        return TensorType(TensorKind.NONE, PythonLibrary.OTHER, is_own=False)
    api, layout = exchange_api(cls), torch_layout()
    if not api or not can_describe(api) or layout is None:
        _warn_once(f"PyTorch {torch.__version__}")
        return TensorType(TensorKind.READER, PythonLibrary.TORCH, _is_own(cls))
    functions = (torch.Tensor.__torch_function__, torch._C._disabled_torch_function_impl)
    hook = getattr(cls.__torch_function__, "__func__", cls.__torch_function__)
    plain = hook in (getattr(function, "__func__", function) for function in functions)
    return TensorType(TensorKind.TORCH, PythonLibrary.TORCH, _is_own(cls), plain, api, layout)


@functools.cache
def torch_layout() -> TorchLayout | None:
    """Of the PyTorch that is imported; None if it could not be found."""
    return find_torch_layout(sys.modules["torch"])


def _numpy_type(cls: type) -> TensorType:
    exports_otherwise = getattr(cls, "__buffer__", None) is not getattr(np.ndarray, "__buffer__", None)
    kind = TensorKind.READER if is_masked(cls) or exports_otherwise else TensorKind.BUFFER  # the reader refuses masks
    return TensorType(kind, PythonLibrary.NUMPY, _is_own(cls))


def is_masked(cls: type) -> bool:
    """Whether it is numpy's masked array or derived from it: by name, as `numpy.ma` is a lazy import of 50 ms, which
    another thread may have begun."""
    return any(base.__name__ == "MaskedArray" and base.__module__.startswith("numpy.ma") for base in cls.__mro__)


_warned = False


def _warn_once(library: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"{library} does not offer DLPack's exchange API in a form that doorstep knows, so its tensors are read "
            "through Python attributes: with the same results, at tens of times the cost (use PyTorch 2.10 or later)",
            RuntimeWarning,
            stacklevel=2,
        )
