"""Modules that a policy cannot evaluate are refused by their path and type."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.policy.networks import NUM_INPUTS, NUM_LOGITS, mlp  # noqa: E402
from torch import nn  # noqa: E402

from doorstep.policy import Heads  # noqa: E402
from doorstep.policy.torch_policy import stored_layers  # noqa: E402


class Scaled(nn.Linear):  # type: ignore[misc]
    """A module that is no Linear, although it is one for isinstance()."""

    def forward(self, values: Any) -> Any:
        return 2 * super().forward(values)


def with_hook() -> nn.Module:
    net = mlp(8)
    net[1].register_forward_hook(lambda module, inputs, outputs: None)
    return net


def strided() -> nn.Module:
    net = nn.Linear(NUM_INPUTS, NUM_LOGITS)
    net.weight = nn.Parameter(torch.zeros(NUM_INPUTS, NUM_LOGITS).T)
    return net


def mixed() -> nn.Module:
    net = nn.Linear(NUM_INPUTS, NUM_LOGITS)
    net.bias = nn.Parameter(net.bias.bfloat16())
    return net


def changed(make: Callable[[], nn.Module], **attributes: Any) -> Callable[[], nn.Module]:
    """A module some of whose attributes were changed by hand."""

    def make_changed() -> nn.Module:
        module = make()
        for name, value in attributes.items():
            setattr(module, name, value)
        return module

    return make_changed


def resized(nbytes: int) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        net = mlp(8)
        net[2].bias.untyped_storage().resize_(nbytes)
        return net

    return make


def own_forward(index: int | None) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        net = mlp(8)
        module = net if index is None else net[index]
        module.forward = lambda values, plain=module.forward: 2 * plain(values)
        return net

    return make


def linear() -> nn.Module:
    return nn.Linear(NUM_INPUTS, NUM_LOGITS)


def lstm() -> nn.Module:
    return nn.LSTM(NUM_INPUTS, 8)


def no_parameter(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape))


LAST = nn.Linear(8, NUM_LOGITS)
IS = "a tensor of module is"
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "convolution": (lambda: nn.Sequential(mlp(8), nn.Conv3d(1, 1, 1)), r"module\.1 is a Conv3d; .*: Sequential, H"),
    "nested": (lambda: nn.Sequential(nn.Sequential(nn.Softmax(-1)), LAST), r"module\.0\.0 is a Softmax"),
    "list": (lambda: nn.ModuleList([nn.Linear(NUM_INPUTS, 8), nn.PReLU(), LAST]), r"module\[1\] is a PReLU"),
    "flattened rows": (lambda: nn.Sequential(nn.Flatten(0), mlp()), r"module\.0 computes something else than a Fl"),
    "early line": (lambda: nn.Sequential(mlp(), nn.Softplus(threshold=2)), r"module\.1 is linear from 2 on"),
    "mean square of a plane": (lambda: nn.Sequential(nn.RMSNorm((2, 47)), mlp()), r"module\.0 normalises over 2"),
    "derived": (lambda: Scaled(NUM_INPUTS, NUM_LOGITS), r"module is a Scaled"),
    "hook": (with_hook, r"module\.1 has hooks"),
    "bidirectional": (lambda: [nn.LSTM(NUM_INPUTS, 4, bidirectional=True), LAST], r"module\[0\] has two directions"),
    "projection": (lambda: [nn.LSTM(NUM_INPUTS, 9, proj_size=8), LAST], r"module\[0\] has a projection"),
    "plane": (lambda: nn.Sequential(nn.LayerNorm((2, 47)), mlp()), r"module\.0 normalises over 2 dimensions"),
    "double": (lambda: mlp(8).double(), r"a tensor of module\.0 is torch\.float64; it must be torch\.float32 or"),
    "half": (lambda: mlp(8).half(), r"a tensor of module\.0 is torch\.float16"),
    "meta": (lambda: mlp(8).to("meta"), r"a tensor of module\.0 is torch\.float32 on meta"),
    "strided": (strided, r"a tensor of module is not contiguous"),
    "mixed": (mixed, r"a tensor of module is torch\.float32 and torch\.bfloat16; it must be of one dtype"),
    "widths": (lambda: [nn.Linear(NUM_INPUTS, 7), nn.Tanh(), LAST], r"module\[2\] takes 8 values; .* gives 7"),
    "logits": (lambda: nn.Linear(NUM_INPUTS, 20), r"module gives 20 values; it must give 19 logits \(4 \+ 8"),
    "empty": (lambda: nn.Sequential(), r"module gives 0 values"),
    "own forward": (own_forward(1), r"module\.1 has a forward\(\) of its own in addition to that of Tanh"),
    "own forward of all": (own_forward(None), r"module has a forward\(\) of its own in addition to that of Sequential"),
    # what is read would not be there
    "in_features": (changed(linear, in_features=120), rf"{IS} weight \[19, 94\]; it must be \[19, 120\], as its sizes"),
    "out_features": (changed(linear, out_features=4), rf"{IS} weight \[19, 94\]; it must be \[4, 94\]"),
    "pruned": (changed(linear, weight=no_parameter(9, 94)), rf"{IS} weight \[9, 94\]; it must be \[19, 94\]"),
    "pruned bias": (changed(linear, bias=no_parameter(9)), rf"{IS} bias \[9\]; it must be \[19\]"),
    "flat": (changed(linear, weight=no_parameter(19 * 94)), rf"{IS} weight \[1786\]; it must be \[19, 94\]"),
    "norm": (
        lambda: nn.Sequential(changed(lambda: nn.LayerNorm(94), weight=no_parameter(93))(), mlp()),
        r"a tensor of module\.0 is weight \[93\]; it must be \[94\]",
    ),
    "hidden_size": (
        lambda: [changed(lstm, hidden_size=1 << 40)(), LAST],
        r"a tensor of module\[0\] \(layer 0\) is weight_ih_l0 \[32, 94\]; it must be \[4398046511104, 94\]",
    ),
    "pruned memory": (
        lambda: [changed(lstm, weight_hh_l0=no_parameter(32, 7))(), LAST],
        r"a tensor of module\[0\] \(layer 0\) is weight_hh_l0 \[32, 7\]; it must be \[32, 8\]",
    ),
    "more layers": (lambda: [changed(lstm, num_layers=2)(), LAST], r"module\[0\] \(layer 1\) has no weight_ih_l1"),
    "no layers": (lambda: [changed(lstm, num_layers=0)(), LAST], r"module\[0\] computes something else than a LSTM"),
    "no weight": (changed(linear, weight=None), "module has no weight"),
    "size": (changed(linear, in_features=94.0), r"module has a size of 94\.0, which is no integer"),
    "slope": (
        lambda: nn.Sequential(mlp(), changed(nn.LeakyReLU, negative_slope="steep")()),
        r"module\.1 cannot be read: could not convert string to float",
    ),
    "no memory": (resized(0), r"a tensor of module\.2 cannot be read: .* without memory"),
    "too little memory": (resized(8), r"a tensor of module\.2 cannot be read: .* a storage resized to 8"),
    "after heads": (
        lambda: nn.Sequential(Heads([nn.Linear(NUM_INPUTS, size) for size in doorstep.ACTIONS]), nn.Tanh()),
        r"module\.1 follows the heads",
    ),
    "derived head": (
        lambda: Heads([Scaled(NUM_INPUTS, size) for size in doorstep.ACTIONS]),
        r"module\.heads\.0 is a Scaled, but heads are Linear",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_modules_are_refused(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(doorstep.ArgumentError, match=f"^{message}") as raised:
        doorstep.load_policy(make())
    assert raised.value.argument == "module"


# ---- What a module computes


@contextmanager
def global_hook(change: Callable[..., Any], *, before: bool = False) -> Iterator[None]:
    """A hook of all modules."""
    of_all = nn.modules.module
    register = of_all.register_module_forward_pre_hook if before else of_all.register_module_forward_hook
    handle = register(change)
    try:
        yield
    finally:
        handle.remove()


def raises(*arguments: Any) -> None:
    raise ValueError("not today")


def nested() -> list[nn.Module]:
    heads = Heads(nn.Linear(8, size) for size in doorstep.ACTIONS)
    body = nn.Sequential(nn.Sequential(nn.Linear(NUM_INPUTS, 12), nn.LayerNorm(12)), nn.GELU())
    return [body, nn.GRU(12, 8, num_layers=2), heads]


def on(kind: type, change: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda module, inputs, outputs: change(outputs) if type(module) is kind else None


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        (on(nn.Linear, lambda values: values + 0.01), r"module\[0\]\.0\.0 computes .* a Linear with its tensors: its"),
        (on(nn.LayerNorm, lambda values: values[:, :5]), r"module\[0\]\.0\.1 .* it returns \[8, 5\] for \[8, 12\]"),
        (on(nn.GELU, lambda values: (values,)), r"module\[0\]\.1 .* it returns a tuple for \[8, 12\]"),
        (on(nn.GRU, lambda returned: (returned[0] * 1.1, returned[1])), r"module\[1\] .* a GRU with its tensors: its"),
        (on(Heads, lambda values: values.flip(-1)), r"module\[2\] .* a Heads with its tensors"),
        (on(nn.Sequential, lambda values: values * torch.nan), r"module\[0\] .* a Sequential .* differ by up to nan"),
        (raises, r"module\[0\]\.0\.0 .* it raises ValueError: not today"),
    ],
)
def test_a_module_that_computes_something_else_is_refused(hook: Callable[..., Any], message: str) -> None:
    modules = nested()
    with global_hook(hook), pytest.raises(doorstep.ArgumentError, match=f"^{message}") as raised:
        doorstep.load_policy(modules)
    assert raised.value.argument == "module"
    doorstep.load_policy(modules)


def test_what_a_module_gets_is_compared_too() -> None:
    clamp = global_hook(lambda module, inputs: (inputs[0].clamp(-1, 1),), before=True)
    with clamp, pytest.raises(doorstep.ArgumentError, match=r"^module\[0\]\.0\.0 computes something else"):
        doorstep.load_policy(nested())


def test_a_class_whose_forward_was_replaced_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    net = mlp(8)
    monkeypatch.setattr(nn.Tanh, "forward", lambda self, values: values.clamp(-1, 1))
    with pytest.raises(doorstep.ArgumentError, match=r"^module\.1 computes something else than a Tanh"):
        doorstep.load_policy(net)


def test_a_module_is_left_as_it_was() -> None:
    """Also its mode: dropout would make the comparison fail. Hooks that change nothing are no reason to refuse it."""
    modules = [nn.LSTM(NUM_INPUTS, 8, num_layers=2, dropout=0.5).train(), nn.ReLU(inplace=True).eval(), LAST]
    state, seen = torch.get_rng_state(), []
    with global_hook(lambda module, inputs, outputs: seen.append((type(module), module.training))):
        doorstep.load_policy(modules)
    assert seen == [(nn.LSTM, False), (nn.ReLU, False), (nn.Linear, False)]
    assert [module.training for module in modules] == [True, False, True]
    assert all(parameter.grad is None for module in modules for parameter in module.parameters())
    assert (torch.get_rng_state() == state).all()


@pytest.mark.parametrize("value", [torch.nan, torch.inf, 1e30])
def test_weights_may_be_anything(value: float) -> None:
    net = mlp(8, 8)
    for parameter in net.parameters():
        nn.init.constant_(parameter, value)
    doorstep.load_policy(net)


def test_settings_of_pytorch_do_not_matter() -> None:
    net = mlp(32).bfloat16()
    with torch.autocast("cpu", torch.bfloat16), torch.device("meta"):
        doorstep.load_policy(net)
        doorstep.load_policy(net.float())


# ---- Numbers of layers


def test_heads_have_the_sizes_of_the_components() -> None:
    for sizes in ((4, 8, 5), (8, 4, 5, 2), (20,)):
        with pytest.raises(doorstep.ArgumentError, match=r"^heads is .* with 4, 8, 5, 2 outputs"):
            Heads([nn.Linear(8, size) for size in sizes])


def test_too_many_layers_are_refused() -> None:
    with pytest.raises(doorstep.ArgumentError, match="count is 301; it must be 1 to 256"):
        doorstep.load_policy([*[nn.Linear(NUM_INPUTS, NUM_INPUTS)] * 300, nn.Linear(NUM_INPUTS, NUM_LOGITS)])


def test_pytorch_is_imported_only_to_read_a_module(run_new_python: Callable[..., str]) -> None:
    code = """
