"""Policies of modules of PyTorch, whose weights they read in place, and layers for files, with copies of them."""

from __future__ import annotations

import copy
from typing import Any, final

import numpy as np
import torch

from doorstep._action_forms import ACTION_TABLE, NUM_ACTIONS
from doorstep._arguments import refuse
from doorstep._native._generated import LayerKind
from doorstep._native.policies import PolicyHandle
from doorstep.policy.files import StoredLayer
from doorstep.policy.policy import Policy
from doorstep.policy.sampling import SamplingParams
from doorstep.policy.shapes import array_shapes
from doorstep.policy.torch_comparison import compare
from doorstep.policy.torch_layers import LayerSpec
from doorstep.policy.torch_modules import device_of, named_modules, read_layers, width_of
from doorstep.policy.torch_weights import ModuleWeights
from doorstep.tensor import Tensor


def policy_of(module: Any, sampling: SamplingParams | None) -> Policy | NumberPolicy:
    """The policy of a module, or of several that are evaluated one after the other, as `load_policy()` says.

    Raises:
        ArgumentError: it cannot be read, or computes something else than what was read.
    """
    module = _parts_that_act(module)
    layers = read_layers(module, may_number=True)
    if width_of(layers) == NUM_ACTIONS:
        compare(module, layers)
        return NumberPolicy(module, layers, sampling)
    device, weights = device_of(layers), ModuleWeights(layers)
    handle = PolicyHandle.create([layer.create(device) for layer in layers], sum(layer.is_head for layer in layers))
    compare(module, layers)
    return Policy(handle, sampling or SamplingParams(), weights=weights)


@final
class NumberPolicy:
    """A network with a logit for the number of each action. It chooses the largest, the first of equal ones."""

    def __init__(self, module: Any, layers: list[LayerSpec], sampling: SamplingParams | None) -> None:
        if sampling is not None and sampling.native_row()[0] > 0:
            refuse("sampling", f"None or greedy, as the module gives {NUM_ACTIONS} logits", sampling)
        if any(layer.kind in (LayerKind.LSTM, LayerKind.GRU) for layer in layers):
            refuse("module", f"one without memory, as it gives {NUM_ACTIONS} logits", module)
        self._num_inputs = next(layer.num_inputs for layer in layers if layer.num_inputs)
        # In evaluation mode for itself alone: it has the module's parameters, and not its modes.
        whole = torch.nn.Sequential(*(one for _, one in named_modules(module)))
        self._module = copy.deepcopy(whole, {id(weights): weights for weights in whole.parameters()}).eval()
        self._actions = torch.from_numpy(np.array(ACTION_TABLE))

    def __call__(self, observations: Any) -> Any:
        given = observations.to_torch() if isinstance(observations, Tensor) else torch.tensor(np.asarray(observations))
        if given.shape[-1] != self._num_inputs:
            refuse("observations", f"of {self._num_inputs} numbers, as the policy reads them", list(given.shape))
        weights = next(self._module.parameters(), given)
        with torch.no_grad(), torch.autocast(weights.device.type, enabled=False):
            numbers = self._module(given.flatten(0, -2).to(weights)).argmax(-1)
        self._actions = self._actions.to(given.device)
        actions = self._actions[numbers.to(given.device)].reshape(*given.shape[:-1], -1)
        return actions.numpy() if given.device.type == "cpu" else actions


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
    if hasattr(getattr(module, "q_net", None), "features_extractor"):
        module = module.q_net  # of a DQN, which has an extractor of its own
    if not hasattr(module, "features_extractor"):
        return module
    if hasattr(module, "q_net"):
        parts = [module.q_net]
    elif hasattr(module, "mlp_extractor") and hasattr(module, "action_net"):
        parts = [module.mlp_extractor.policy_net, module.action_net]
    else:
        return module
    extractor = type(module.features_extractor).__name__
    if extractor != "FlattenExtractor":
        hint = "train with observations=doorstep.OBSERVATIONS"
        refuse("module", "a policy of flat observations", f"one with a {extractor}", hint)
    return parts
