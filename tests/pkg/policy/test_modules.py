"""Modules that a policy cannot evaluate are refused by their path and type."""

import pickle
from contextlib import contextmanager

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep

pytest.importorskip("torch")

import torch
from tests.pkg.policy.networks import NUM_INPUTS, NUM_LOGITS, attention, encoder_layer, image, mlp, sequence, tokens
from torch import nn

from doorstep.policy import Branch, Heads, SamplingParams
from doorstep.policy.torch_policy import stored_layers


class Scaled(nn.Linear):
    """A module that is no Linear, although it is one for isinstance()."""

    def forward(self, values):
        return 2 * super().forward(values)


def changed(module, part=None, **attributes):
    """A module some of whose attributes, or of one of its parts, were changed by hand."""
    for name, value in attributes.items():
        setattr(module if part is None else module[part], name, value)
    return module


def resized(nbytes):
    net = mlp(8)
    net[2].bias.untyped_storage().resize_(nbytes)
    return net


def own_forward(net, module):
    module.forward = lambda values, plain=module.forward: 2 * plain(values)
    return net


def with_hook():
    net = mlp(8)
    net[1].register_forward_hook(lambda module, inputs, outputs: None)
    return net


def linear(**attributes):
    return changed(nn.Linear(NUM_INPUTS, NUM_LOGITS), **attributes)


def lstm(**attributes):
    return [changed(nn.LSTM(NUM_INPUTS, 8), **attributes), LAST]


def conv(**options):
    return sequence(nn.Conv1d(2, 4, 3, **options))


def zeros(*shape, dtype=torch.float32):
    return nn.Parameter(torch.zeros(shape, dtype=dtype))


