"""Convolutions, pools, tokens and attention: logits are PyTorch's, have the same bits in every batch, survive files,
and what a policy does not evaluate is refused with the parameter and the remedy."""

import functools
import pickle

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.policy.networks import NUM_LOGITS, exact, randomised  # noqa: E402
from torch import nn  # noqa: E402

from doorstep.policy import Branch, SamplingParams  # noqa: E402
from doorstep.policy.files import StoredPolicy, write_policy  # noqa: E402
from doorstep.policy.torch_policy import stored_layers  # noqa: E402


def head(inputs):
    return nn.Linear(inputs, NUM_LOGITS)


def tokens(*modules, shape=(5, 12), outputs=60):
    return [nn.Unflatten(1, shape), *modules, nn.Flatten(), head(outputs)]


sequence, image = functools.partial(tokens, shape=(2, 30)), functools.partial(tokens, shape=(3, 9, 12))


def encoder_layer(**options):
    return nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, **options)


def attention(width=12, heads=4, **options):
    return nn.MultiheadAttention(width, heads, **{"batch_first": True, **options})


def lidar():
    return nn.Sequential(nn.Unflatten(1, (1, 30, 2)), nn.Conv2d(1, 8, (5, 2)), nn.ReLU(), nn.Flatten())


def inner_branch():
    encoder = nn.Sequential(nn.Unflatten(1, (5, 12)), encoder_layer(), nn.Flatten())
    return nn.Sequential(Branch(90, slice(20, 80), encoder), nn.Linear(150, 7))


def networks():
    torch.manual_seed(1)
    whole = nn.TransformerEncoder(encoder_layer(), 3, nn.LayerNorm(12), enable_nested_tensor=False)
    return {
        "conv1d stride and padding": sequence(nn.Conv1d(2, 7, 4, 3, 2, bias=False), outputs=7 * 11),
        "conv1d twice": sequence(nn.Conv1d(2, 14, 3, 2), nn.Tanh(), nn.Conv1d(14, 3, 3, padding=1), outputs=3 * 14),
        "conv1d same": sequence(nn.Conv1d(2, 5, 7, padding="same"), outputs=150),
        "conv1d valid": sequence(nn.Conv1d(2, 5, 7, padding="valid"), outputs=120),
        "conv1d wider than the sequence": sequence(nn.Conv1d(2, 5, 31, padding=3), outputs=30),
        "conv2d": image(nn.Conv2d(3, 13, 3), nn.ELU(), outputs=13 * 7 * 10),
        "conv2d of unequal sides": image(nn.Conv2d(3, 6, (2, 5), (3, 2), (0, 4)), outputs=6 * 3 * 8),
        "conv2d same": image(nn.Conv2d(3, 2, (3, 5), padding="same"), outputs=216),
        "max pools": image(nn.MaxPool2d(2), nn.Conv2d(3, 4, 2), nn.MaxPool2d((2, 3), 1, (1, 1)), outputs=4 * 4 * 5),
        "avg pools": image(nn.AvgPool2d(3, 2, 1), nn.AvgPool2d((2, 1)), outputs=36),
        "pools of a sequence": sequence(nn.MaxPool1d(3), nn.AvgPool1d(4, 2, 2), outputs=12),
        "layers of tokens": tokens(nn.Linear(12, 7), nn.LayerNorm(7), nn.RMSNorm(7), nn.GELU(), outputs=35),
        "dimensions of tokens": [
            *(nn.Unflatten(1, (60,)), nn.Unflatten(-1, (-1, 4)), nn.Linear(4, 6), nn.Flatten(-2, -1)),
            *(nn.Unflatten(1, (3, 5, 6)), nn.Flatten(2), nn.Linear(30, 1), nn.Flatten(), head(3)),
        ],
        "attention": tokens(attention()),
        "attention of one head": tokens(attention(12, 1, dropout=0.5, bias=False)),
        "attention of one token": tokens(attention(), shape=(1, 12), outputs=12),
        "attention before memory": [*tokens(attention())[:-1], nn.GRU(60, 19)],
        "encoder layer": tokens(encoder_layer()),
        "encoder layer that normalises first": tokens(encoder_layer(norm_first=True, activation="gelu")),
        "encoder layer of other settings": tokens(encoder_layer(activation=nn.SiLU(), bias=False, dropout=0.5)),
        "encoder": tokens(whole),
        "encoder of a sequence": [
            *(nn.Unflatten(1, (2, 30)), nn.Conv1d(2, 6, 5, 5), nn.Linear(6, 12), encoder_layer()),
            *(nn.Conv1d(6, 2, 1), nn.Flatten(), head(24)),
        ],
        "branch": [nn.Unflatten(1, (94,)), Branch(94, slice(32, 92), lidar()), nn.LayerNorm(302), head(302)],
        "branch of a branch": [nn.Unflatten(1, (94,)), Branch(94, slice(0, 90), inner_branch()), head(101)],
    }


