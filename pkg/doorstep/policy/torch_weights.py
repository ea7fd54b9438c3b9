"""The tensors of a module that a policy reads in place: whether they are still there, and copies of them."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
import torch
from numpy.typing import NDArray

from doorstep import interop
from doorstep._native import fast_calls
from doorstep._native.policies import LayerHandle, LayerWeights, PolicyHandle, address_of
from doorstep.errors import ArgumentError, StateError
from doorstep.policy.shapes import ARRAYS
from doorstep.policy.torch_layers import LayerSpec
from doorstep.policy.torch_modules import device_of

_ADDRESS_OF = torch.Tensor.data_ptr


class _Place(NamedTuple):
    """Where a module has a tensor of a layer."""

    name: str  # "module.0.weight"
    holder: dict[str, Any]  # the module's own dictionary, which keeps its tensors and not the module
    key: str
    layer: int
    array: str
    address: int
    nbytes: int


@final
class ModuleWeights:
    """The tensors of the layers of a module. What gives a tensor other memory frees the old one, or leaves the policy
    with weights that nobody changes any more: check() finds it before they are read."""

    def __init__(self, layers: Sequence[LayerSpec]) -> None:
        places = [place for index, layer in enumerate(layers) for place in _places(index, layer)]
        wide_first = sorted(places, key=lambda place: -place.holder[place.key].itemsize)  # in a copy all are aligned
        self._places = wide_first
        self._holders = [place.holder for place in wide_first]
        self._keys = [place.key for place in wide_first]
        self._addresses = [place.address for place in wide_first]
        self._numbers = [
            (layer.kind, layer.num_inputs, layer.num_outputs, layer.parameter, layer.shape) for layer in layers
        ]
        self._types = [layer.weight_type for layer in layers]
        self._num_heads = sum(layer.is_head for layer in layers)
        self.device = device_of(layers).type

    def check(self) -> None:
        """Compares the addresses of the module's tensors, as it has them now, with those that the policy reads.

        Raises:
            StateError: one is elsewhere; the message names it.
        """
        try:
            if list(map(_ADDRESS_OF, map(operator.getitem, self._holders, self._keys))) == self._addresses:
                return
        except (KeyError, TypeError, RuntimeError):  # it is absent, None, or has no memory
            pass
        self._refuse()

    def copy(self) -> NDArray[np.uint64]:
        """The bytes of all tensors as they are now, of a module on the CPU.

        Raises:
            StateError: as check().
        """
        self.check()
        tensors = list(map(operator.getitem, self._holders, self._keys))
        nbytes = sum(place.nbytes for place in self._places)
        copied = np.zeros(-(-nbytes // 8), np.uint64)  # words are compared faster than bytes
        try:
            left = _pack(tensors, address_of(copied), nbytes)
        except ArgumentError:  # a tensor has other elements now
            self._refuse()
        return self._refuse() if left else copied

    def policy_of(self, copied: NDArray[np.uint64]) -> PolicyHandle:
        """The policy that reads such a copy."""
        addresses: list[dict[str, Any]] = [{} for _ in self._numbers]
        address = address_of(copied)
        for place in self._places:
            addresses[place.layer][place.array] = address
            address += place.nbytes
        layers = [
            LayerHandle.create(*numbers, LayerWeights(weight_type, **arrays, owner=copied))
            for numbers, weight_type, arrays in zip(self._numbers, self._types, addresses, strict=True)
        ]
        return PolicyHandle.create(layers, self._num_heads)

    def _refuse(self) -> NoReturn:
        name = next((place.name for place in self._places if not _is_there(place)), "a tensor of the module")
        raise StateError(
            f"{name} is no longer what the policy reads: the module has another tensor there, or it has other memory",
            argument="module",
            hint="make a new policy of the module; to(), share_memory(), load_state_dict(assign=True), resize_() and"
            " setting .data give tensors other memory",
        )


@final
class WeightCopy:
    """A policy with a copy of a module's weights, which is read while the module's own may move or change.

    Raises:
        StateError: as ModuleWeights.copy(), in all operations.
    """

    def __init__(self, weights: ModuleWeights) -> None:
        self._weights, self._copied = weights, weights.copy()
        self.policy = weights.policy_of(self._copied)

    def digest(self) -> bytes:
        """Other weights have another one."""
        return hashlib.blake2b(self._copied.data, digest_size=16).digest()

    def is_current(self) -> bool:
        """Whether the module has these weights still."""
        return np.array_equal(self._weights.copy(), self._copied)


def _places(index: int, layer: LayerSpec) -> Iterator[_Place]:
    keys = dict(zip(ARRAYS, layer.names, strict=False))
    for array, tensor in layer.tensors.items():
        within, _, key = keys[array].rpartition(".")
        module = layer.module.get_submodule(within)
        holders = (vars(module), module._parameters, module._buffers)
        holder = next(holder for holder in holders if key in holder)
        path = layer.path.partition(" ")[0]  # without the number of a recurrent layer, which the key has
        yield _Place(f"{path}.{keys[array]}", holder, key, index, array, tensor.data_ptr(), tensor.nbytes)


def _is_there(place: _Place) -> bool:
    tensor = place.holder.get(place.key)
    return isinstance(tensor, torch.Tensor) and (tensor.data_ptr(), tensor.nbytes) == (place.address, place.nbytes)


def _pack(tensors: list[torch.Tensor], address: int, nbytes: int) -> int:
    """Copies tensors to an address, one behind the other; returns how many bytes are left. The builtin does not let
    another thread move a tensor between reading where it is and copying it."""
    calls = fast_calls()
    if calls is not None:
        return int(calls["pack"](tensors, address, nbytes))
    for tensor in tensors:
        interop.copy_to_pointer(tensor, address, tensor.nbytes)
        address += tensor.nbytes
        nbytes -= tensor.nbytes
    return nbytes
