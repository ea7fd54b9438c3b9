"""Finds the offsets of fields that no API gives access to, by experiment on the Python and the PyTorch in use.

The fields are the type of any object, and of PyTorch's tensors those that DLPack's exchange API leaves out.

DLPack's exchange API describes conjugate, negative, fake and wrapped tensors as if they were plain memory, and says
nothing of gradients. Asking a tensor for these takes longer than everything else. They follow from two words of its
implementation object: the set of dispatch keys, whose value `torch._C._dispatch_keys` tells, and a pointer that is null
in tensors without gradients. Nor does the API notice that a storage has been resized below what its tensors describe;
the storage keeps its address and its size in two words of its own. This module looks for the words in a handful of
tensors, and gives up unless all of them agree on one place for each. The words are only read, and only to see that a
tensor is as plain as one that was asked.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from doorstep._native.library import PYTHON

WORD_BYTES = 8
MAX_ALLOCATION_BYTES = 512

Words = tuple[int, ...]


@functools.cache
def find_type_offset() -> int:
    """Bytes from the beginning of any object to the address of its type; 0 if the experiment does not show it."""
    words = ctypes.c_size_t * (object.__basicsize__ // ctypes.sizeof(ctypes.c_size_t))
    objects: tuple[object, ...] = (object(), 1.5, "text", [], int, np.zeros(1))
    places = [{i for i, word in enumerate(words.from_address(id(o))) if word == id(type(o))} for o in objects]
    common = set.intersection(*places)
    return common.pop() * ctypes.sizeof(ctypes.c_size_t) if len(common) == 1 else 0


class TorchLayout(NamedTuple):
    """Offsets in bytes."""

    implementation: int  # in the Python object: the address of the implementation
    keys: int  # in the implementation: the dispatch keys
    gradient: int  # in the implementation: a pointer that is null without gradients
    storage: int  # in the implementation: the address of the storage
    storage_data: int  # in the storage: the address of its memory
    storage_bytes: int  # in the storage: the size of its memory


class _Probe(NamedTuple):
    """Known values of a tensor, and the words of memory that are searched for them."""

    keys: int
    implementation_address: int
    object_words: Words
    implementation_words: Words
    storage: _Storage | None  # None: without one


class _Storage(NamedTuple):
    """Known values of a storage, and the words of memory that are searched for them."""

    address: int
    data: int
    nbytes: int
    words: Words


def find_torch_layout(torch: Any) -> TorchLayout | None:
    """The layout of tensors; None if the experiment does not give one clear answer."""
    try:
        with _plain_state(torch):
            plain, with_gradient, unusual = (list(map(_examine(torch), tensors)) for tensors in _tensors(torch))
    except Exception:  # another version of PyTorch may raise anything here
        return None
    probes = [*plain, *with_gradient, *unusual]
    if {probe.keys for probe in unusual} & {probe.keys for probe in [*plain, *with_gradient]}:
        return None
    implementation = _common(_offsets(probe.object_words, probe.implementation_address) for probe in probes)
    keys = _common(_offsets(probe.implementation_words, probe.keys) for probe in probes)
    null = [_offsets(probe.implementation_words, 0) for probe in plain]
    not_null = [_offsets(probe.implementation_words, 0, equal=False) for probe in with_gradient]
    gradient = _common([*null, *not_null])
    storages = [(probe.implementation_words, probe.storage) for probe in probes if probe.storage is not None]
    storage = _common(_offsets(words, storage.address) for words, storage in storages)
    data = _common(_offsets(storage.words, storage.data) for _, storage in storages)
    nbytes = _common(_offsets(storage.words, storage.nbytes) for _, storage in storages)
    layout = (implementation, keys, gradient, storage, data, nbytes)
    return None if None in layout else TorchLayout(*layout)  # type: ignore[arg-type]


@contextmanager
def _plain_state(torch: Any) -> Iterator[None]:
    """Suspends all modes and transforms that the caller has switched on for its thread."""
    from torch.utils._python_dispatch import _disable_current_modes

    internals = torch._C
    names = ("Functionalize", "FuncTorchDynamicLayerFrontMode", "FuncTorchDynamicLayerBackMode")
    transforms = functools.reduce(or_, (internals.DispatchKeySet(getattr(internals.DispatchKey, n)) for n in names))
    without_transforms = internals._ExcludeDispatchKeyGuard(transforms)
    without_functions = internals.DisableTorchFunction()
    without_modes = _disable_current_modes()
    with without_functions, without_transforms, without_modes, torch.inference_mode(False), torch.enable_grad():
        yield


def _tensors(torch: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Plain tensors, tensors that require grad, and tensors that are not what the exchange API says."""

    class Subclass(torch.Tensor):  # type: ignore[misc]
        pass

    matrix = torch.zeros(4, 5, device="cpu")
    leaf = torch.zeros(2, device="cpu", requires_grad=True)
    plain = [
        matrix,
        torch.zeros(0, dtype=torch.uint8, device="cpu"),
        torch.zeros((), dtype=torch.float64, device="cpu"),
        torch.zeros(3, dtype=torch.complex64, device="cpu"),
        torch.Tensor._make_subclass(Subclass, matrix),
        torch.nn.Parameter(matrix, requires_grad=False),
        leaf.detach(),
        torch.frombuffer(bytearray(24), dtype=torch.int16),  # the address of its memory is not the address of an owner
    ]
    with_gradient = [leaf, leaf * 2, torch.nn.Parameter(matrix), torch.Tensor._make_subclass(Subclass, matrix, True)]
    unusual = [torch._neg_view(matrix), torch.conj(plain[3]), matrix.to_sparse(), matrix.to("meta")]
    return plain, with_gradient, unusual


def _examine(torch: Any) -> Callable[[Any], _Probe]:
    usable_size = PYTHON.malloc_usable_size
    usable_size.restype = ctypes.c_size_t
    usable_size.argtypes = (ctypes.c_void_p,)

    def examine(tensor: Any) -> _Probe:
        address = int(tensor._cdata)
        return _Probe(
            int(torch._C._dispatch_keys(tensor).raw_repr()),
            address,
            _words(id(tensor), type(tensor).__basicsize__),
            words_of_allocation(address),
            storage(tensor) if tensor.layout == torch.strided and not tensor.is_meta else None,
        )

    def storage(tensor: Any) -> _Storage:
        found = tensor.untyped_storage()
        address = int(found._cdata)
        return _Storage(address, found.data_ptr(), found.nbytes(), words_of_allocation(address))

    def words_of_allocation(address: int) -> Words:
        return _words(address, min(usable_size(address), MAX_ALLOCATION_BYTES))

    return examine


def _words(address: int, nbytes: int) -> Words:
    return tuple((ctypes.c_uint64 * (nbytes // WORD_BYTES)).from_address(address))


def _offsets(words: Words, value: int, equal: bool = True) -> set[int]:
    return {i * WORD_BYTES for i, word in enumerate(words) if (word == value) == equal}


def _common(offsets: Iterable[set[int]]) -> int | None:
    """The one offset that is in all sets."""
    common = set.intersection(*offsets)
    return common.pop() if len(common) == 1 else None