import sys, doorstep, doorstep.policy
doorstep.Policy, doorstep.policy.SamplingParams()
print("torch" in sys.modules)
"""
    assert run_new_python(code) == "False\n"


def test_a_value_head_that_computes_something_else_is_refused() -> None:
    value = nn.Linear(NUM_INPUTS, 1)
    value.forward = lambda inputs: inputs[..., :1]
    with pytest.raises(doorstep.ArgumentError, match=r"module.value"):
        doorstep.load_policy(Heads([nn.Linear(NUM_INPUTS, sum(doorstep.ACTIONS))], value=value))


# ---- A logit for the number of each action


def test_a_network_of_320_logits_chooses_the_first_of_the_largest() -> None:
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


def test_a_network_of_320_logits_plays() -> None:
    policy = doorstep.load_policy(nn.Linear(NUM_INPUTS, 320))
    with doorstep.Simulator(3, action_check="raise") as sim:
        for _ in range(3):
            sim.actions = policy(sim.observations)
            sim.step()


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda net: doorstep.load_policy(net, sampling=doorstep.policy.SamplingParams()), "must be None or greedy"),
        (lambda net: doorstep.load_policy([nn.LSTM(NUM_INPUTS, 8), nn.Linear(8, 320)]), "one without memory"),
        (lambda net: doorstep.load_policy(nn.Linear(NUM_INPUTS, 321)), "19 logits .*, or 320, one for each action"),
        (lambda net: doorstep.load_policy(net)(np.zeros((2, 7), np.float32)), "observations is .* of 94 numbers"),
        (lambda net: stored_layers(net), "module gives 320 values; it must give 19"),
        (lambda net: Heads(nn.Linear(4, 19)), "a list of .* modules with 4, 8, 5, 2 outputs, or of one with 19"),
    ],
)
def test_what_networks_of_320_logits_cannot_do_is_refused(load: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=message):
        load(nn.Linear(NUM_INPUTS, 320))
