"""Policies in files: the layers of a network and how it chooses, without anything else that its training needs. They
are read with numpy alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from doorstep._files import read_regular
from doorstep._native._generated import LayerKind
from doorstep._native.policies import LayerHandle, LayerWeights, PolicyHandle, address_of
from doorstep._safetensors import METADATA, read_arrays, split, write_arrays
from doorstep.errors import ArgumentError, StateError
from doorstep.policy.policy import Policy
from doorstep.policy.sampling import SamplingParams
from doorstep.policy.shapes import array_shapes, is_optional

FORMAT = 1
METADATA_KEY = "doorstep_policy"


@final
@dataclass(frozen=True)
class StoredLayer:
    """A layer: its kind, its numbers, and its float32 arrays by the names that `LayerWeights` has for them."""

    kind: LayerKind
    num_inputs: int = 0
    num_outputs: int = 0
    parameter: float = 0.0
    arrays: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)

    def create(self) -> LayerHandle:
        """The native layer, which keeps the arrays."""
        addresses: dict[str, Any] = {name: address_of(array) for name, array in self.arrays.items()}
        weights = LayerWeights(**addresses, owner=self.arrays)
        return LayerHandle.create(self.kind, self.num_inputs, self.num_outputs, self.parameter, weights)


def write_policy(
    path: str | os.PathLike[str], layers: Sequence[StoredLayer], sampling: SamplingParams, about: Mapping[str, Any]
) -> None:
    """Writes a policy, whole or not at all. about: for people, in values that JSON can hold.

    Raises:
        OSError: the file cannot be written.
    """
    arrays = {
        f"{index}.{name}": np.asarray(array, np.float32)
        for index, layer in enumerate(layers)
        for name, array in layer.arrays.items()
    }
    policy = {
        "format": FORMAT,
        "layers": [[layer.kind.name.lower(), layer.num_inputs, layer.num_outputs, layer.parameter] for layer in layers],
        "sampling": sampling.to_dict(),
        "about": about,
    }
    write_arrays(path, arrays, {METADATA_KEY: json.dumps(policy)})


def is_policy(path: str | os.PathLike[str]) -> bool:
    """Whether `read_policy()` reads the file, if it is whole; it may be a checkpoint, or something else.

    Raises:
        OSError: the file cannot be read.
    """
    data = read_regular(path)
    try:
        return METADATA_KEY in split(data)[0][METADATA]
    except (ValueError, LookupError, TypeError, RecursionError):
        return False


def read_policy(path: str | os.PathLike[str], *, sampling: SamplingParams | None = None) -> Policy:
    """Reads a policy. sampling: how actions are chosen; None: as the file says.

    Raises:
        StateError: the file is not a policy, damaged, or of another version of the format.
        OSError: the file cannot be read.
    """
    data = read_regular(path)
    try:
        layers, stored_sampling = _parse(data)
        handle = PolicyHandle.create([layer.create() for layer in layers], 0)
    except (ArgumentError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise StateError(f"{os.fsdecode(path)} is no policy of doorstep, or damaged: {error}") from error
    return Policy(handle, stored_sampling if sampling is None else sampling)


def _parse(data: bytes) -> tuple[list[StoredLayer], SamplingParams]:
    header, stored = split(data)
    policy = json.loads(header[METADATA][METADATA_KEY])
    if policy["format"] != FORMAT:
        _refuse(f"it has format {policy['format']}, and this version reads {FORMAT}")
    arrays = read_arrays(header, stored)
    layers = [
        _layer(StoredLayer(LayerKind[kind.upper()], *numbers), f"{index}.", arrays)
        for index, (kind, *numbers) in enumerate(policy["layers"])
    ]
    return layers, SamplingParams.from_dict(policy["sampling"])


def _layer(layer: StoredLayer, prefix: str, stored: Mapping[str, NDArray[Any]]) -> StoredLayer:
    """The layer with its arrays."""
    arrays = {}
    for name, shape in array_shapes(layer.kind, layer.num_inputs, layer.num_outputs).items():
        array = stored.get(prefix + name)
        if array is None and is_optional(layer.kind, name):
            continue
        if array is None or array.dtype != np.float32 or array.shape != shape:
            _refuse(f"{prefix}{name} must be float32 {list(shape)}")
        arrays[name] = array
    return replace(layer, arrays=arrays)


def _refuse(problem: str) -> NoReturn:
    raise ValueError(problem)