def observe(modules, rows):
    width = int(np.prod(modules[0].unflattened_size))
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(0))


def test_logits_are_those_of_pytorch_in_every_batch_and_survive_files_and_pickles(tmp_path):
    for name, modules in networks().items():
        policy, values = doorstep.load_policy(randomised(modules)), observe(modules, 130)
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


def test_weights_are_read_in_place_and_frozen_ones_are_not():
    modules = tokens(attention())
    policy, values = doorstep.load_policy(modules), observe(modules, 3)
    frozen, before = policy.freeze(), policy.forward(values)
    with torch.no_grad():
        modules[1].out_proj.bias += 1
    np.testing.assert_allclose(policy.forward(values), exact(modules, values), atol=1e-5)
    assert (frozen.forward(values) == before).all()
    modules[1].out_proj.bias.data = torch.zeros(12)
    with pytest.raises(doorstep.StateError, match=r"^module\[1\]\.out_proj\.bias is no longer what the policy reads"):
        policy.forward(values)


def conv(**options):
    return sequence(nn.Conv1d(2, 4, 3, **options), outputs=1)


def pooled(pool):
    return image(pool, outputs=1)


UNFLATTEN = nn.Unflatten(1, (2, 30))
SAME = r"has padding=\"same\" with kernel_size=\(4,\), which pads one side more \(use an odd kernel_s"
REFUSED = [  # made by, and what is said of module[1]
    (lambda: conv(groups=2), r"has groups=2 \(pass groups=1\)"),
    (lambda: conv(dilation=2), r"has dilation=\(2,\) \(pass dilation=1\)"),
    (lambda: conv(padding_mode="circular"), r"has padding_mode='circular' \(pass padding_m"),
    (lambda: sequence(nn.Conv1d(2, 4, 4, padding="same"), outputs=1), SAME),
    (lambda: sequence(nn.Conv1d(3, 4, 3), outputs=1), r"has in_channels=3; .* gives \[2, 30\]"),
    (lambda: sequence(nn.Conv1d(2, 4, 31), outputs=1), "cannot be read: a window of 31"),
    (lambda: sequence(nn.Conv2d(2, 4, 3), outputs=1), r"is a Conv2d, which takes \[channels, he"),
    (lambda: sequence(nn.ConvTranspose1d(2, 4, 3), outputs=1), "is a ConvTranspose1d; a pol"),
    (lambda: pooled(nn.MaxPool2d(2, ceil_mode=True)), r"has ceil_mode=True \(pass ce"),
    (lambda: pooled(nn.MaxPool2d(2, dilation=2)), r"has dilation=2 \(pass dilati"),
    (lambda: pooled(nn.MaxPool2d(2, return_indices=True)), "has return_indices=True"),
    (lambda: pooled(nn.AvgPool2d(2, divisor_override=3)), "has divisor_override=3"),
    (lambda: pooled(nn.AvgPool2d(3, 1, 1, count_include_pad=False)), r"has count_include_pad=False .*, or padding=0"),
    (lambda: tokens(attention(batch_first=False)), r"has batch_first=False: .* \(pass batch_first=T"),
    (lambda: tokens(attention(kdim=5)), r"has kdim=5 and vdim=12, which are not embed_dim=12 \(leave out"),
    (lambda: tokens(attention(add_bias_kv=True)), r"has add_bias_kv=True \(pass add_bias_kv=False\)"),
    (lambda: tokens(attention(add_zero_attn=True)), r"has add_zero_attn=True \(pass add_zero_attn=F"),
    (lambda: tokens(attention(6, 2)), r"takes \[tokens, 6\]; .* \[5, 12"),
    (lambda: tokens(encoder_layer(activation=torch.sin)), r"\.activation is a function; a policy is made of modules"),
    (lambda: tokens(encoder_layer(activation=nn.PReLU())), r"\.activation is a PReLU"),
    (lambda: tokens(nn.TransformerEncoderLayer(12, 3)), r"\.self_attn has batch_first=False"),
    (lambda: tokens(nn.TransformerDecoderLayer(12, 3)), "is a TransformerDecoderLayer; a policy is made of"),
    (lambda: tokens(nn.GRU(12, 12)), r"is a GRU, which takes flat rows; .* \[5, 12\] \(put"),
    (lambda: [nn.Linear(10, 10), nn.Unflatten(1, (3, 4))], r"divides 10 values into \[3, 4\] \(pass sizes whose prod"),
    (lambda: [nn.Linear(4, 4), nn.Unflatten(0, (1, 8)), head(4)], "divides dimension 0 of row"),
    (lambda: [nn.Linear(94, 94), Branch(94, slice(0, 60), UNFLATTEN), head(154)], r"\.module gives \(2, 30\) .*\(end"),
    (lambda: tokens(Branch(60, slice(0, 60), head(60))), "is a Branch, which takes flat"),
    (lambda: [nn.Linear(9, 9), Branch(8, slice(0, 8), head(8)), head(27)], "takes 8 v"),
]
OTHERS = [
    (lambda: [nn.Conv1d(1, 4, 3)], r"module\[0\] is a Conv1d, .* flat rows \(put nn\.Unflatten\(1, \(chan"),
    (lambda: [attention()], r"module\[0\] takes \[tokens, 12\]; .* flat rows \(put nn\.Unflatten\(1, \(tokens, 12"),
    (lambda: [nn.Unflatten(1, (-1, 4))], r"module\[0\] divides dimension 1 of row"),
    (lambda: tokens(head(12))[:2], r"module gives \[5, 19\] for a row; it must give flat logits: add"),
]


