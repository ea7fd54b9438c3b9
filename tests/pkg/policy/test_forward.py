"""Logits are PyTorch's, for every kind of layer and in every way of acting, and have the same bits whatever else is in
the batch."""

import copy
import pickle
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep

pytest.importorskip("torch")

import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.pkg.policy import networks as made
from tests.pkg.policy.networks import NUM_INPUTS, NUM_LOGITS, assert_chosen, exact, mlp, observe, randomised
from torch import nn

from doorstep.policy import Branch, Heads, SamplingParams
from doorstep.policy.files import StoredPolicy, write_policy
from doorstep.policy.playing import Player
from doorstep.policy.torch_policy import stored_layers

TOLERANCE = 1e-5
ACTIVATIONS = [
    *(nn.ReLU(), nn.ReLU(inplace=True), nn.ReLU6(), nn.LeakyReLU(0.2), nn.ELU(), nn.ELU(1.3), nn.CELU(), nn.CELU(0.4)),
    *(nn.SELU(), nn.SiLU(), nn.Mish(), nn.Sigmoid(), nn.Hardsigmoid(), nn.Hardswish(), nn.Tanh(), nn.Softsign()),
    *(nn.Softplus(), nn.Softplus(beta=3, threshold=30), nn.GELU(), nn.GELU("tanh"), nn.Identity(), nn.Flatten(-1)),
    nn.Dropout(0.5),
]
GREEDY = SamplingParams(greedy=True)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(1)


def assert_logits(modules, observations, atol=TOLERANCE):
    found = doorstep.load_policy(modules).forward(observations)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact(modules, observations), atol=atol, err_msg=str(modules))


# ---- Drawn networks ----

SIZES, BOOLEANS = st.integers(1, 40), st.booleans()


def dense(draw, width):
    outputs = draw(SIZES)
    return [nn.Linear(width, outputs, bias=draw(BOOLEANS)), copy.deepcopy(draw(st.sampled_from(ACTIVATIONS)))], outputs


def norm(draw, width):
    kind = draw(st.sampled_from((nn.LayerNorm, nn.RMSNorm)))
    return [kind(width, eps=draw(st.sampled_from((0.01, 0.1))), elementwise_affine=draw(BOOLEANS))], width


def memory(draw, width):
    kind, outputs = draw(st.sampled_from((nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell))), draw(SIZES)
    whole = {} if "Cell" in kind.__name__ else {"num_layers": draw(st.integers(1, 3)), "batch_first": draw(BOOLEANS)}
    return [kind(width, outputs, bias=draw(BOOLEANS), **whole)], outputs


def image(draw, width):
    channels, height, length = (draw(st.integers(2, 5)) for _ in range(3))
    window = {"stride": (draw(st.integers(1, 2)), draw(st.integers(1, 3))), "padding": (draw(st.integers(0, 1)), 1)}
    convolution = nn.Conv2d(channels, draw(st.integers(1, 9)), (draw(st.integers(1, 2)), 2), **window)
    pool = draw(st.sampled_from((nn.MaxPool2d, nn.AvgPool2d)))((1, 2), (1, draw(st.integers(1, 2))), (0, 1))
    parts = [nn.Unflatten(-1, (channels, height, length)), convolution, pool, nn.Flatten()]
    outputs = nn.Sequential(*parts)(torch.zeros(1, channels * height * length)).shape[1]
    return [nn.Linear(width, channels * height * length), *parts], outputs


def tokens(draw, width):
    count, heads = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    size = heads * draw(st.integers(1, 4))
    options = {"bias": draw(BOOLEANS), "batch_first": True}
    attention = nn.MultiheadAttention(size, heads, **options)
    if draw(BOOLEANS):
        options |= {"norm_first": draw(BOOLEANS), "activation": draw(st.sampled_from(("relu", "gelu")))}
        attention = nn.TransformerEncoderLayer(size, heads, 7, layer_norm_eps=0.1, **options)
    parts = [nn.Unflatten(1, (count, size)), attention, nn.Linear(size, 3), nn.Flatten()]
    return [nn.Linear(width, count * size), *parts], 3 * count


def branch(draw, width):
    first = draw(st.integers(0, width - 1))
    end = draw(st.integers(first + 1, width))
    return [Branch(width, slice(first, end), nn.Sequential(nn.Linear(end - first, 5), nn.Tanh()))], width + 5


