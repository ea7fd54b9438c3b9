"""Weights are the module's own; native objects and tensors live as long as something needs them."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import pytest

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.policy.networks import NUM_INPUTS, NUM_LOGITS, logits_of, mlp, observe  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.utils import parameters_to_vector, vector_to_parameters  # noqa: E402


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_step_of_an_optimiser_is_seen(dtype: Any) -> None:
    net, observations = mlp(32).to(dtype), observe(8, 2)
    policy = doorstep.load_policy(net)
    before = policy.forward(observations)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    net(observations.to(dtype)).square().mean().backward()
    optimizer.step()
    after = policy.forward(observations)
    assert np.abs(after - before).max() > 0.01
    np.testing.assert_allclose(after, logits_of(net.float(), observations), atol=1e-5)


def test_loaded_weights_are_seen() -> None:
    net, other, observations = mlp(32), mlp(32), observe(8, 2)
    policy = doorstep.load_policy(net)
    net.load_state_dict(other.state_dict())
    np.testing.assert_allclose(policy.forward(observations), logits_of(other, observations), atol=1e-5)


def test_a_frozen_policy_keeps_the_weights_it_was_made_with() -> None:
    net, observations = mlp(32), observe(8, 2)
    policy = doorstep.load_policy(net)
    frozen = policy.freeze()
    before = policy.forward(observations)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
    assert (policy.forward(observations) == 0).all()
    assert (frozen.forward(observations) == before).all()
    del policy
    assert (frozen.freeze().forward(observations) == before).all()


def test_a_policy_keeps_the_weights_of_a_module_that_has_gone() -> None:
    net, observations = mlp(32), observe(8, 2)
    expected, module = logits_of(net, observations), weakref.ref(net)
    policy = doorstep.load_policy(net)
    del net
    gc.collect()
    assert module() is None
    np.testing.assert_allclose(policy.forward(observations), expected, atol=1e-5)


def delete(net: nn.Module) -> None:
    del net[2].weight


def pickle_for_another_process(net: nn.Module) -> None:
    """As a queue of multiprocessing does, which shares the memory of what is put into it."""
    ForkingPickler.dumps(net.state_dict())


MOVES: dict[str, Callable[[nn.Module], Any]] = {
    "share_memory": lambda net: net.share_memory(),
    "queue": pickle_for_another_process,
    "free": lambda net: net[2].weight.untyped_storage().resize_(0),
    "shrink": lambda net: net[2].weight.untyped_storage().resize_(8),
    "grow": lambda net: net[2].weight.untyped_storage().resize_(1 << 20),
    "vector": lambda net: vector_to_parameters(parameters_to_vector(net.parameters()), net.parameters()),
    "assign": lambda net: net.load_state_dict({k: v.clone() for k, v in net.state_dict().items()}, assign=True),
    "data": lambda net: setattr(net[2].weight, "data", torch.zeros_like(net[2].weight)),
    "dtype": lambda net: net.bfloat16(),
    "parameter": lambda net: setattr(net[2], "weight", nn.Parameter(net[2].weight.detach().clone())),
    "delete": delete,
    "none": lambda net: setattr(net[2], "weight", None),
}


@pytest.mark.parametrize("keeps_module", [True, False])
@pytest.mark.parametrize("name", MOVES)
def test_weights_that_are_elsewhere_are_not_read(name: str, keeps_module: bool) -> None:
    """Their memory may be gone: large arrays are mapped by themselves, so that reading them would crash."""
    net, observations = mlp(2048), observe(1, 1)
    policy = doorstep.load_policy(net)
    policy.act(observations)
    MOVES[name](net)
    if not keeps_module:
        del net
    for call in (policy.act, policy.forward, lambda _: policy.freeze()):
        with pytest.raises(doorstep.StateError, match=r"^module\.[02]\.(weight|bias) is no longer what the") as raised:
            call(observations)
        assert raised.value.argument == "module"


def test_weights_of_every_kind_are_named() -> None:
    net = nn.ModuleList([nn.LSTM(NUM_INPUTS, 8, num_layers=2), nn.Linear(8, 4), nn.GRUCell(4, 3), nn.Linear(3, 19)])
    for name, parameter in net.named_parameters():
        policy, data = doorstep.load_policy(net), parameter.data
        parameter.data = data.clone()
        index, _, key = name.partition(".")
        with pytest.raises(doorstep.StateError, match=rf"^module\[{index}\]\.{key} is no longer"):
            policy.forward(observe(1))
        parameter.data = data  # back where it was
        policy.forward(observe(1))


def test_a_frozen_policy_is_free_of_its_module() -> None:
    net, observations = mlp(32, 7).bfloat16(), observe(8, 2)
    net[4].float()  # arrays of several types, aligned to their elements in the copy
    policy = doorstep.load_policy(net)
    expected, frozen = policy.forward(observations), policy.freeze()
    net.share_memory()
    assert (frozen.forward(observations) == expected).all()
    assert (frozen.freeze().forward(observations) == expected).all()


def test_layers_outlive_their_policy() -> None:
    policy = doorstep.load_policy(mlp(32))
    handles = [layer.native_handle for layer in policy.layers]
    assert len(set(handles)) == 3
    assert policy.native_handle > 0
    layer = policy.layers[0]
    assert repr(layer) == "PolicyLayer(linear, 94 -> 32)"
    assert repr(policy) == "Policy(94 inputs, 3 layers)"
    del policy
    gc.collect()
    assert layer.native_handle == handles[0]
    counts = doorstep.live_counts()
    assert (counts["layer"], counts["policy"]) == (1, 0)


def test_nothing_stays_alive() -> None:
    policies: weakref.WeakSet[doorstep.Policy] = weakref.WeakSet()
    for _ in range(5):
        net = mlp(32)
        policy = doorstep.load_policy(net)
        policy.act(observe(4, 2))
        policy.freeze().forward(observe(4, 2))
        policies.add(policy)
    assert len(policies) == 1
    del net, policy
    gc.collect()
    assert not policies
    counts = doorstep.live_counts()
    assert (counts["layer"], counts["policy"]) == (0, 0)


def test_memory_of_weights_is_freed() -> None:
    """By Python's main thread, soon after the last native object has let go of it."""
    array = np.zeros((NUM_LOGITS, NUM_INPUTS), np.float32)
    net, alive = nn.Linear(NUM_INPUTS, NUM_LOGITS), weakref.ref(array)
    net.weight = nn.Parameter(torch.from_numpy(array))
    policy = doorstep.load_policy(net)
    layer = policy.layers[0]
    del net, array
    gc.collect()
    assert alive() is not None
    del policy
    gc.collect()
    assert alive() is not None
    del layer
    gc.collect()
    assert alive() is None


