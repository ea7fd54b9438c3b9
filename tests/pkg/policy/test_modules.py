"""Modules that a policy cannot evaluate are refused by their path and type."""

import pickle
from contextlib import contextmanager

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.policy.networks import NUM_INPUTS, NUM_LOGITS, mlp  # noqa: E402
from torch import nn  # noqa: E402

from doorstep.policy import Heads, SamplingParams  # noqa: E402
from doorstep.policy.torch_policy import stored_layers  # noqa: E402


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


def zeros(*shape, dtype=torch.float32):
    return nn.Parameter(torch.zeros(shape, dtype=dtype))


LAST = nn.Linear(8, NUM_LOGITS)
IS = "a tensor of module is"
ACTOR = [nn.Linear(NUM_INPUTS, size) for size in doorstep.ACTIONS]
REFUSED = [
    (lambda: nn.Sequential(mlp(8), nn.Conv3d(1, 1, 1)), r"module\.1 is a Conv3d; .*: Sequential, H"),
    (lambda: nn.Sequential(nn.Sequential(nn.Softmax(-1)), LAST), r"module\.0\.0 is a Softmax"),
    (lambda: nn.ModuleList([nn.Linear(NUM_INPUTS, 8), nn.PReLU(), LAST]), r"module\[1\] is a PReLU"),
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
    (lambda: nn.Sequential(), r"module gives 0 values"),
    (lambda: own_forward(net := mlp(8), net[1]), r"module\.1 has a forward\(\) of its own in addition to that of Tanh"),
    (lambda: own_forward(net := mlp(8), net), r"module has a forward\(\) of its own in addition to that of Sequential"),
    # what is read would not be there
    (lambda: linear(in_features=120), rf"{IS} weight \[19, 94\]; it must be \[19, 120\], as its sizes"),
    (lambda: linear(bias=zeros(9)), rf"{IS} bias \[9\]; it must be \[19\]"),
    (lambda: linear(weight=zeros(19 * 94)), rf"{IS} weight \[1786\]; it must be \[19, 94\]"),
    (lambda: nn.Sequential(changed(nn.LayerNorm(94), weight=zeros(93)), mlp()), r".*\.0 is weight \[93\]; .* \[94\]"),
    (lambda: lstm(hidden_size=1 << 40), r".* \(layer 0\) is weight_ih_l0 \[32, 94\]; it must be \[4398046511104, 94\]"),
    (lambda: lstm(weight_hh_l0=zeros(32, 7)), r".* \(layer 0\) is weight_hh_l0 \[32, 7\]; it must be \[32, 8\]"),
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
]


def test_other_modules_are_refused_and_let_go():
    before = doorstep.live_counts()
    for make, message in REFUSED:
        argument = None if message.startswith("count") else "module"
        refuses(f"^{message}", lambda make=make: doorstep.load_policy(make()), argument=argument)
    assert doorstep.live_counts() == before
    for sizes in ((4, 8, 5), (8, 4, 5, 2), (20,)):
        refuses(r"^heads is .* with 4, 8, 5, 2 outputs", Heads, [nn.Linear(8, size) for size in sizes])


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
    heads = Heads(nn.Linear(8, size) for size in doorstep.ACTIONS)
    body = nn.Sequential(nn.Sequential(nn.Linear(NUM_INPUTS, 12), nn.LayerNorm(12)), nn.GELU())
    return [body, nn.GRU(12, 8, num_layers=2), heads]


def on(kind, change):
    return lambda module, inputs, outputs: change(outputs) if type(module) is kind else None


HOOKS = [
    (on(nn.Linear, lambda values: values + 0.01), r"module\[0\]\.0\.0 computes .* a Linear with its tensors: its"),
    (on(nn.LayerNorm, lambda values: values[:, :5]), r"module\[0\]\.0\.1 .* it returns \[8, 5\] for \[8, 12\]"),
    (on(nn.GELU, lambda values: (values,)), r"module\[0\]\.1 .* it returns a tuple for \[8, 12\]"),
    (on(nn.GRU, lambda returned: (returned[0] * 1.1, returned[1])), r"module\[1\] .* a GRU with its tensors: its"),
    (on(Heads, lambda values: values.flip(-1)), r"module\[2\] .* a Heads with its tensors"),
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


def test_weights_and_settings_of_pytorch_do_not_matter():
    for value in (torch.nan, torch.inf, 1e30):
        net = mlp(8, 8)
        for parameter in net.parameters():
            nn.init.constant_(parameter, value)
        doorstep.load_policy(net)
    net = mlp(32).bfloat16()
    with torch.autocast("cpu", torch.bfloat16), torch.device("meta"):
        doorstep.load_policy(net)
        doorstep.load_policy(net.float())


def test_pytorch_is_imported_only_to_read_a_module(run_new_python):
    code = """
import sys, doorstep, doorstep.policy
doorstep.Policy, doorstep.policy.SamplingParams()
print("torch" in sys.modules)
"""
    assert run_new_python(code) == "False\n"


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