@st.composite
def networks(draw):
    """A number of agents, and modules that read what they observe; the last one gives logits."""
    torch.manual_seed(draw(st.integers(0, 99)))
    num_agents = draw(st.integers(1, 3))
    modules, width = dense(lambda one: draw(one), 88 + 3 * num_agents)
    for part in draw(st.lists(st.sampled_from((dense, norm, memory, image, tokens, branch)), max_size=3)):
        added, width = part(draw, width)
        modules += added
    value = draw(st.sampled_from((None, nn.Linear(width, 1))))
    heads = [NUM_LOGITS] if draw(BOOLEANS) else doorstep.ACTIONS
    modules = randomised([*modules, Heads([nn.Linear(width, size) for size in heads], value)])
    # With this stride above the kernel's size, PyTorch 2.13 reads uninitialised memory (oneDNN on CPUs, bfloat16)
    can_be_narrow = not any(isinstance(one, nn.Conv2d) and one.stride[1] > one.kernel_size[1] for one in modules)
    is_narrow = draw(BOOLEANS) and can_be_narrow
    return num_agents, [module.bfloat16() for module in modules] if is_narrow else modules


TEMPERATURES, TOP_P, SEEDS = (st.sampled_from(one) for one in ((0.0, 0.5, 1.0, 2.0), (0.4, 0.9, 1.0), (None, 7)))
SAMPLINGS = st.builds(SamplingParams, temperature=TEMPERATURES, top_p=TOP_P, greedy=BOOLEANS, seed=SEEDS)


def zeros_of(policy, *shape):
    return policy.initial_state(*shape) if policy.state_size else None


def forget(states, rows):
    for state in states.values():
        for tensor in state if isinstance(state, tuple) else (state,):
            tensor[..., rows, :] = 0


@settings(max_examples=25, derandomize=True, deadline=None, database=None, phases=[Phase.generate])
@given(networks(), SAMPLINGS)
def test_a_drawn_network_is_pytorchs_in_every_way_of_acting(network, sampling):
    """In episodes of several worlds that end at different steps. Whatever evaluates it gives the same bits."""
    num_agents, modules = network
    policy = doorstep.load_policy(modules, sampling=sampling)
    others, has_value = [policy.freeze(), pickle.loads(pickle.dumps(policy))], modules[-1].value is not None
    assert policy.has_value == has_value
    if len(modules[-1].heads) == 1 and not has_value:  # which files hold
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "policy.safetensors")
            widened = [copy.deepcopy(module).float() for module in modules]
            write_policy(path, StoredPolicy(stored_layers(widened), sampling, None, {}))
            others.append(doorstep.load_policy(path))
    with doorstep.Simulator(3, num_agents=num_agents, seed=5, episode_length=4, num_threads=1) as sim:
        player, (called, stepped, *same) = Player(policy, sim), [one.seeded(5) for one in (policy, policy, *others)]
        state, given, own = zeros_of(policy, 3, num_agents), None, {}
        for step in range(7):
            seen = sim.observations.copy_to_host()
            logits, features = exact(modules, seen, {**own}), exact(modules[:-1], seen, own)
            before = copy.copy(state)
            np.testing.assert_allclose(policy.forward(seen, copy.copy(state)), logits, atol=3e-5, rtol=3e-5)
            log_probs, values = (np.full(seen.shape[:2], 9, np.float32) for _ in range(2))
            actions = stepped._act(seen, state, None, step, None, 0, log_probs=log_probs, values=values)
            assert_chosen(actions, log_probs, logits, sampling)
            own_values = exact([modules[-1].value], features)[..., 0] if has_value else np.full(seen.shape[:2], np.nan)
            np.testing.assert_allclose(values, own_values, atol=3e-5, rtol=3e-5)
            for other in same:
                again = copy.copy(before)
                assert (other.act(seen, again, step=step) == actions).all()
                assert np.array_equal(again, state)
            part = None if before is None else before[1:].copy()
            assert (stepped.act(seen[1:], part, step=step, first_world=1) == actions[1:]).all()
            assert part is None or (part == state[1:]).all()
            kept = copy.copy(given)
            found, following = (called(seen), None) if state is None else called(seen, given)
            assert np.array_equal(given, kept)  # it is changed by none
            given = following
            assert (found == actions).all()
            assert np.array_equal(given, state)
            player.act()
            assert (sim.actions == actions).all()
            sim.step()
            if step == 1:
                sim.reset([1])
            begun = [1] if step == 1 else np.flatnonzero(sim.dones[:, 0, 0]).tolist()
            for kept in (state, given):
                if kept is not None:
                    kept[begun] = 0
            forget(own, [world * num_agents + agent for world in begun for agent in range(num_agents)])


