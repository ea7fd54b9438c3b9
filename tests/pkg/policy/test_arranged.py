"""Convolutions, pools, tokens and attention: logits are PyTorch's, have the same bits in every batch, survive files,
and what a policy does not evaluate is refused with the parameter and the remedy."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.policy.networks import NUM_LOGITS  # noqa: E402
from torch import nn  # noqa: E402

from doorstep.policy import Branch, SamplingParams  # noqa: E402
from doorstep.policy.files import StoredPolicy, write_policy  # noqa: E402
from doorstep.policy.torch_policy import stored_layers  # noqa: E402

TOLERANCE = 1e-5
Modules = list[nn.Module]


def head(inputs: int) -> nn.Linear:
    return nn.Linear(inputs, NUM_LOGITS)


def sequence(*modules: nn.Module, channels: int = 2, length: int = 30, outputs: int) -> Modules:
    return [nn.Unflatten(1, (channels, length)), *modules, nn.Flatten(), head(outputs)]


def image(*modules: nn.Module, outputs: int) -> Modules:
    return [nn.Unflatten(-1, (3, 9, 12)), *modules, nn.Flatten(), head(outputs)]


def tokens(*modules: nn.Module, count: int = 5, width: int = 12, outputs: int = 60) -> Modules:
    return [nn.Unflatten(1, (count, width)), *modules, nn.Flatten(), head(outputs)]


def encoder_layer(**options: Any) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, **options)


NETWORKS: dict[str, Callable[[], Modules]] = {
    "conv1d": lambda: sequence(nn.Conv1d(2, 7, 5), nn.ReLU(), outputs=7 * 26),
    "conv1d stride and padding": lambda: sequence(nn.Conv1d(2, 7, 4, 3, 2, bias=False), outputs=7 * 11),
    "conv1d twice": lambda: sequence(nn.Conv1d(2, 14, 3, 2), nn.Tanh(), nn.Conv1d(14, 3, 3, padding=1), outputs=3 * 14),
    "conv1d same": lambda: sequence(nn.Conv1d(2, 5, 7, padding="same"), outputs=150),
    "conv1d valid": lambda: sequence(nn.Conv1d(2, 5, 7, padding="valid"), outputs=120),
    "conv1d wider than the sequence": lambda: sequence(nn.Conv1d(2, 5, 31, padding=3), outputs=30),
    "conv2d": lambda: image(nn.Conv2d(3, 13, 3), nn.ELU(), outputs=13 * 7 * 10),
    "conv2d of unequal sides": lambda: image(nn.Conv2d(3, 6, (2, 5), (3, 2), (0, 4)), outputs=6 * 3 * 8),
    "conv2d same": lambda: image(nn.Conv2d(3, 2, (3, 5), padding="same"), outputs=216),
    "max pools": lambda: image(nn.MaxPool2d(2), nn.Conv2d(3, 4, 2), nn.MaxPool2d((2, 3), 1, (1, 1)), outputs=4 * 4 * 5),
    "avg pools": lambda: image(nn.AvgPool2d(3, 2, 1), nn.AvgPool2d((2, 1)), outputs=36),
    "pools of a sequence": lambda: sequence(nn.MaxPool1d(3), nn.AvgPool1d(4, 2, 2), outputs=12),
    "linear layers of tokens": lambda: tokens(nn.Linear(12, 7), nn.LayerNorm(7), nn.RMSNorm(7), nn.GELU(), outputs=35),
    "dimensions of tokens": lambda: [
        nn.Unflatten(1, (60,)),
        nn.Unflatten(-1, (-1, 4)),
        nn.Linear(4, 6),
        nn.Flatten(-2, -1),
        nn.Unflatten(1, (3, 5, 6)),
        nn.Flatten(2),
        nn.Linear(30, 1),
        nn.Flatten(),
        head(3),
    ],
    "attention": lambda: tokens(nn.MultiheadAttention(12, 4, batch_first=True)),
    "attention of one head": lambda: tokens(nn.MultiheadAttention(12, 1, dropout=0.5, bias=False, batch_first=True)),
    "attention of one token": lambda: tokens(nn.MultiheadAttention(12, 3, batch_first=True), count=1, outputs=12),
    "attention before memory": lambda: [*tokens(nn.MultiheadAttention(12, 2, batch_first=True))[:-1], nn.GRU(60, 19)],
    "encoder layer": lambda: tokens(encoder_layer()),
    "encoder layer that normalises first": lambda: tokens(encoder_layer(norm_first=True, activation="gelu")),
    "encoder layer of other settings": lambda: tokens(encoder_layer(activation=nn.SiLU(), bias=False, dropout=0.5)),
    "encoder": lambda: tokens(nn.TransformerEncoder(encoder_layer(), 3, nn.LayerNorm(12), enable_nested_tensor=False)),
    "encoder of a sequence": lambda: [
        nn.Unflatten(1, (2, 30)),
        nn.Conv1d(2, 6, 5, 5),
        nn.Linear(6, 12),
        encoder_layer(),
        nn.Conv1d(6, 2, 1),
        nn.Flatten(),
        head(24),
    ],
    "branch": lambda: [
        nn.Unflatten(1, (94,)),
        Branch(94, slice(32, 92), lidar()),
        nn.LayerNorm(8 * 26 + 94),
        head(8 * 26 + 94),
    ],
    "branch of a branch": lambda: [
        nn.Unflatten(1, (94,)),
        Branch(94, slice(0, 90), nn.Sequential(Branch(90, slice(20, 80), encoder_of_lidar()), nn.Linear(150, 7))),
        head(101),
    ],
}


def lidar() -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (1, 30, 2)), nn.Conv2d(1, 8, (5, 2)), nn.ReLU(), nn.Flatten())


def encoder_of_lidar() -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (5, 12)), encoder_layer(), nn.Flatten())


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(1)


def observe(modules: Modules, rows: int) -> Any:
    return torch.randn(rows, sum_inputs(modules), generator=torch.Generator().manual_seed(0))


def sum_inputs(modules: Modules) -> int:
    return int(np.prod(modules[0].unflattened_size))


def exact(modules: Modules, values: Any) -> Any:
    """What the modules compute in double precision."""
    values = values.double()
    with torch.no_grad():
        for module in copy.deepcopy(modules):
            module.double().eval()
            if isinstance(module, nn.MultiheadAttention):
                values = module(values, values, values)[0]
            elif isinstance(module, nn.GRU):
                values = module(values[None])[0][0]
            else:
                values = module(values)
    return values.numpy()


def randomise(modules: Modules) -> Modules:
    """Biases and norms begin as zeros and ones."""
    with torch.no_grad():
        for module in modules:
            for parameter in module.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return modules


@pytest.mark.parametrize("name", NETWORKS)
def test_logits_are_those_of_pytorch(name: str) -> None:
    modules = randomise(NETWORKS[name]())
    policy = doorstep.load_policy(modules)
    for rows in (1, 9, 70):
        values = observe(modules, rows)
        np.testing.assert_allclose(policy.forward(values), exact(modules, values), atol=TOLERANCE)
    callable_whole = not any(isinstance(module, (nn.MultiheadAttention, nn.GRU)) for module in modules)
    if callable_whole:
        whole = doorstep.load_policy(nn.Sequential(nn.Identity(), nn.Sequential(*modules)))
        assert (whole.forward(values) == policy.forward(values)).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_row_has_the_same_bits_in_every_batch(name: str) -> None:
    modules = NETWORKS[name]()
    policy, values = doorstep.load_policy(modules), observe(modules, 130).numpy()
    whole = policy.forward(values)
    for size in (1, 5, 16, 33, 64):
        assert (policy.forward(values[40 : 40 + size]) == whole[40 : 40 + size]).all()


@pytest.mark.parametrize("name", ["conv1d stride and padding", "conv2d", "encoder"])
def test_weights_of_16_bits_are_widened(name: str) -> None:
    narrow = [module.bfloat16() for module in NETWORKS[name]()]
    widened = [copy.deepcopy(module).float() for module in narrow]
    values = observe(narrow, 20)
    found = doorstep.load_policy(narrow).forward(values)
    assert (found == doorstep.load_policy(widened).forward(values)).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_file_and_a_pickle_give_the_same_bits(name: str, tmp_path: Path) -> None:
    modules = NETWORKS[name]()
    layers = stored_layers(modules)
    write_policy(tmp_path / "policy.safetensors", StoredPolicy(layers, SamplingParams(), None, {}))
    values = observe(modules, 9).numpy()
    found, policy = doorstep.load_policy(tmp_path / "policy.safetensors"), doorstep.load_policy(modules)
    for other in (found, pickle.loads(pickle.dumps(policy))):
        assert (other.forward(values) == policy.forward(values)).all()


def test_weights_are_read_in_place_and_frozen_ones_are_not() -> None:
    modules = tokens(nn.MultiheadAttention(12, 4, batch_first=True))
    policy, values = doorstep.load_policy(modules), observe(modules, 3)
    frozen, before = policy.freeze(), policy.forward(values)
    with torch.no_grad():
        modules[1].out_proj.bias += 1
    np.testing.assert_allclose(policy.forward(values), exact(modules, values), atol=TOLERANCE)
    assert (frozen.forward(values) == before).all()
    modules[1].out_proj.bias.data = torch.zeros(12)
    with pytest.raises(doorstep.StateError, match=r"^module\[1\]\.out_proj\.bias is no longer what the policy reads"):
        policy.forward(values)


def test_a_value_that_is_no_number_stays_one() -> None:
    for modules in (image(nn.MaxPool2d(3), outputs=36), tokens(encoder_layer())):
        values = observe(modules, 20)
        values[7, 0] = torch.nan
        found = doorstep.load_policy(modules).forward(values)
        assert np.isnan(found).any(axis=1).tolist() == [row == 7 for row in range(20)]


def conv(**options: Any) -> Modules:
    return sequence(nn.Conv1d(2, 4, 3, **options), outputs=1)


def attention(**options: Any) -> Modules:
    return tokens(nn.MultiheadAttention(12, 4, **{"batch_first": True, **options}))


REFUSED: dict[str, tuple[Callable[[], Modules], str]] = {
    "groups": (lambda: conv(groups=2), r"module\[1\] has groups=2 \(pass groups=1\)"),
    "dilation": (lambda: conv(dilation=2), r"module\[1\] has dilation=\(2,\) \(pass dilation=1\)"),
    "padding_mode": (
        lambda: conv(padding_mode="circular"),
        r"module\[1\] has padding_mode='circular' \(pass padding_m",
    ),
    "same": (
        lambda: sequence(nn.Conv1d(2, 4, 4, padding="same"), outputs=1),
        r"module\[1\] has padding=\"same\" with kernel_size=\(4,\), which pads one side more \(use an odd kernel_s",
    ),
    "channels": (lambda: sequence(nn.Conv1d(3, 4, 3), outputs=1), r"module\[1\] has in_channels=3; .* gives \[2, 30\]"),
    "too small": (lambda: sequence(nn.Conv1d(2, 4, 31), outputs=1), r"module\[1\] cannot be read: a window of 31"),
    "flat rows": (
        lambda: [nn.Conv1d(1, 4, 3), head(1)],
        r"module\[0\] is a Conv1d, which takes \[channels, length\]; .* flat rows \(put nn\.Unflatten\(1, \(chan",
    ),
    "sequence": (
        lambda: sequence(nn.Conv2d(2, 4, 3), outputs=1),
        r"module\[1\] is a Conv2d, which takes \[channels, he",
    ),
    "transposed": (
        lambda: sequence(nn.ConvTranspose1d(2, 4, 3), outputs=1),
        r"module\[1\] is a ConvTranspose1d; a pol",
    ),
    "ceil_mode": (
        lambda: image(nn.MaxPool2d(2, ceil_mode=True), outputs=1),
        r"module\[1\] has ceil_mode=True \(pass ce",
    ),
    "pool dilation": (
        lambda: image(nn.MaxPool2d(2, dilation=2), outputs=1),
        r"module\[1\] has dilation=2 \(pass dilati",
    ),
    "indices": (lambda: image(nn.MaxPool2d(2, return_indices=True), outputs=1), r"module\[1\] has return_indices=True"),
    "divisor": (lambda: image(nn.AvgPool2d(2, divisor_override=3), outputs=1), r"module\[1\] has divisor_override=3"),
    "edges": (
        lambda: image(nn.AvgPool2d(3, padding=1, count_include_pad=False), outputs=1),
        r"module\[1\] has count_include_pad=False \(pass count_include_pad=True, or padding=0\)",
    ),
    "rows attend": (
        lambda: attention(batch_first=False),
        r"module\[1\] has batch_first=False: .* \(pass batch_first=T",
    ),
    "kdim": (lambda: attention(kdim=5), r"module\[1\] has kdim=5 and vdim=12, which are not embed_dim=12 \(leave out"),
    "add_bias_kv": (
        lambda: attention(add_bias_kv=True),
        r"module\[1\] has add_bias_kv=True \(pass add_bias_kv=False\)",
    ),
    "add_zero_attn": (
        lambda: attention(add_zero_attn=True),
        r"module\[1\] has add_zero_attn=True \(pass add_zero_attn=F",
    ),
    "tokens": (
        lambda: [nn.MultiheadAttention(12, 4, batch_first=True), head(12)],
        r"module\[0\] takes \[tokens, 12\]; what is before it gives flat rows \(put nn\.Unflatten\(1, \(tokens, 12",
    ),
    "width of tokens": (
        lambda: tokens(nn.MultiheadAttention(6, 2, batch_first=True)),
        r".* takes \[tokens, 6\]; .* \[5, 12",
    ),
    "activation": (
        lambda: tokens(encoder_layer(activation=torch.sin)),
        r"module\[1\]\.activation is a function; a policy is made of modules",
    ),
    "activation module": (lambda: tokens(encoder_layer(activation=nn.PReLU())), r"module\[1\]\.activation is a PReLU"),
    "rows attend in a layer": (
        lambda: tokens(nn.TransformerEncoderLayer(12, 3)),
        r"module\[1\]\.self_attn has batch_first=False",
    ),
    "decoder": (
        lambda: tokens(nn.TransformerDecoderLayer(12, 3)),
        r"module\[1\] is a TransformerDecoderLayer; a policy is made of",
    ),
    "memory of tokens": (
        lambda: tokens(nn.GRU(12, 12)),
        r"module\[1\] is a GRU, which takes flat rows; .* \[5, 12\] \(put",
    ),
    "logits of tokens": (
        lambda: tokens(head(12))[:2],
        r"module gives \[5, 19\] for a row; it must give flat logits: add",
    ),
    "division": (
        lambda: [nn.Linear(10, 10), nn.Unflatten(1, (3, 4)), nn.Flatten(), head(12)],
        r"module\[1\] divides 10 values into \[3, 4\] \(pass sizes whose product is",
    ),
    "unknown size": (
        lambda: [nn.Unflatten(1, (-1, 4)), nn.Flatten(), head(12)],
        r"module\[0\] divides dimension 1 of row",
    ),
    "branch that is not flat": (
        lambda: [Branch(94, slice(0, 60), nn.Unflatten(1, (2, 30))), head(154)],
        r"module\[0\]\.module gives \(2, 30\) for a row \(end it with nn\.Flatten\(\)\)",
    ),
    "branch of tokens": (
        lambda: tokens(Branch(60, slice(0, 60), head(60))),
        r"module\[1\] is a Branch, which takes flat",
    ),
    "width of a branch": (
        lambda: [nn.Linear(9, 9), Branch(8, slice(0, 8), head(8)), head(27)],
        r"module\[1\] takes 8 v",
    ),
    "rows divided": (
        lambda: [nn.Linear(4, 4), nn.Unflatten(0, (1, 8)), head(4)],
        r"module\[1\] divides dimension 0 of row",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_policy_does_not_evaluate_is_refused(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(doorstep.ArgumentError, match=f"^{message}") as raised:
        doorstep.load_policy(make())
    assert raised.value.argument == "module"


@pytest.mark.parametrize(
    ("num_features", "part", "message"),
    [
        (0, slice(0, 1), "num_features is 0; it must be an integer, 1 to"),
        (94, 32, r"part is 32; it must be a slice\(first, end\) of 0 to 94"),
        (94, slice(32, 95), r"part is slice\(32, 95, None\)"),
        (94, slice(32, 32), r"part is slice\(32, 32, None\)"),
        (94, slice(None, 32), r"part is slice\(None, 32, None\)"),
        (94, slice(0, 90, 2), r"part is slice\(0, 90, 2\)"),
    ],
)
def test_a_part_of_a_branch_is_in_the_features(num_features: int, part: Any, message: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=f"^{message}"):
        Branch(num_features, part, nn.Identity())


@pytest.mark.parametrize("kind", [nn.Conv1d, nn.MultiheadAttention, nn.TransformerEncoderLayer])
def test_a_module_that_computes_something_else_is_refused(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = kind.forward

    def larger(self: Any, *arguments: Any, **options: Any) -> Any:
        found = plain(self, *arguments, **options)
        return (found[0] * 1.1, None) if isinstance(found, tuple) else found * 1.1

    modules = {
        nn.Conv1d: [*conv()[:2], nn.Flatten(), head(112)],
        nn.MultiheadAttention: attention(),
        nn.TransformerEncoderLayer: tokens(encoder_layer()),
    }[kind]
    monkeypatch.setattr(kind, "forward", larger)
    with pytest.raises(doorstep.ArgumentError, match=rf"^module\[1\] computes something else than a {kind.__name__} "):
        doorstep.load_policy(modules)
