"""Files of policies hold what they were written from, and damaged ones are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pkg.sealed_files import assert_flipped_bits_are_refused, change_header, change_metadata

import doorstep
from doorstep._native._generated import LayerKind
from doorstep.policy import SamplingParams, load_policy
from doorstep.policy.files import METADATA_KEY, StoredLayer, StoredPolicy, write_policy

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
    layers = [linear(0), StoredLayer(LayerKind.TANH)]
    write_policy(path, StoredPolicy(layers, SamplingParams(temperature=0.25), ("lidar",), {"by": "a test"}))
    return path


def test_a_policy_survives_its_file(written: Path) -> None:
    layer = linear(0)
    rows = np.random.default_rng(1).normal(size=(7, INPUTS)).astype(np.float32)
    policy = load_policy(written)
    expected = np.tanh(rows @ layer.arrays["weights"].T + layer.arrays["biases"])
    np.testing.assert_allclose(policy.forward(rows), expected, rtol=1e-5, atol=1e-6)
    assert policy.sampling == SamplingParams(temperature=0.25)
    assert policy.observations == ("lidar",)
    assert load_policy(written, sampling=SamplingParams(greedy=True)).sampling.greedy


def test_a_file_with_a_flipped_bit_is_refused(written: Path) -> None:
    assert_flipped_bits_are_refused(written, load_policy, r"policy\.safetensors is no policy of doorstep, or damaged: ")


def test_a_file_without_checksum_is_refused(written: Path) -> None:
    change_header(written, lambda header: None, sealed=False)
    with pytest.raises(doorstep.StateError, match=r"it has no checksum, .* write it again with this one"):
        load_policy(written)


@pytest.mark.parametrize("size", [0, 7, 100, -4])
def test_a_truncated_file_is_refused(written: Path, size: int) -> None:
    written.write_bytes(written.read_bytes()[:size])
    with pytest.raises(doorstep.StateError, match="no policy of doorstep, or damaged"):
        load_policy(written)


@pytest.mark.parametrize(
    ("entry", "value", "says"),
    [
        ("format", 9, "it has format 9, and this version reads 1"),
        ("layers", [["linear", INPUTS + 1, OUTPUTS, 0.0]], r"0.weights must be float32 \[19, 6\]"),
        ("layers", [["convolution", INPUTS, OUTPUTS, 0.0]], "CONVOLUTION"),
        ("layers", [["linear", INPUTS, OUTPUTS, 0.0], ["linear", OUTPUTS, OUTPUTS, 0.0]], "1.weights must be"),
        ("layers", [["linear", INPUTS, OUTPUTS, 0.0, {"padding": 1}]], "a layer has 'padding': 1 in its shape"),
        ("layers", [["linear", INPUTS, OUTPUTS, 0.0, {"num_tokens": -1}]], "a layer has 'num_tokens': -1 in its shape"),
        ("layers", [["conv", INPUTS, OUTPUTS, 0.0, {"channels": 1}]], "a window of 0, moved by 0, does not fit 0"),
        ("layers", [["tanh", "x", 0, 0.0]], "0.size is 'x'; it must be an integer, 0 to 65536"),
        ("layers", [["tanh", 0, 2**64, 0.0]], "0.size is 18446744073709551616; it must be"),
        ("layers", [["tanh", 0, 0, None]], "0.parameter is None; it must be a number"),
        ("layers", [["tanh", 0, 0, 10**400]], "0.parameter is 1.*; it must be a number"),
        ("layers", [["tanh", 0, 0, float("nan")]], "0.parameter is nan; it must be a number"),
        ("sampling", {"temperature": -1}, "temperature"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(written: Path, entry: str, value: Any, says: str) -> None:
    change_metadata(written, METADATA_KEY, **{entry: value})
    with pytest.raises(doorstep.StateError, match=says):
        load_policy(written)


def test_an_array_outside_of_the_file_is_refused(written: Path) -> None:
    def move(header: dict[str, Any]) -> None:
        first, end = header["0.biases"]["data_offsets"]
        header["0.biases"]["data_offsets"] = [first + 4, end + 4]

    change_header(written, move)
    with pytest.raises(doorstep.StateError, match=r"0\.biases is not in the file"):
        load_policy(written)


@pytest.mark.parametrize("shape", [[2**62, "xy"], [0, 2**70], [-1, -OUTPUTS], [float(OUTPUTS)], "x", [[OUTPUTS]]])
def test_a_shape_that_is_none_is_refused(written: Path, shape: Any) -> None:
    change_header(written, lambda header: header["0.biases"].update(shape=shape))
    with pytest.raises(doorstep.StateError, match=r"0\.biases is not in the file"):
        load_policy(written)


def test_weights_and_biases_may_be_absent(tmp_path: Path) -> None:
    layers = [StoredLayer(LayerKind.LAYER_NORM, INPUTS, parameter=1e-5), linear(0)]
    del layers[1].arrays["biases"]  # type: ignore[attr-defined]
    write_policy(tmp_path / "policy.safetensors", StoredPolicy(layers, SamplingParams(), None, {}))
    rows = np.random.default_rng(1).normal(size=(7, INPUTS)).astype(np.float32)
    normal = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5)
    found = load_policy(tmp_path / "policy.safetensors").forward(rows)
    np.testing.assert_allclose(found, normal @ layers[1].arrays["weights"].T, rtol=1e-5, atol=1e-5)