LAST = nn.Linear(8, NUM_LOGITS)
IS = "a tensor of module is"
SAME = r"module\[1\] has padding=\"same\" with kernel_size=\(4,\), which pads one side more \(use an odd kernel_s"
ACTOR = [nn.Linear(NUM_INPUTS, size) for size in doorstep.ACTIONS]
REFUSED = [
    (lambda: nn.Sequential(mlp(8), nn.Conv3d(1, 1, 1)), r"module\.1 is a Conv3d; .*: Sequential, H"),
    (lambda: nn.Sequential(nn.Sequential(nn.Softmax(-1)), LAST), r"module\.0\.0 is a Softmax"),
    (lambda: nn.Sequential(nn.Flatten(0), mlp()), r"module\.0 computes something else than a Fl"),
    (lambda: nn.Sequential(mlp(), nn.Softplus(threshold=2)), r"module\.1 is linear from 2 on"),
    (lambda: nn.Sequential(nn.RMSNorm((2, 47)), mlp()), r"module\.0 normalises over 2 dimensions"),
    (lambda: Scaled(NUM_INPUTS, NUM_LOGITS), r"module is a Scaled"),
    (with_hook, r"module\.1 has hooks"),
    (lambda: [nn.LSTM(NUM_INPUTS, 4, bidirectional=True), LAST], r"module\[0\] has two directions"),
    (lambda: [nn.LSTM(NUM_INPUTS, 9, proj_size=8), LAST], r"module\[0\] has a projection"),
    (lambda: mlp(8).double(), r"a tensor of module\.0 is torch\.float64; it must be torch\.float32 or"),
    (lambda: mlp(8).to("meta"), r"a tensor of module\.0 is torch\.float32 on meta"),
    (lambda: linear(weight=nn.Parameter(torch.zeros(94, 19).T)), r"a tensor of module is not contiguous"),
    (lambda: linear(bias=zeros(19, dtype=torch.bfloat16)), f"{IS} torch.float32 and torch.bfloat16; it must be of one"),
    (lambda: [nn.Linear(NUM_INPUTS, 7), nn.Tanh(), LAST], r"module\[2\] takes 8 values; .* gives 7"),
    (lambda: nn.Linear(NUM_INPUTS, 20), r"module gives 20 values; it must give 19 logits \(4 \+ 8"),
    (lambda: own_forward(net := mlp(8), net[1]), r"module\.1 has a forward\(\) of its own in addition to that of Tanh"),
    # what is read would not be there
    (lambda: linear(in_features=120), rf"{IS} weight \[19, 94\]; it must be \[19, 120\], as its sizes"),
    (lambda: linear(bias=zeros(9)), rf"{IS} bias \[9\]; it must be \[19\]"),
    (lambda: nn.Sequential(changed(nn.LayerNorm(94), weight=zeros(93)), mlp()), r".*\.0 is weight \[93\]; .* \[94\]"),
    (lambda: lstm(hidden_size=1 << 40), r".* \(layer 0\) is weight_ih_l0 \[32, 94\]; it must be \[4398046511104, 94\]"),
    (lambda: lstm(num_layers=2), r"module\[0\] \(layer 1\) has no weight_ih_l1"),
    (lambda: lstm(num_layers=0), r"module\[0\] computes something else than a LSTM"),
    (lambda: linear(weight=None), "module has no weight"),
    (lambda: linear(in_features=94.0), r"module has a size of 94\.0, which is no integer"),
    (lambda: nn.Sequential(mlp(), changed(nn.LeakyReLU(), negative_slope="x")), r"module\.1 cannot be read: .* float"),
    (lambda: resized(0), r"a tensor of module\.2 cannot be read: .* without memory"),
    (lambda: resized(8), r"a tensor of module\.2 cannot be read: .* a storage resized to 8"),
    (lambda: nn.Sequential(Heads(ACTOR), nn.Tanh()), r"module\.1 follows the heads"),
    (lambda: Heads([Scaled(94, size) for size in doorstep.ACTIONS]), r"module\.heads\.0 is a Scaled, but heads are"),
    (lambda: Heads(ACTOR, changed(nn.Linear(94, 1), forward=lambda values: values[..., :1])), "module.value"),
    (lambda: [*[nn.Linear(94, 94)] * 300, nn.Linear(94, 19)], "count is 301; it must be 1 to 256"),
    # convolutions, pools, tokens and attention
    (lambda: conv(groups=2), r"module\[1\] has groups=2 \(pass groups=1\)"),
    (lambda: conv(dilation=2), r"module\[1\] has dilation=\(2,\) \(pass dilation=1\)"),
    (lambda: conv(padding_mode="circular"), r"module\[1\] has padding_mode='circular' \(pass padding_m"),
    (lambda: sequence(nn.Conv1d(2, 4, 4, padding="same")), SAME),
    (lambda: sequence(nn.Conv1d(3, 4, 3)), r"module\[1\] has in_channels=3; .* gives \[2, 30\]"),
    (lambda: sequence(nn.Conv1d(2, 4, 31)), r"module\[1\] cannot be read: a window of 31"),
    (lambda: sequence(nn.Conv2d(2, 4, 3)), r"module\[1\] is a Conv2d, which takes \[channels, he"),
    (lambda: [nn.Conv1d(1, 4, 3)], r"module\[0\] is a Conv1d, .* flat rows \(put nn\.Unflatten\(1, \(chan"),
    (lambda: image(nn.MaxPool2d(2, ceil_mode=True)), r"module\[1\] has ceil_mode=True \(pass ce"),
    (lambda: image(nn.MaxPool2d(2, return_indices=True)), r"module\[1\] has return_indices=True"),
    (lambda: image(nn.AvgPool2d(2, divisor_override=3)), r"module\[1\] has divisor_override=3"),
    (lambda: image(nn.AvgPool2d(3, 1, 1, count_include_pad=False)), r".* has count_include_pad=False .*, or padding=0"),
    (lambda: tokens(attention(batch_first=False)), r"module\[1\] has batch_first=False: .* \(pass batch_first=T"),
    (lambda: tokens(attention(kdim=5)), r".* has kdim=5 and vdim=12, which are not embed_dim=12 \(leave out"),
    (lambda: tokens(attention(add_bias_kv=True)), r"module\[1\] has add_bias_kv=True \(pass add_bias_kv=False\)"),
    (lambda: tokens(attention(add_zero_attn=True)), r"module\[1\] has add_zero_attn=True \(pass add_zero_attn=F"),
    (lambda: tokens(attention(6, 2)), r"module\[1\] takes \[tokens, 6\]; .* \[5, 12"),
    (lambda: [attention()], r"module\[0\] takes \[tokens, 12\]; .* flat rows \(put nn\.Unflatten\(1, \(tokens, 12"),
    (lambda: tokens(encoder_layer(activation=torch.sin)), r"module\[1\]\.activation is a function; a policy is made"),
    (lambda: tokens(nn.TransformerEncoderLayer(12, 3)), r"module\[1\]\.self_attn has batch_first=False"),
    (lambda: tokens(nn.GRU(12, 12)), r"module\[1\] is a GRU, which takes flat rows; .* \[5, 12\] \(put"),
    (lambda: [nn.Unflatten(1, (-1, 4))], r"module\[0\] divides dimension 1 of row"),
    (lambda: [nn.Linear(10, 10), nn.Unflatten(1, (3, 4))], r".* divides 10 values into \[3, 4\] \(pass sizes whose p"),
    (lambda: [nn.Linear(4, 4), nn.Unflatten(0, (1, 8)), LAST], r"module\[1\] divides dimension 0 of row"),
    (lambda: [Branch(94, slice(0, 60), nn.Unflatten(1, (2, 30))), LAST], r".*\.module gives \(2, 30\) .*\(end"),
    (lambda: tokens(LAST)[:1], r"module gives \[5, 12\] for a row; it must give flat logits: add"),
]


