"""Policies of modules of PyTorch, whose weights they read in place, and layers for files, with copies of them."""

from __future__ import annotations

from typing import Any

from doorstep._arguments import refuse
from doorstep._native.policies import PolicyHandle
from doorstep.policy.files import StoredLayer
from doorstep.policy.policy import Policy
from doorstep.policy.sampling import SamplingParams
from doorstep.policy.shapes import array_shapes
from doorstep.policy.torch_comparison import compare
from doorstep.policy.torch_layers import LayerSpec
from doorstep.policy.torch_modules import device_of, read_layers
from doorstep.policy.torch_weights import ModuleWeights


def policy_of(module: Any, sampling: SamplingParams) -> Policy:
    """The policy of a module, or of several that are evaluated one after the other, as `load_policy()` says.

    Raises:
        ArgumentError: it cannot be read, or computes something else than what was read.
    """
    module = _parts_that_act(module)
    layers = read_layers(module)
    device, weights = device_of(layers), ModuleWeights(layers)
    handle = PolicyHandle.create([layer.create(device) for layer in layers], sum(layer.is_head for layer in layers))
    compare(module, layers)
    return Policy(handle, sampling, weights=weights)


def stored_layers(module: Any) -> list[StoredLayer]:
    """The layers of a module, or of several, as a file holds them: with arrays of its float32 tensors on the CPU.

    Raises:
        ArgumentError: it cannot be read.
    """
    return [_stored(layer) for layer in read_layers(module)]


def _stored(layer: LayerSpec) -> StoredLayer:
    numbers = layer.kind, layer.num_inputs, layer.num_outputs
    shapes = array_shapes(*numbers, layer.shape)
    arrays = {name: tensor.detach().numpy().reshape(shapes[name]) for name, tensor in layer.tensors.items()}
    return StoredLayer(*numbers, layer.parameter, arrays, layer.shape)


def _parts_that_act(module: Any) -> Any:
    """Of a policy of Stable-Baselines3 the modules that give logits; others as they are."""
    body, head = getattr(module, "mlp_extractor", None), getattr(module, "action_net", None)
    if body is None or head is None:
        return module
    extractor = type(module.features_extractor).__name__
    if extractor != "FlattenExtractor":
        hint = "train with observations=doorstep.OBSERVATIONS"
        refuse("module", "a policy of flat observations", f"one with a {extractor}", hint)
    return [body.policy_net, head]
