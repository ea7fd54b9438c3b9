"""Files of policies hold what they were written from, and damaged ones are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep._native._generated import LayerKind
from doorstep.policy import SamplingParams, read_policy
from doorstep.policy.files import METADATA_KEY, StoredLayer, write_policy

INPUTS, OUTPUTS = 5, sum(doorstep.ACTIONS)


def linear(seed: int) -> StoredLayer:
    generator = np.random.default_rng(seed)
    arrays = {
        "weights": generator.normal(size=(OUTPUTS, INPUTS)).astype(np.float32),
        "biases": generator.normal(size=OUTPUTS).astype(np.float32),
    }
    return StoredLayer(LayerKind.LINEAR, INPUTS, OUTPUTS, 0.0, arrays)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "policy.safetensors"
    write_policy(path, [linear(0), StoredLayer(LayerKind.TANH)], SamplingParams(temperature=0.25), {"by": "a test"})
    return path


def test_a_policy_survives_its_file(written: Path) -> None:
    layer = linear(0)
    rows = np.random.default_rng(1).normal(size=(7, INPUTS)).astype(np.float32)
    policy = read_policy(written)
    expected = np.tanh(rows @ layer.arrays["weights"].T + layer.arrays["biases"])
    np.testing.assert_allclose(policy.forward(rows), expected, rtol=1e-5, atol=1e-6)
    assert policy.sampling == SamplingParams(temperature=0.25)
    assert read_policy(written, sampling=SamplingParams(greedy=True)).sampling.greedy


def test_a_file_is_safetensors(written: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    arrays = safetensors.load_file(written)
    layer = linear(0)
    assert set(arrays) == {"0.weights", "0.biases"}
    for name, array in layer.arrays.items():
        np.testing.assert_array_equal(arrays[f"0.{name}"], array)


@pytest.mark.parametrize("place", [0, 20, 300, -3])
def test_a_damaged_file_is_refused(written: Path, place: int) -> None:
    data = bytearray(written.read_bytes())
    data[place] ^= 0x11
    written.write_bytes(data)
    with pytest.raises(doorstep.StateError, match=r"policy\.safetensors is no policy of doorstep, or damaged: "):
        read_policy(written)


@pytest.mark.parametrize("size", [0, 7, 100, -4])
def test_a_truncated_file_is_refused(written: Path, size: int) -> None:
    written.write_bytes(written.read_bytes()[:size])
    with pytest.raises(doorstep.StateError, match="no policy of doorstep, or damaged"):
        read_policy(written)


@pytest.mark.parametrize(
    ("entry", "value", "says"),
    [
        ("format", 9, "it has format 9, and this version reads 1"),
        ("layers", [["linear", INPUTS + 1, OUTPUTS, 0.0]], r"0.weights must be F32 \[19, 6\]"),
        ("layers", [["convolution", INPUTS, OUTPUTS, 0.0]], "CONVOLUTION"),
        ("layers", [["linear", INPUTS, OUTPUTS, 0.0], ["linear", OUTPUTS, OUTPUTS, 0.0]], "1.weights must be"),
        ("sampling", {"temperature": -1}, "temperature"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(written: Path, entry: str, value: Any, says: str) -> None:
    data = written.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    policy = json.loads(header["__metadata__"][METADATA_KEY])
    header["__metadata__"][METADATA_KEY] = json.dumps({**policy, entry: value})
    text = json.dumps(header).encode()
    written.write_bytes(len(text).to_bytes(8, "little") + text + data[begin:])
    with pytest.raises(doorstep.StateError, match=says):
        read_policy(written)


def test_an_array_outside_of_the_file_is_refused(written: Path) -> None:
    data = written.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    first, end = header["0.biases"]["data_offsets"]
    header["0.biases"]["data_offsets"] = [first + 4, end + 4]
    text = json.dumps(header).encode()
    written.write_bytes(len(text).to_bytes(8, "little") + text + data[begin:])
    with pytest.raises(doorstep.StateError, match=r"0\.biases is not in the file"):
        read_policy(written)
