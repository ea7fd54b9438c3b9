"""Files of policies hold what they were written from, and damaged ones are refused."""

import numpy as np
import pytest
from tests.pkg.sealed_files import assert_flipped_bits_are_refused, change_header, change_metadata
from tests.refuses import refuses

import doorstep
from doorstep._native._generated import LayerKind
from doorstep.policy import SamplingParams, load_policy
from doorstep.policy.files import METADATA_KEY, StoredLayer, StoredPolicy, write_policy

INPUTS, OUTPUTS = 5, sum(doorstep.ACTIONS)
ROWS = np.random.default_rng(1).normal(size=(7, INPUTS)).astype(np.float32)


def linear(seed):
    generator = np.random.default_rng(seed)
    shapes = {"weights": (OUTPUTS, INPUTS), "biases": OUTPUTS}
    arrays = {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return StoredLayer(LayerKind.LINEAR, INPUTS, OUTPUTS, 0.0, arrays)


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "policy.safetensors"
    layers = [linear(0), StoredLayer(LayerKind.TANH)]
    write_policy(path, StoredPolicy(layers, SamplingParams(temperature=0.25), ("lidar",), {"by": "a test"}))
    return path


def test_a_policy_survives_its_file(written, tmp_path):
    layer, policy = linear(0), load_policy(written)
    expected = np.tanh(ROWS @ layer.arrays["weights"].T + layer.arrays["biases"])
    np.testing.assert_allclose(policy.forward(ROWS), expected, rtol=1e-5, atol=1e-6)
    assert policy.sampling == SamplingParams(temperature=0.25)
    greedy = load_policy(written, sampling=SamplingParams(greedy=True))
    assert greedy.sampling.greedy
    assert policy.observations == greedy.observations == ("lidar",)


def test_a_damaged_file_is_refused(written):
    whole = written.read_bytes()
    assert_flipped_bits_are_refused(written, load_policy, r"policy\.safetensors is no policy of doorstep, or damaged: ")
    for size in (0, 7, 100, -4):
        written.write_bytes(whole[:size])
        refuses("no policy of doorstep, or damaged", load_policy, written, error=doorstep.StateError)
    written.write_bytes(whole)
    change_header(written, lambda header: None, sealed=False)
    refuses(r"it has no checksum, .* write it again with this one", load_policy, written, error=doorstep.StateError)


LINEAR = ["linear", INPUTS, OUTPUTS, 0.0]
HEADERS = [
    ("format", 9, "it has format 9, and this version reads 1"),
    ("layers", [["linear", INPUTS + 1, OUTPUTS, 0.0]], r"0.weights must be float32 \[19, 6\]"),
    ("layers", [["convolution", INPUTS, OUTPUTS, 0.0]], "CONVOLUTION"),
    ("layers", [[*LINEAR, {"padding": 1}]], "a layer has 'padding': 1 in its shape"),
    ("layers", [[*LINEAR, {"num_tokens": -1}]], "a layer has 'num_tokens': -1 in its shape"),
    ("layers", [["conv", INPUTS, OUTPUTS, 0.0, {"channels": 1}]], "a window of 0, moved by 0, does not fit 0"),
    ("layers", [["tanh", "x", 0, 0.0]], "0.size is 'x'; it must be an integer, 0 to 65536"),
    ("layers", [["tanh", 0, 2**64, 0.0]], "0.size is 18446744073709551616; it must be"),
    ("layers", [["tanh", 0, 0, 10**400]], "0.parameter is 1.*; it must be a number"),
    ("layers", [["tanh", 0, 0, float("nan")]], "0.parameter is nan; it must be a number"),
    ("sampling", {"temperature": -1}, "temperature"),
]


def test_a_header_that_does_not_fit_is_refused(written):
    whole = written.read_bytes()
    for entry, value, says in HEADERS:
        written.write_bytes(whole)
        change_metadata(written, METADATA_KEY, **{entry: value})
        refuses(says, load_policy, written, error=doorstep.StateError)
    first, end = OUTPUTS * INPUTS * 4, OUTPUTS * (INPUTS + 1) * 4
    shapes = [[2**62, "xy"], [0, 2**70], [-1, -OUTPUTS], [float(OUTPUTS)], "x", [[OUTPUTS]]]
    for change in [{"data_offsets": [first + 4, end + 4]}, *({"shape": shape} for shape in shapes)]:
        written.write_bytes(whole)
        change_header(written, lambda header, change=change: header["0.biases"].update(change))
        refuses(r"0\.biases is not in the file", load_policy, written, error=doorstep.StateError)