# ---- Every kind of layer ----


def test_activations_are_those_of_pytorch():
    for activation in ACTIVATIONS:
        for scale in (1, 30):
            last = nn.Linear(50, NUM_LOGITS)
            with torch.no_grad():
                last.weight /= scale  # the values before it are large, the logits are not
            assert_logits([nn.Linear(NUM_INPUTS, 50), activation, last], observe(40, 2) * scale)


def test_wide_networks_and_norms_are_those_of_pytorch():
    for widths in ((), (1,), (130, 67), (256, 256), (1000,)):
        for shape in ((1, 1), (100, 3)):
            assert_logits([mlp(*widths)], observe(*shape))
    for norm_layer in (nn.RMSNorm(NUM_INPUTS), nn.LayerNorm(NUM_INPUTS), nn.LayerNorm(NUM_INPUTS, bias=False)):
        assert_logits(randomised([norm_layer, mlp(8)]), observe(20, 2))


def test_modules_may_be_nested_and_occur_again():
    shared, layer_norm, twice = nn.Linear(20, 20), nn.LayerNorm(20), nn.Sequential(nn.Linear(20, 20), nn.Tanh())
    first, last = nn.Sequential(nn.Sequential(nn.Linear(NUM_INPUTS, 20, bias=False))), nn.Linear(20, NUM_LOGITS)
    net = nn.Sequential(first, layer_norm, shared, nn.Tanh(), shared, layer_norm, twice, twice, last)
    assert len(doorstep.load_policy(net).layers) == 11
    assert_logits([net], observe(9, 2))


def test_heads_are_side_by_side_and_only_a_linear_one_of_one_output_is_a_value():
    body = nn.Sequential(nn.Linear(NUM_INPUTS, 20), nn.Tanh())
    values = {nn.Linear(20, 1): True, nn.Linear(20, 2): False, nn.Sequential(nn.Linear(20, 1), nn.Dropout()): False}
    for value, has_value in values.items():
        heads = Heads((nn.Linear(20, size) for size in doorstep.ACTIONS), value)
        policy = doorstep.load_policy(nn.Sequential(body, heads))
        assert policy.has_value == has_value
        assert [layer.num_outputs for layer in policy.layers] == [20, None, 4, 8, 5, 2, *[1] * has_value]
        assert_logits([body, heads], observe(9, 2))


# ---- Convolutions, pools, tokens and attention ----


def inner_branch():
    encoder = nn.Sequential(nn.Unflatten(1, (5, 12)), made.encoder_layer(), nn.Flatten())
    return nn.Sequential(Branch(90, slice(20, 80), encoder), nn.Linear(150, 7))


def arranged():
    """What is not drawn above."""
    whole = nn.TransformerEncoder(made.encoder_layer(), 3, nn.LayerNorm(12), enable_nested_tensor=False)
    pools = nn.MaxPool2d(2), nn.Conv2d(3, 4, 2), nn.MaxPool2d((2, 3), 1, (1, 1))
    return {
        "conv1d stride and padding": made.sequence(nn.Conv1d(2, 7, 4, 3, 2, bias=False), outputs=7 * 11),
        "conv1d wider than the sequence": made.sequence(nn.Conv1d(2, 5, 31, padding=3), outputs=30),
        "conv2d of unequal sides": made.image(nn.Conv2d(3, 6, (2, 5), (3, 2), (0, 4)), outputs=6 * 3 * 8),
        "conv2d same": made.image(nn.Conv2d(3, 2, (3, 5), padding="same"), outputs=216),
        "max pools": made.image(*pools, outputs=4 * 4 * 5),
        "avg pools": made.image(nn.AvgPool2d(3, 2, 1), nn.AvgPool2d((2, 1)), outputs=36),
        "pools of a sequence": made.sequence(nn.MaxPool1d(3), nn.AvgPool1d(4, 2, 2), outputs=12),
        "layers of tokens": made.tokens(nn.Linear(12, 7), nn.LayerNorm(7), nn.RMSNorm(7), nn.GELU(), outputs=35),
        "dimensions of tokens": [
            *(nn.Unflatten(1, (60,)), nn.Unflatten(-1, (-1, 4)), nn.Linear(4, 6), nn.Flatten(-2, -1)),
            *(nn.Unflatten(1, (3, 5, 6)), nn.Flatten(2), nn.Linear(30, 1), nn.Flatten(), nn.Linear(3, NUM_LOGITS)),
        ],
        "attention in training": made.tokens(made.attention(dropout=0.5, bias=False)),
        "attention before memory": [*made.tokens(made.attention())[:-1], nn.GRU(60, 19)],
        "encoder layer in training": made.tokens(made.encoder_layer(activation=nn.SiLU(), bias=False, dropout=0.5)),
        "encoder": made.tokens(whole),
        "encoder of a sequence": [
            *(nn.Unflatten(1, (2, 30)), nn.Conv1d(2, 6, 5, 5, padding="valid"), nn.Linear(6, 12)),
            *(made.encoder_layer(), nn.Conv1d(6, 2, 1), nn.Flatten(), nn.Linear(24, NUM_LOGITS)),
        ],
        "branch": [nn.Unflatten(1, (94,)), Branch(94, slice(0, 90), inner_branch()), nn.Linear(101, NUM_LOGITS)],
    }