def test_a_refused_module_is_let_go() -> None:
    net = nn.Sequential(nn.Linear(NUM_INPUTS, 8), nn.Linear(8, 18))
    with pytest.raises(doorstep.ArgumentError):
        doorstep.load_policy(net)
    counts = doorstep.live_counts()
    assert (counts["layer"], counts["policy"]) == (0, 0)


def test_policies_are_made_by_load_policy() -> None:
    with pytest.raises(TypeError, match=r"policies are made by doorstep\.load_policy\(\)"):
        doorstep.Policy(3, None)  # type: ignore[arg-type]


def recurrent() -> nn.Module:
    return nn.Sequential(nn.LSTM(NUM_INPUTS, 8), doorstep.policy.Heads([nn.Linear(8, NUM_LOGITS)], nn.Linear(8, 1)))


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda policy: pickle.loads(pickle.dumps(policy)),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize(
    "make", [lambda: "trained", lambda: "general", lambda: mlp(16), lambda: mlp(16).bfloat16(), recurrent]
)
def test_copies_choose_the_same_actions_whatever_becomes_of_the_original(make: Any, way: str) -> None:
    made, sampling = make(), doorstep.policy.SamplingParams(temperature=0.7, top_p=0.9)
    policy = doorstep.load_policy(made, sampling=sampling)
    policy(observe(8, 2))
    other = COPIES[way](policy)
    for attribute in ("sampling", "observations", "precision", "device", "state_size", "has_value"):
        assert getattr(other, attribute) == getattr(policy, attribute)
    observations = observe(8, 2, seed=1)
    logits = other.forward(observations)
    np.testing.assert_array_equal(logits, policy.forward(observations))
    for _ in range(3):
        np.testing.assert_array_equal(actions_of(other, observations), actions_of(policy, observations))
    if isinstance(made, nn.Module):
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.zero_()
    del policy, made
    gc.collect()
    np.testing.assert_array_equal(other.forward(observations), logits)


def actions_of(policy: Any, observations: Any) -> Any:
    chosen = policy(observations)
    return chosen[0] if policy.state_size else chosen
