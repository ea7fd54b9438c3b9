"""Policies in files: the layers of a network and how it chooses. Checkpoints of training hold one too. They are read
with numpy alone.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_integer, is_number, shown, to_single
from doorstep._files import read_regular
from doorstep._native._generated import MAX_LAYER_WIDTH, LayerKind
from doorstep._native.policies import LayerHandle, LayerWeights, PolicyHandle, address_of
from doorstep._observations import Parts, PartsRule
from doorstep._safetensors import METADATA, read_arrays, split, write_arrays
from doorstep.errors import ArgumentError, StateError
from doorstep.policy.policy import Policy
from doorstep.policy.sampling import SamplingParams
from doorstep.policy.shapes import array_shapes, checked_shape, is_optional

FORMAT = 1
METADATA_KEY = "doorstep_policy"
CHECKPOINT = "checkpoint.safetensors"  # in the folder of a run
_PARTS = PartsRule()


@final
@dataclass(frozen=True)
class StoredLayer:
    """A layer: its kind, its numbers, and its float32 arrays by the names that `LayerWeights` has for them. shape: as
    `LayerHandle.create()` takes it."""

    kind: LayerKind
    num_inputs: int = 0
    num_outputs: int = 0
    parameter: float = 0.0
    arrays: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    shape: Mapping[str, int] = field(default_factory=dict)

    def create(self) -> LayerHandle:
        """The native layer, which keeps the arrays."""
        addresses: dict[str, Any] = {name: address_of(array) for name, array in self.arrays.items()}
        weights = LayerWeights(**addresses, owner=self.arrays)
        return LayerHandle.create(self.kind, self.num_inputs, self.num_outputs, self.parameter, self.shape, weights)


@final
class StoredPolicy(NamedTuple):
    """What a file holds of a policy. observations: that it was trained with; None: not known. about: for people, in
    values that JSON can hold."""

    layers: Sequence[StoredLayer]
    sampling: SamplingParams
    observations: Parts | None
    about: Mapping[str, Any]

    def policy(self, sampling: SamplingParams | None = None) -> Policy:
        """The policy. sampling: in place of its own."""
        handle = PolicyHandle.create([layer.create() for layer in self.layers], 0)
        return Policy(handle, self.sampling if sampling is None else sampling, observations=self.observations)


def write_policy(path: str | os.PathLike[str], policy: StoredPolicy) -> None:
    """Writes a policy, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    write_arrays(path, arrays_of(policy.layers), {METADATA_KEY: description_of(policy)})


def arrays_of(layers: Sequence[StoredLayer]) -> dict[str, NDArray[np.float32]]:
    """The arrays of a file by their names, which begin with the number of their layer."""
    return {
        f"{index}.{name}": np.asarray(array, np.float32)
        for index, layer in enumerate(layers)
        for name, array in layer.arrays.items()
    }


def is_array_of_policy(name: str) -> bool:
    """Whether `arrays_of()` gives an array such a name, for files that have others too."""
    return name[:1].isdigit()


def description_of(policy: StoredPolicy) -> str:
    """The entry METADATA_KEY of a file's metadata."""
    described = {
        "format": FORMAT,
        "layers": [_numbers_of(layer) for layer in policy.layers],
        "observations": None if policy.observations is None else _PARTS.to_plain(policy.observations),
        "sampling": policy.sampling.to_dict(),
        "about": policy.about,
    }
    return json.dumps(described)


def _numbers_of(layer: StoredLayer) -> list[Any]:
    """With a shape where the layer has one."""
    sizes = [layer.kind.name.lower(), layer.num_inputs, layer.num_outputs, layer.parameter]
    return [*sizes, dict(layer.shape)] if layer.shape else sizes


def read_policy(path: str | os.PathLike[str], sampling: SamplingParams | None = None) -> Policy:
    """Reads a policy. sampling: how actions are chosen; None: as the file says.

    Raises:
        StateError: the file holds no policy, is damaged, or of another version of the format.
        OSError: the file cannot be read.
    """
    stored = read_stored(path)
    try:
        return stored.policy(sampling)
    except ArgumentError as error:
        raise _unreadable(path, error) from error


def read_stored(path: str | os.PathLike[str]) -> StoredPolicy:
    """The contents of a policy's file.

    Raises:
        StateError, OSError: as `read_policy()`.
    """
    data = read_regular(path)
    try:
        return _parse(data)
    except (ArgumentError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str | os.PathLike[str], error: Exception) -> StateError:
    return StateError(f"{os.fsdecode(path)} is no policy of doorstep, or damaged: {error}")


def _parse(data: bytes) -> StoredPolicy:
    header, stored = split(data)
    if METADATA_KEY not in header[METADATA]:
        _refuse("it holds no policy, as checkpoints of networks that see pixels")
    policy = json.loads(header[METADATA][METADATA_KEY])
    if policy["format"] != FORMAT:
        _refuse(f"it has format {policy['format']}, and this version reads {FORMAT}")
    arrays = read_arrays(header, stored)
    layers = [_layer(f"{index}.", arrays, *numbers) for index, numbers in enumerate(policy["layers"])]
    given = policy.get("observations")
    observations = None if given is None else _PARTS.check("observations", given)
    return StoredPolicy(layers, SamplingParams.from_dict(policy["sampling"]), observations, policy["about"])


def _layer(
    prefix: str, stored: Mapping[str, NDArray[Any]], kind: str, num_inputs: int, num_outputs: int, *further: Any
) -> StoredLayer:
    """The layer with its arrays. further: its parameter, and its shape if it has one."""
    parameter, shape = further if len(further) == 2 else (*further, {})
    inputs, outputs = (check_integer(f"{prefix}size", size, 0, MAX_LAYER_WIDTH) for size in (num_inputs, num_outputs))
    if not is_number(parameter) or not math.isfinite(to_single(parameter)):
        _refuse(f"{prefix}parameter is {shown(parameter)}; it must be a number")
    layer = StoredLayer(LayerKind[kind.upper()], inputs, outputs, float(parameter), shape=checked_shape(shape))
    arrays = {}
    for name, shape in array_shapes(layer.kind, layer.num_inputs, layer.num_outputs, layer.shape).items():
        array = stored.get(prefix + name)
        if array is None and is_optional(layer.kind, name):
            continue
        if array is None or array.dtype != np.float32 or array.shape != shape:
            _refuse(f"{prefix}{name} must be float32 {list(shape)}")
        arrays[name] = array
    return replace(layer, arrays=arrays)


def _refuse(problem: str) -> NoReturn:
    raise ValueError(problem)