def test_other_modules_are_refused_and_let_go():
    before = doorstep.live_counts()
    for make, message in REFUSED:
        argument = None if message.startswith("count") else "module"
        refuses(f"^{message}", lambda make=make: doorstep.load_policy(make()), argument=argument)
    assert doorstep.live_counts() == before
    for sizes in ((4, 8, 5), (8, 4, 5, 2), (20,)):
        refuses(r"^heads is .* with 4, 8, 5, 2 outputs", Heads, [nn.Linear(8, size) for size in sizes])
    refuses(r"^num_features is 0; it must be an integer, 1 to", Branch, 0, slice(0, 1), nn.Identity())
    for part in (32, slice(32, 95), slice(32, 32), slice(None, 32), slice(0, 90, 2)):
        refuses(r"^part is .*; it must be a slice\(first, end\) of 0 to 94", Branch, 94, part, nn.Identity())


# ---- What a module computes


@contextmanager
def global_hook(change, *, before=False):
    """A hook of all modules."""
    of_all = nn.modules.module
    register = of_all.register_module_forward_pre_hook if before else of_all.register_module_forward_hook
    handle = register(change)
    try:
        yield
    finally:
        handle.remove()


def raises(*arguments):
    raise ValueError("not today")


def nested():
    body = nn.Sequential(nn.Sequential(nn.Linear(NUM_INPUTS, 12), nn.LayerNorm(12)), nn.GELU())
    arranged = [nn.Unflatten(1, (1, 12)), nn.Conv1d(1, 2, 3, padding=1), attention(), encoder_layer(), nn.Flatten()]
    return [body, *arranged, nn.GRU(24, 8, num_layers=2), Heads(nn.Linear(8, size) for size in doorstep.ACTIONS)]


def on(kind, change):
    return lambda module, inputs, outputs: change(outputs) if type(module) is kind else None


def larger(returned):
    """Also what a layer returns beside its outputs."""
    return (returned[0] * 1.1, returned[1]) if isinstance(returned, tuple) else returned * 1.1


HOOKS = [
    (on(nn.Linear, lambda values: values + 0.01), r"module\[0\]\.0\.0 computes .* a Linear with its tensors: its"),
    (on(nn.LayerNorm, lambda values: values[:, :5]), r"module\[0\]\.0\.1 .* it returns \[8, 5\] for \[8, 12\]"),
    (on(nn.GELU, lambda values: (values,)), r"module\[0\]\.1 .* it returns a tuple for \[8, 12\]"),
    (on(nn.Conv1d, larger), r"module\[2\] .* a Conv1d with its tensors: its"),
    (on(nn.MultiheadAttention, larger), r"module\[3\] .* a MultiheadAttention with its tensors: its"),
    (on(nn.TransformerEncoderLayer, larger), r"module\[4\] .* a TransformerEncoderLayer with its tensors: its"),
    (on(nn.GRU, larger), r"module\[6\] .* a GRU with its tensors: its"),
    (on(Heads, lambda values: values.flip(-1)), r"module\[7\] .* a Heads with its tensors"),
    (on(nn.Sequential, lambda values: values * torch.nan), r"module\[0\] .* a Sequential .* differ by up to nan"),
    (raises, r"module\[0\]\.0\.0 .* it raises ValueError: not today"),
    (None, r"module\[0\]\.0\.0 computes something else"),  # what it gets is compared, too
]


