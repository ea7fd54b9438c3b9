"""Files of policies: headers and arrays with a right checksum, most of them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from tests.fuzz.mutations import change_bytes, change_document

import doorstep
from doorstep._native._generated import LayerKind
from doorstep._observations import or_default
from doorstep._safetensors import CHECKSUM, METADATA, seal, split
from doorstep.policy import SamplingParams
from doorstep.policy.files import METADATA_KEY, StoredLayer, StoredPolicy, write_policy

MOST_INPUTS = 4096  # of a policy that is played


class Policies:
    metadata_key = METADATA_KEY

    def __init__(self) -> None:
        self._folder = TemporaryDirectory()
        self.path = Path(self._folder.name) / "policy.safetensors"
        self._sim = doorstep.Simulator(1, num_threads=1)

    def inputs(self) -> Sequence[bytes]:
        return [self._written(layers) for layers in (linear_layers(), _recurrent_layers(), _convolutions())]

    def _written(self, layers: Sequence[StoredLayer]) -> bytes:
        write_policy(self.path, StoredPolicy(layers, SamplingParams(), or_default(self._sim.config.observations), {}))
        return self.path.read_bytes()

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        try:
            header, arrays = split(data)
        except ValueError:
            return change_bytes(data, chance, others)
        if chance.random() < 0.1 or not isinstance(header[METADATA].get(self.metadata_key), str):
            return change_bytes(data, chance, others)
        header[METADATA].pop(CHECKSUM, None)
        changed = bytes(arrays)
        how = chance.random()
        if how < 0.4:
            header[METADATA][self.metadata_key] = _changed_text(header[METADATA][self.metadata_key], chance)
        elif how < 0.7:
            described = {name: entry for name, entry in header.items() if name != METADATA}
            found = change_document(described, chance)
            header = {METADATA: header[METADATA], **(found if isinstance(found, dict) else {"x": found})}
        else:
            changed = _with_a_changed_array(header, changed, chance)
        try:
            return bytes(seal(header, changed) + changed)
        except RecursionError:
            return data

    def run(self, data: bytes) -> str:
        self.path.write_bytes(data)
        policy = doorstep.load_policy(self.path)
        if policy.num_inputs == self._sim.observations.shape[-1]:
            self._sim.actions = policy(self._sim.observations)
            self._sim.step()
            return "played"
        if policy.num_inputs <= MOST_INPUTS:
            policy(np.zeros((2, policy.num_inputs), np.float32))
        return "called"

    def close(self) -> None:
        self._sim.close()
        self._folder.cleanup()


def _changed_text(text: str, chance: random.Random) -> str:
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text[: chance.randrange(len(text) + 1)]
    return json.dumps(change_document(document, chance))


def _with_a_changed_array(header: dict[str, Any], arrays: bytes, chance: random.Random) -> bytes:
    """Each array is as likely as the others, however large they are."""
    name = chance.choice([name for name in header if name != METADATA] or [METADATA])
    try:
        begin, end = header[name]["data_offsets"]
        found = arrays[begin:end]
    except (LookupError, TypeError, ValueError):  # changed earlier
        return change_bytes(arrays, chance)
    changed = change_bytes(found, chance)[: len(found)].ljust(len(found), b"\0")
    return arrays[:begin] + changed + arrays[begin + len(found) :]


def _array(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def _linear(inputs: int, outputs: int) -> StoredLayer:
    arrays = {"weights": _array(outputs, inputs), "biases": _array(outputs)}
    return StoredLayer(LayerKind.LINEAR, inputs, outputs, arrays=arrays)


def linear_layers() -> list[StoredLayer]:
    norm = StoredLayer(LayerKind.LAYER_NORM, 4, parameter=1e-5, arrays={"weights": _array(4), "biases": _array(4)})
    return [_linear(94, 4), norm, StoredLayer(LayerKind.RELU), _linear(4, 19)]


def _recurrent_layers() -> list[StoredLayer]:
    arrays = {"weights": _array(6, 4), "biases": _array(6), "hidden_weights": _array(6, 2), "hidden_biases": _array(6)}
    return [_linear(94, 4), StoredLayer(LayerKind.GRU, 4, 2, arrays=arrays), _linear(2, 19)]


def _convolutions() -> list[StoredLayer]:
    shape = {"channels": 1, "height": 2, "width": 4, "kernel_height": 2, "kernel_width": 3, "stride_height": 1,
             "stride_width": 1}  # fmt: skip
    arrays = {"weights": _array(2, 6), "biases": _array(2)}
    return [_linear(94, 8), StoredLayer(LayerKind.CONV, 8, 4, arrays=arrays, shape=shape), _linear(4, 19)]
