"""Weights are the module's own; native objects and tensors live as long as something needs them."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep

torch = pytest.importorskip("torch")

from tests.leaks import resident_bytes  # noqa: E402
from tests.pkg.policy.networks import NUM_INPUTS, NUM_LOGITS, attention, logits_of, mlp, observe  # noqa: E402
from torch import nn  # noqa: E402

from doorstep.policy import Heads, SamplingParams  # noqa: E402


def test_a_step_of_an_optimiser_and_loaded_weights_are_seen_and_a_frozen_policy_keeps_its_own():
    for dtype in (torch.float32, torch.bfloat16):
        net, observations = mlp(32, 7).to(dtype), observe(8, 2)
        net[4].float()  # arrays of several types, aligned to their elements in the copy
        policy = doorstep.load_policy(net)
        frozen, before = policy.freeze(), policy.forward(observations)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
        net[4](net[:4](observations.to(dtype)).float()).square().mean().backward()
        optimizer.step()
        expected = logits_of(copy.deepcopy(net).float(), observations)
        assert np.abs(expected - before).max() > 0.01
        np.testing.assert_allclose(policy.forward(observations), expected, atol=1e-5)
        net.load_state_dict({name: torch.zeros_like(value) for name, value in net.state_dict().items()})
        assert (policy.forward(observations) == 0).all()
        assert (frozen.forward(observations) == before).all()
        del policy
        net.share_memory()
        assert (frozen.freeze().forward(observations) == before).all()


def delete(net):
    del net[2].weight


MOVES = {
    "share_memory": lambda net: net.share_memory(),
    "free": lambda net: net[2].weight.untyped_storage().resize_(0),
    "shrink": lambda net: net[2].weight.untyped_storage().resize_(8),
    "grow": lambda net: net[2].weight.untyped_storage().resize_(1 << 20),
    "assign": lambda net: net.load_state_dict({k: v.clone() for k, v in net.state_dict().items()}, assign=True),
    "data": lambda net: setattr(net[2].weight, "data", torch.zeros_like(net[2].weight)),
    "dtype": lambda net: net.bfloat16(),
    "parameter": lambda net: setattr(net[2], "weight", nn.Parameter(net[2].weight.detach().clone())),
    "delete": delete,
    "none": lambda net: setattr(net[2], "weight", None),
}


@pytest.mark.parametrize("name", MOVES)
def test_weights_that_are_elsewhere_are_not_read(name):
    """Their memory may be gone: large arrays are mapped by themselves, so that reading them would crash."""
    for keeps_module in (True, False):
        net, observations = mlp(2048), observe(1, 1)
        policy = doorstep.load_policy(net)
        policy.act(observations)  # the next call is prepared
        MOVES[name](net)
        if not keeps_module:
            del net
        message = r"^module\.[02]\.(weight|bias) is no longer what the"
        for call in (policy.act, policy.forward, lambda _, policy=policy: policy.freeze()):
            refuses(message, call, observations, error=doorstep.StateError, argument="module")


def test_weights_of_every_kind_are_named():
    arranged = [nn.Unflatten(1, (2, 4)), attention(4, 2), nn.Flatten(), nn.GRUCell(8, 3), nn.Linear(3, 19)]
    net = nn.ModuleList([nn.LSTM(NUM_INPUTS, 8, num_layers=2), *arranged])
    for name, parameter in net.named_parameters():
        policy, data = doorstep.load_policy(net), parameter.data
        parameter.data = data.clone()
        index, _, key = name.partition(".")
        refuses(rf"^module\[{index}\]\.{key} is no longer", policy.forward, observe(1), error=doorstep.StateError)
        parameter.data = data  # back where it was
        before = policy.forward(observe(1), np.ones((1, policy.state_size), np.float32))
        data.add_(0.1 * torch.randn_like(data))
        assert (policy.forward(observe(1), np.ones((1, policy.state_size), np.float32)) != before).any()


def test_layers_outlive_their_policy_and_memory_of_both_and_of_weights_is_freed():
    """Weights by Python's main thread, soon after the last native object has let go of them."""
    array = np.zeros((NUM_LOGITS, NUM_INPUTS), np.float32)
    net, alive = nn.Linear(NUM_INPUTS, NUM_LOGITS), weakref.ref(array)
    net.weight = nn.Parameter(torch.from_numpy(array))
    policy = doorstep.load_policy(net)
    layer = policy.layers[0]
    assert (repr(layer), repr(policy)) == ("PolicyLayer(linear, 94 -> 19)", "Policy(94 inputs, 1 layers)")
    handle, policies = layer.native_handle, weakref.WeakSet([policy])
    del net, array, policy
    assert not policies
    gc.collect()
    assert alive() is not None
    assert layer.native_handle == handle
    counts = doorstep.live_counts()
    assert (counts["layer"], counts["policy"]) == (1, 0)
    del layer
    gc.collect()
    assert alive() is None

    wide, resident = nn.Sequential(nn.Linear(NUM_INPUTS, 60000), nn.Linear(60000, NUM_LOGITS)), []
    for _ in range(8):
        doorstep.load_policy(wide).forward(observe(64, 1))  # beside the weights, as many for each of some rows
        resident.append(resident_bytes())
    assert resident[7] - resident[2] < 20e6


def test_policies_are_made_by_load_policy():
    refuses(r"policies are made by doorstep\.load_policy\(\)", doorstep.Policy, 3, None, error=TypeError)


def recurrent():
    return nn.Sequential(nn.LSTM(NUM_INPUTS, 8), Heads([nn.Linear(8, NUM_LOGITS)], nn.Linear(8, 1)))


def test_copies_choose_the_same_actions_whatever_becomes_of_the_original():
    ways = (copy.copy, copy.deepcopy, lambda policy: pickle.loads(pickle.dumps(policy)))
    for made in ("trained", mlp(16), mlp(16).bfloat16(), recurrent()):
        policy = doorstep.load_policy(made, sampling=SamplingParams(temperature=0.7, top_p=0.9))
        chosen_by(policy, observe(8, 2))
        others = [way(policy) for way in ways]
        logits, expected = policy.forward(observe(8, 2)), [chosen_by(policy, observe(8, 2)) for _ in range(3)]
        names = ("sampling", "observations", "precision", "device", "state_size", "has_value")
        attributes = [getattr(policy, name) for name in names]
        if isinstance(made, nn.Module):
            with torch.no_grad():
                for parameter in made.parameters():
                    parameter.zero_()
        del policy
        gc.collect()
        for other in others:
            assert [getattr(other, name) for name in names] == attributes
            np.testing.assert_array_equal(other.forward(observe(8, 2)), logits)
            np.testing.assert_array_equal([chosen_by(other, observe(8, 2)) for _ in range(3)], expected)


def chosen_by(policy, observations):
    chosen = policy(observations)
    return chosen[0] if policy.state_size else chosen