def test_a_module_that_computes_something_else_is_refused(monkeypatch):
    modules = nested()
    clamp = global_hook(lambda module, inputs: (inputs[0].clamp(-1, 1),), before=True)
    for hook, message in HOOKS:
        with global_hook(hook) if hook else clamp, pytest.raises(doorstep.ArgumentError, match=f"^{message}"):
            doorstep.load_policy(modules)
        doorstep.load_policy(modules)
    monkeypatch.setattr(nn.Tanh, "forward", lambda self, values: values.clamp(-1, 1))
    refuses(r"^module\.1 computes something else than a Tanh", doorstep.load_policy, mlp(8))


def test_a_module_is_left_as_it_was():
    """Also its mode, in which parts may differ: dropout would make the comparison fail. Hooks that change nothing are
    no reason to refuse it."""
    frozen = nn.Sequential(nn.Linear(8, 8).eval(), nn.Dropout(0.5))
    modules = [nn.LSTM(NUM_INPUTS, 8, num_layers=2, dropout=0.5).train(), nn.ReLU(inplace=True).eval(), frozen, LAST]
    before = [part.training for module in modules for part in module.modules()]
    assert {True, False} == set(before)
    state, seen = torch.get_rng_state(), []
    with global_hook(lambda module, inputs, outputs: seen.append(module.training)):
        doorstep.load_policy(modules)
    assert seen
    assert not any(seen)
    assert [part.training for module in modules for part in module.modules()] == before
    assert all(parameter.grad is None for module in modules for parameter in module.parameters())
    assert (torch.get_rng_state() == state).all()


def test_weights_do_not_matter():
    for value in (torch.nan, torch.inf, 1e30):
        net = mlp(8, 8)
        for parameter in net.parameters():
            nn.init.constant_(parameter, value)
        doorstep.load_policy(net)


# ---- A logit for the number of each action


def test_a_network_of_320_logits_chooses_the_first_of_the_largest_and_plays():
    net = nn.Sequential(nn.Linear(NUM_INPUTS, 16), nn.Dropout(0.5), nn.Linear(16, 320)).train()
    policy = pickle.loads(pickle.dumps(doorstep.load_policy(net)))
    shared = doorstep.load_policy(net)
    rows = np.random.default_rng(1).normal(size=(3, 5, NUM_INPUTS)).astype(np.float32)
    with torch.no_grad():
        expected = net.eval()(torch.from_numpy(rows)).argmax(-1).numpy()
    net.train()
    for each in (policy, shared):
        actions = each(rows)
        assert (actions.dtype, actions.shape) == (np.int32, (3, 5, 4))
        np.testing.assert_array_equal(np.ravel_multi_index(np.moveaxis(actions, -1, 0), doorstep.ACTIONS), expected)
    with torch.no_grad():
        net[-1].weight.zero_()
        net[-1].bias.copy_(torch.arange(320) // 7 == 2)  # the largest are 14 to 20
    assert (shared(rows) == np.unravel_index(14, doorstep.ACTIONS)).all()  # the module's weights are its own
    assert net.training
    with doorstep.Simulator(3, action_check="raise") as sim:
        for _ in range(3):
            sim.actions = policy(sim.observations)
            sim.step()


def test_what_networks_of_320_logits_cannot_do_is_refused():
    net = nn.Linear(NUM_INPUTS, 320)
    for load, message in (
        (lambda: doorstep.load_policy(net, sampling=SamplingParams()), "must be None or greedy"),
        (lambda: doorstep.load_policy([nn.LSTM(NUM_INPUTS, 8), nn.Linear(8, 320)]), "one without memory"),
        (lambda: doorstep.load_policy(nn.Linear(NUM_INPUTS, 321)), "19 logits .*, or 320, one for each action"),
        (lambda: doorstep.load_policy(net)(np.zeros((2, 7), np.float32)), "observations is .* of 94 numbers"),
        (lambda: stored_layers(net), "module gives 320 values; it must give 19"),
        (lambda: Heads(nn.Linear(4, 19)), "a list of .* modules with 4, 8, 5, 2 outputs, or of one with 19"),
    ):
        refuses(message, load)