def test_arranged_networks_are_those_of_pytorch_in_every_batch_and_survive_files_and_pickles(tmp_path):
    for name, modules in arranged().items():
        policy, width = doorstep.load_policy(randomised(modules)), int(np.prod(modules[0].unflattened_size))
        values = torch.randn(130, width, generator=torch.Generator().manual_seed(0))
        whole = policy.forward(values)
        np.testing.assert_allclose(whole, exact(modules, values), atol=1e-5, err_msg=name)
        for size in (1, 5, 16, 33, 64):
            assert (policy.forward(values[40 : 40 + size]) == whole[40 : 40 + size]).all(), (name, size)
        write_policy(tmp_path / "x.safetensors", StoredPolicy(stored_layers(modules), SamplingParams(), None, {}))
        others = [doorstep.load_policy(tmp_path / "x.safetensors"), pickle.loads(pickle.dumps(policy))]
        if not any(isinstance(module, (nn.MultiheadAttention, nn.GRU)) for module in modules):
            others.append(doorstep.load_policy(nn.Sequential(nn.Identity(), nn.Sequential(*modules))))
        for other in others:
            assert (other.forward(values) == whole).all(), name
        values[7, 0] = torch.nan  # stays in its row
        assert np.isnan(policy.forward(values)).any(axis=1).tolist() == [row == 7 for row in range(130)], name


def test_engines_play_arranged_networks():
    policy = doorstep.load_policy(randomised(arranged()["branch"]))
    how = {"policy": policy, "sampling": GREEDY, "max_steps": 9, "record": "observations"}
    with doorstep.RolloutEngine(num_worlds=3, num_threads=1) as engine:
        for result in engine.run([doorstep.EpisodeRequest(seed=seed, **how) for seed in range(5)]):
            assert (result.actions == policy.act(result.observations, sampling=GREEDY)).all()


# ---- Bits ----


def test_a_row_has_the_same_bits_in_every_batch_and_thread():
    policy = doorstep.load_policy([mlp(64)[0], nn.Tanh(), nn.LSTM(64, 31), nn.LayerNorm(31), nn.Linear(31, 19)])
    observations = observe(300, 1).numpy()
    whole = policy.forward(observations)
    for size in (1, 2, 5, 16, 17, 33, 64, 100):
        for first in range(0, 300, 60):
            assert (policy.forward(observations[first : first + size]) == whole[first : first + size]).all()
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(policy.forward, [observations] * 40):
            assert (found == whole).all()


def test_what_is_not_a_number_has_one_bit_pattern():
    seen = np.array([[-np.float32(np.nan)] * NUM_INPUTS], np.float32)
    seen.view(np.uint32)[0, 3] |= 12
    assert (doorstep.load_policy(mlp(4)).forward(seen).view(np.uint32) == 0x7FC00000).all()


def test_other_states_are_refused():
    policy = doorstep.load_policy([nn.GRU(NUM_INPUTS, 8), nn.Linear(8, NUM_LOGITS)])
    for state, message in (
        (np.zeros((3, 2, 7), np.float32), r"state is \[3, 2, 7\]; it must be of shape \[3, 2, 8\]"),
        (np.zeros((3, 2, 8)), "state is float64"),
        (np.broadcast_to(np.zeros(8, np.float32), (3, 2, 8)), "state is"),
    ):
        refuses(message, policy.forward, observe(3, 2), state)
    without, state = doorstep.load_policy(mlp(4)), np.zeros((3, 2, 8), np.float32)
    refuses(r"state is (?s:.*) this policy has no memory", without.forward, observe(3, 2), state)
