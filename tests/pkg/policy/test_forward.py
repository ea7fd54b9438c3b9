"""Logits are PyTorch's, for every kind of layer, and have the same bits whatever else is in the batch."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.policy.networks import NUM_INPUTS, NUM_LOGITS, logits_of, mlp, observe  # noqa: E402
from torch import nn  # noqa: E402

from doorstep.policy import Heads  # noqa: E402

TOLERANCE = 1e-5


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(1)


@pytest.mark.parametrize("widths", [(), (1,), (5, 3), (64,), (130, 67), (256, 256, 256), (1000,)])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (16, 2), (100, 3)])
def test_logits_are_those_of_pytorch(widths: tuple[int, ...], shape: tuple[int, ...]) -> None:
    net, observations = mlp(*widths), observe(*shape)
    found = doorstep.load_policy(net).forward(observations)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, logits_of(net, observations), atol=TOLERANCE)


@pytest.mark.parametrize(
    "activation",
    [
        nn.ReLU(),
        nn.ReLU(inplace=True),
        nn.ReLU6(),
        nn.LeakyReLU(0.2),
        nn.ELU(),
        nn.ELU(1.3),
        nn.CELU(),
        nn.CELU(0.4),
        nn.SELU(),
        nn.SiLU(),
        nn.Mish(),
        nn.Sigmoid(),
        nn.Hardsigmoid(),
        nn.Hardswish(),
        nn.Tanh(),
        nn.Softsign(),
        nn.Softplus(),
        nn.Softplus(beta=3, threshold=30),
        nn.GELU(),
        nn.GELU("tanh"),
        nn.Identity(),
        nn.Dropout(0.5).eval(),
        nn.Flatten(-1),
    ],
    ids=str,
)
@pytest.mark.parametrize("scale", [1, 30])
def test_activations_are_those_of_pytorch(activation: nn.Module, scale: int) -> None:
    last = nn.Linear(50, NUM_LOGITS)
    net = nn.Sequential(nn.Linear(NUM_INPUTS, 50), activation, last)
    with torch.no_grad():
        last.weight /= scale  # the values before it are large, the logits are not
    observations = observe(40, 2) * scale
    found = doorstep.load_policy(net).forward(observations)
    np.testing.assert_allclose(found, logits_of(net, observations), atol=TOLERANCE)


@pytest.mark.parametrize("options", [{}, {"eps": 0.1}, {"bias": False}, {"elementwise_affine": False}], ids=str)
def test_layer_norm_is_that_of_pytorch(options: dict[str, Any]) -> None:
    norm = nn.LayerNorm(33, **options)
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    net = nn.Sequential(nn.Linear(NUM_INPUTS, 33), norm, nn.Linear(33, NUM_LOGITS))
    observations = observe(20, 2)
    found = doorstep.load_policy(net).forward(observations)
    np.testing.assert_allclose(found, logits_of(net, observations), atol=TOLERANCE)


@pytest.mark.parametrize("options", [{}, {"eps": 0.1}, {"elementwise_affine": False}], ids=str)
def test_rms_norm_is_that_of_pytorch(options: dict[str, Any]) -> None:
    norm = nn.RMSNorm(33, **options)
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    net = nn.Sequential(nn.Linear(NUM_INPUTS, 33), norm, nn.Linear(33, NUM_LOGITS))
    observations = observe(20, 2)
    found = doorstep.load_policy(net).forward(observations)
    np.testing.assert_allclose(found, logits_of(net, observations), atol=TOLERANCE)


def test_dropout_of_a_network_in_training_is_that_of_evaluation() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(NUM_INPUTS, 33), nn.Dropout(0.9), nn.Linear(33, NUM_LOGITS)).train()
    policy, observations = doorstep.load_policy(net), observe(20)
    assert net.training
    assert net[2].training
    np.testing.assert_allclose(policy.forward(observations), logits_of(net.eval(), observations), atol=TOLERANCE)


def test_modules_may_be_nested_and_without_biases() -> None:
    body = nn.Sequential(nn.LayerNorm(NUM_INPUTS), nn.Sequential(nn.Linear(NUM_INPUTS, 20, bias=False), nn.SiLU()))
    net = nn.Sequential(body, nn.Identity(), nn.Sequential(nn.Sequential(nn.Linear(20, NUM_LOGITS), nn.Tanh())))
    observations = observe(9, 2)
    found = doorstep.load_policy(net).forward(observations)
    np.testing.assert_allclose(found, logits_of(net, observations), atol=TOLERANCE)


def test_a_module_may_occur_again() -> None:
    shared, norm, twice = nn.Linear(20, 20), nn.LayerNorm(20), nn.Sequential(nn.Linear(20, 20), nn.Tanh())
    first, last = nn.Linear(NUM_INPUTS, 20), nn.Linear(20, NUM_LOGITS)
    net = nn.Sequential(first, norm, shared, nn.Tanh(), shared, norm, twice, twice, last)
    policy, observations = doorstep.load_policy(net), observe(9, 2)
    assert len(policy.layers) == 11
    np.testing.assert_allclose(policy.forward(observations), logits_of(net, observations), atol=TOLERANCE)


def test_heads_are_side_by_side_and_values_are_ignored() -> None:
    value = nn.Sequential(nn.Linear(20, 1), nn.Dropout())  # a policy could not evaluate it
    heads = Heads((nn.Linear(20, size) for size in doorstep.ACTIONS), value)
    net = nn.Sequential(nn.Linear(NUM_INPUTS, 20), nn.Tanh(), heads)
    observations = observe(9, 2)
    policy = doorstep.load_policy(net)
    np.testing.assert_allclose(policy.forward(observations), logits_of(net, observations), atol=TOLERANCE)
    assert [layer.num_outputs for layer in policy.layers] == [20, None, 4, 8, 5, 2]


def test_weights_of_16_bits_are_widened() -> None:
    net = mlp(70, 30)
    narrow = copy.deepcopy(net).bfloat16()
    widened = copy.deepcopy(narrow).float()
    observations = observe(40, 2)
    found = doorstep.load_policy(narrow).forward(observations)
    assert (found == doorstep.load_policy(widened).forward(observations)).all()
    np.testing.assert_allclose(found, logits_of(widened, observations), atol=TOLERANCE)


# ---- Networks with memory ----


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("options", [{}, {"num_layers": 3}, {"bias": False}, {"batch_first": True}], ids=str)
def test_memory_is_that_of_pytorch_over_steps(kind: Any, options: dict[str, Any]) -> None:
    body, memory, last = nn.Linear(NUM_INPUTS, 23), kind(23, 17, **options), nn.Linear(17, NUM_LOGITS)
    policy = doorstep.load_policy([body, memory, last])
    state = policy.initial_state(19, 2)
    assert state.shape[-1] == policy.state_size == 17 * options.get("num_layers", 1) * (2 if kind is nn.LSTM else 1)
    own = None
    for step in range(20):
        observations = observe(19, 2, seed=step)
        with torch.no_grad():
            values = body(observations).reshape(38, 23)
            values = values[:, None] if options.get("batch_first") else values[None]
            values, own = memory(values, own)
            expected = last(values).reshape(19, 2, NUM_LOGITS).numpy()
        np.testing.assert_allclose(policy.forward(observations, state), expected, atol=TOLERANCE)


@pytest.mark.parametrize(("cell", "whole"), [(nn.LSTMCell, nn.LSTM), (nn.GRUCell, nn.GRU)])
def test_cells_are_layers(cell: Any, whole: Any) -> None:
    one, other = cell(NUM_INPUTS, 8), whole(NUM_INPUTS, 8)
    other.load_state_dict({f"{name}_l0": value for name, value in one.state_dict().items()})
    last, observations = nn.Linear(8, NUM_LOGITS), observe(3, 2)
    states = np.random.default_rng(0).normal(size=(2, 3, 2, 8 * (1 + (whole is nn.LSTM)))).astype(np.float32)
    states[1] = states[0]
    found = doorstep.load_policy([one, last]).forward(observations, states[0])
    assert (found == doorstep.load_policy([other, last]).forward(observations, states[1])).all()
    assert (states[0] == states[1]).all()


def test_without_a_state_every_call_begins_anew() -> None:
    policy = doorstep.load_policy([nn.GRU(NUM_INPUTS, 8), nn.Linear(8, NUM_LOGITS)])
    observations = observe(3, 2)
    first = policy.forward(observations)
    assert (policy.forward(observations) == first).all()
    assert (policy.forward(observations, policy.initial_state(3, 2)) == first).all()
    state = torch.zeros(3, 2, 8)
    assert (policy.forward(observations, state) == first).all()
    assert state.abs().min() > 0


# ---- Bits ----


def test_a_row_has_the_same_bits_in_every_batch() -> None:
    policy = doorstep.load_policy([mlp(64)[0], nn.Tanh(), nn.LSTM(64, 31), nn.LayerNorm(31), nn.Linear(31, 19)])
    observations = observe(300, 1).numpy()
    whole = policy.forward(observations)
    for size in (1, 2, 5, 16, 17, 33, 64, 100):
        for first in range(0, 300, 60):
            part = observations[first : first + size]
            assert (policy.forward(part) == whole[first : first + size]).all()


def test_threads_evaluate_at_the_same_time() -> None:
    policy, observations = doorstep.load_policy(mlp(64, 64)), observe(200, 2).numpy()
    expected = policy.forward(observations)
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(policy.forward, [observations] * 40):
            assert (found == expected).all()


# ---- Arrays ----


def test_observations_may_be_of_any_library() -> None:
    net = mlp(16)
    policy = doorstep.load_policy(net)
    sim = doorstep.Simulator(8)
    expected = policy.forward(sim.observations)
    assert (policy.forward(sim.observations.to_torch()) == expected).all()
    assert (policy.forward(sim.observations.to_numpy()) == expected).all()
    np.testing.assert_allclose(expected, logits_of(net, sim.observations.to_torch()), atol=TOLERANCE)
    sim.close()


def test_there_may_be_no_rows() -> None:
    policy = doorstep.load_policy(mlp(4))
    assert policy.forward(np.zeros((0, 2, NUM_INPUTS), np.float32)).shape == (0, 2, NUM_LOGITS)
    assert policy.act(np.zeros((0, 2, NUM_INPUTS), np.float32)).shape == (0, 2, 4)
    assert policy.forward(np.zeros(NUM_INPUTS, np.float32)).shape == (NUM_LOGITS,)


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        (np.zeros((2, 2, 93), np.float32), r"observations is \[2, 2, 93\]; it must be of shape \[..., 94\]"),
        (np.zeros((2, 2, 94)), "observations is float64 on cpu; it must be float32, contiguous, in the host's memory"),
        (np.zeros((2, 2, 188), np.float32)[..., ::2], "observations is float32 on cpu, not contiguous"),
        (torch.zeros(2, 2, 94, dtype=torch.bfloat16), "observations is bfloat16 on cpu"),
        (np.zeros((), np.float32), r"observations is \[\]"),
        ("text", "observations is"),
    ],
)
def test_other_observations_are_refused(observations: Any, message: str) -> None:
    policy = doorstep.load_policy(mlp(4))
    with pytest.raises(doorstep.ArgumentError, match=f"^{message}") as raised:
        policy.forward(observations)
    assert raised.value.argument == "observations"


def test_other_states_are_refused() -> None:
    policy = doorstep.load_policy([nn.GRU(NUM_INPUTS, 8), nn.Linear(8, NUM_LOGITS)])
    observations = observe(3, 2)
    for state, message in (
        (np.zeros((3, 2, 7), np.float32), r"state is \[3, 2, 7\]; it must be of shape \[3, 2, 8\]"),
        (np.zeros((3, 2, 8)), "state is float64"),
        (np.broadcast_to(np.zeros(8, np.float32), (3, 2, 8)), "state is"),
    ):
        with pytest.raises(doorstep.ArgumentError, match=message):
            policy.forward(observations, state)
    with pytest.raises(doorstep.ArgumentError, match=r"state is (?s:.*) this policy has no memory"):
        doorstep.load_policy(mlp(4)).forward(observations, np.zeros((3, 2, 8), np.float32))


def test_logits_are_the_same_with_a_value_head_which_is_linear_with_one_output() -> None:
    actor = nn.Linear(NUM_INPUTS, sum(doorstep.ACTIONS))
    values = {nn.Linear(NUM_INPUTS, 1): True, nn.Linear(NUM_INPUTS, 2): False, nn.Identity(): False, None: False}
    for value, has_value in values.items():
        policy = doorstep.load_policy(Heads([actor], value=value))
        assert policy.has_value == has_value
        logits = policy.forward(observe(5).numpy())
        np.testing.assert_allclose(logits, logits_of(actor, observe(5)), atol=1e-5)