def test_what_a_policy_does_not_evaluate_is_refused():
    for make, message in [*((make, rf"module\[1\] ?{message}") for make, message in REFUSED), *OTHERS]:
        refuses(f"^{message}", doorstep.load_policy, make(), argument="module")


def test_a_part_of_a_branch_is_in_the_features():
    refuses(r"^num_features is 0; it must be an integer, 1 to", Branch, 0, slice(0, 1), nn.Identity())
    for part in (32, slice(32, 95), slice(32, 32), slice(None, 32), slice(0, 90, 2)):
        refuses(r"^part is .*; it must be a slice\(first, end\) of 0 to 94", Branch, 94, part, nn.Identity())


def test_a_module_that_computes_something_else_is_refused(monkeypatch):
    modules = [[*conv()[:2], nn.Flatten(), head(112)], tokens(attention()), tokens(encoder_layer())]
    for kind, made in zip((nn.Conv1d, nn.MultiheadAttention, nn.TransformerEncoderLayer), modules, strict=True):

        def larger(self, *arguments, plain=kind.forward, **options):
            found = plain(self, *arguments, **options)
            return (found[0] * 1.1, None) if isinstance(found, tuple) else found * 1.1

        with monkeypatch.context() as changed:
            changed.setattr(kind, "forward", larger)
            message = rf"^module\[1\] computes something else than a {kind.__name__} "
            refuses(message, doorstep.load_policy, made)
