"""Reads modules of PyTorch as layers of a policy. Each kind of module is a row of a table."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import torch
from torch import nn
from torch.nn import functional

from doorstep import interop
from doorstep._action_forms import NUM_ACTIONS
from doorstep._arguments import is_integer
from doorstep._native import ACTIONS
from doorstep._native._generated import LayerKind
from doorstep.errors import ArgumentError
from doorstep.policy.modules import Branch, Heads
from doorstep.policy.shapes import array_shapes, is_optional
from doorstep.policy.torch_arranged import (
    flat_shape,
    read_attention,
    read_convolution,
    read_flatten,
    read_pool,
    read_unflatten,
    tokens_of,
)
from doorstep.policy.torch_layers import WEIGHT_TYPES, LayerSpec, Read, Reader, RowShape, refuse_module


def read_layers(module: object, *, may_number: bool = False) -> list[LayerSpec]:
    """The layers of a module, or of a sequence of modules, in the order in which they are evaluated.

    Args:
        may_number: whether they may give a logit for the number of each action, `NUM_ACTIONS` in all.

    Raises:
        ArgumentError: a module is not supported, or the layers do not fit each other or the actions.
    """
    layers, shape = _read_in_order(named_modules(module), None)
    layers = [_with_checked_shapes(layer) for layer in layers]
    if shape is not None and len(shape) > 1:
        _refuse_widths(f"module gives {list(shape)} for a row; it must give flat logits: add nn.Flatten()")
    device = device_of(layers)
    for layer in layers:
        _check_tensors(layer, device)
    width = width_of(layers)
    if width != sum(ACTIONS) and not (may_number and width == NUM_ACTIONS):
        sizes = " + ".join(map(str, ACTIONS))
        numbers = f", or {NUM_ACTIONS}, one for each action" if may_number else ""
        _refuse_widths(f"module gives {width} values; it must give {sum(ACTIONS)} logits ({sizes}){numbers}")
    return layers


# ---- Modules ----


def named_modules(module: object) -> list[tuple[str, object]]:
    """A module, or those of a sequence in the order of their evaluation, by their paths."""
    if isinstance(module, (list, tuple, nn.ModuleList)):
        return [(f"module[{index}]", one) for index, one in enumerate(module)]
    return [("module", module)]


def children_of(path: str, module: nn.Sequential) -> Iterator[tuple[str, nn.Module]]:
    """Its modules in the order of their evaluation, in which one may occur again, by their paths."""
    for name, child in module._modules.items():
        yield f"{path}.{name}", child


def read_module(path: str, module: object, shape: RowShape) -> Read:
    """The layers of a module that gets values of this shape, and what it gives. Tensors are not checked."""
    if type(module) not in READERS:
        _refuse_type(path, f"is a {type(module).__name__}")
    assert isinstance(module, nn.Module)
    if module._forward_hooks or module._forward_pre_hooks:
        _refuse_type(path, "has hooks, which a policy cannot call")
    if "forward" in vars(module):
        _refuse_type(path, f"has a forward() of its own in addition to that of {type(module).__name__}")
    try:
        return READERS[type(module)](path, module, shape)
    except (AttributeError, TypeError, ValueError) as error:  # of attributes that were changed by hand
        if isinstance(error, ArgumentError):
            raise
        _refuse_type(path, f"cannot be read: {error}")


def _read_in_order(modules: Iterable[tuple[str, object]], shape: RowShape) -> Read:
    layers: list[LayerSpec] = []
    for path, module in modules:
        found, shape = read_module(path, module, shape)
        layers += found
    return layers, shape


def _read_sequential(path: str, module: nn.Sequential, shape: RowShape) -> Read:
    return _read_in_order(children_of(path, module), shape)


def _read_heads(path: str, module: Heads, shape: RowShape) -> Read:
    flat_shape(path, module, shape)
    layers = []
    for index, head in enumerate(module.heads):
        at = f"{path}.heads.{index}"
        if type(head) is not nn.Linear:
            _refuse_type(at, f"is a {type(head).__name__}, but heads are Linear")
        layers += [replace(layer, is_head=True) for layer in read_module(at, head, shape)[0]]
    logits = (sum(layer.num_outputs for layer in layers),)
    if has_value(module):
        value, _ = read_module(f"{path}.value", module.value, shape)
        layers += [replace(layer, is_head=True, is_value=True) for layer in value]
    return layers, logits


def has_value(module: Heads) -> bool:
    """Whether a policy evaluates its value."""
    value: Any = module.value
    return type(value) is nn.Linear and value.out_features == 1



def _read_branch(path: str, module: Branch, shape: RowShape) -> Read:
    flat_shape(path, module, shape)
    width, first, size = module.num_features, module.part.start, module.part.stop - module.part.start
    found, given = read_module(f"{path}.module", module.module, (size,))
    if given is None or len(given) != 1:
        refuse_module(f"{path}.module", f"gives {given} for a row", "end it with nn.Flatten()")
    layers = [
        LayerSpec(path, module, LayerKind.KEEP, width),
        LayerSpec(path, module, LayerKind.TAKE, width, size, shape={"first": first} if first else {}),
        *found,
        LayerSpec(path, module, LayerKind.APPEND, given[0], given[0] + width),
    ]
    return layers, (given[0] + width,)


# ---- Layers ----


def _read_identity(path: str, module: nn.Module, shape: RowShape) -> Read:
    return [], shape


def _read_linear(path: str, module: nn.Linear, shape: RowShape) -> Read:
    tokens = tokens_of(shape)
    inputs, outputs = tokens * module.in_features, tokens * module.out_features
    layer = LayerSpec(path, module, LayerKind.LINEAR, inputs, outputs, names=("weight", "bias"), shape=_shape(tokens))
    return [layer], (*(shape or ())[:-1], module.out_features)


def _read_norm(kind: LayerKind, *names: str) -> Reader:
    def read(path: str, module: nn.LayerNorm | nn.RMSNorm, shape: RowShape) -> Read:
        if len(module.normalized_shape) != 1:
            _refuse_type(path, f"normalises over {len(module.normalized_shape)} dimensions, not one")
        size, tokens = module.normalized_shape[0], tokens_of(shape)
        eps = torch.finfo(torch.float32).eps if module.eps is None else module.eps  # that of the arithmetic
        layer = LayerSpec(path, module, kind, tokens * size, 0, eps, names, _shape(tokens))
        return [layer], (size,) if shape is None else shape

    return read


def _shape(tokens: int) -> dict[str, int]:
    return {"num_tokens": tokens} if tokens > 1 else {}


def _read_recurrent(kind: LayerKind) -> Reader:
    def read(path: str, module: nn.RNNBase, shape: RowShape) -> Read:
        flat_shape(path, module, shape)
        if module.bidirectional or module.proj_size:
            _refuse_type(path, "has two directions" if module.bidirectional else "has a projection")
        layers = []
        for index in range(module.num_layers):
            num_inputs, names = module.hidden_size if index else module.input_size, _recurrent_names(f"_l{index}")
            at = f"{path} (layer {index})"
            layers.append(LayerSpec(at, module, kind, num_inputs, module.hidden_size, names=names))
        return layers, (module.hidden_size,)

    return read


def _read_cell(kind: LayerKind) -> Reader:
    def read(path: str, module: nn.RNNCellBase, shape: RowShape) -> Read:
        flat_shape(path, module, shape)
        names = _recurrent_names("")
        return [LayerSpec(path, module, kind, module.input_size, module.hidden_size, names=names)], (
            module.hidden_size,
        )

    return read


def _recurrent_names(suffix: str) -> tuple[str, ...]:
    return tuple(name + suffix for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh"))


def _read_activation(kind: LayerKind, parameter: str = "") -> Reader:
    def read(path: str, module: nn.Module, shape: RowShape) -> Read:
        number = float(getattr(module, parameter)) if parameter else 0.0
        return [LayerSpec(path, module, kind, parameter=number)], shape

    return read


def _read_gelu(path: str, module: nn.GELU, shape: RowShape) -> Read:
    return [LayerSpec(path, module, LayerKind.GELU_TANH if module.approximate == "tanh" else LayerKind.GELU)], shape


def _read_softplus(path: str, module: nn.Softplus, shape: RowShape) -> Read:
    if module.threshold < _SOFTPLUS_IS_LINEAR:
        _refuse_type(path, f"is linear from {module.threshold} on; a policy's is from {_SOFTPLUS_IS_LINEAR} on")
    return [LayerSpec(path, module, LayerKind.SOFTPLUS, parameter=float(module.beta))], shape


_SOFTPLUS_IS_LINEAR = 20  # beta times the value: from here on single precision does not tell the function from a line


# ---- Transformers ----


def _read_encoder(path: str, module: nn.TransformerEncoder, shape: RowShape) -> Read:
    modules = [(f"{path}.layers.{index}", layer) for index, layer in enumerate(module.layers)]
    return _read_in_order(modules if module.norm is None else [*modules, (f"{path}.norm", module.norm)], shape)


def _read_encoder_layer(path: str, module: nn.TransformerEncoderLayer, shape: RowShape) -> Read:
    """Attention, then two linear layers for each token, each added to what it gets and normalised before or after."""
    activation = _FUNCTIONS.get(module.activation, module.activation)
    if not isinstance(activation, nn.Module):
        _refuse_type(f"{path}.activation", "is a function")
    layers: list[LayerSpec] = []
    branches = (
        ("norm1", [("self_attn", module.self_attn)]),
        ("norm2", [("linear1", module.linear1), ("activation", activation), ("linear2", module.linear2)]),
    )
    for norm, modules in branches:
        normalise = (norm, getattr(module, norm))
        inner = [normalise, *modules] if module.norm_first else modules
        found, given = _read_in_order([(f"{path}.{name}", one) for name, one in inner], shape)
        width = math.prod(shape or ())
        if given != shape:
            refuse_module(path, f"adds {given} to {shape}", "give linear2 as many outputs as linear1 has inputs")
        layers += [
            LayerSpec(path, module, LayerKind.KEEP, width),
            *found,
            LayerSpec(path, module, LayerKind.ADD, width),
        ]
        if not module.norm_first:
            layers += read_module(f"{path}.{norm}", normalise[1], shape)[0]
    return layers, shape


_FUNCTIONS = {functional.relu: nn.ReLU(), functional.gelu: nn.GELU()}  # as modules

# By the exact type: a derived class may compute something else.
READERS: dict[type, Reader] = {
    nn.Sequential: _read_sequential,
    Heads: _read_heads,
    Branch: _read_branch,
    nn.Linear: _read_linear,
    nn.Conv1d: read_convolution(1),
    nn.Conv2d: read_convolution(2),
    nn.MaxPool1d: read_pool(LayerKind.MAX_POOL, 1),
    nn.MaxPool2d: read_pool(LayerKind.MAX_POOL, 2),
    nn.AvgPool1d: read_pool(LayerKind.AVG_POOL, 1),
    nn.AvgPool2d: read_pool(LayerKind.AVG_POOL, 2),
    nn.MultiheadAttention: read_attention,
    nn.TransformerEncoderLayer: _read_encoder_layer,
    nn.TransformerEncoder: _read_encoder,
    nn.LayerNorm: _read_norm(LayerKind.LAYER_NORM, "weight", "bias"),
    nn.RMSNorm: _read_norm(LayerKind.RMS_NORM, "weight"),
    nn.LSTM: _read_recurrent(LayerKind.LSTM),
    nn.GRU: _read_recurrent(LayerKind.GRU),
    nn.LSTMCell: _read_cell(LayerKind.LSTM),
    nn.GRUCell: _read_cell(LayerKind.GRU),
    nn.ReLU: _read_activation(LayerKind.RELU),
    nn.ReLU6: _read_activation(LayerKind.RELU6),
    nn.LeakyReLU: _read_activation(LayerKind.LEAKY_RELU, "negative_slope"),
    nn.ELU: _read_activation(LayerKind.ELU, "alpha"),
    nn.CELU: _read_activation(LayerKind.CELU, "alpha"),
    nn.SELU: _read_activation(LayerKind.SELU),
    nn.SiLU: _read_activation(LayerKind.SILU),
    nn.Mish: _read_activation(LayerKind.MISH),
    nn.Sigmoid: _read_activation(LayerKind.SIGMOID),
    nn.Hardsigmoid: _read_activation(LayerKind.HARDSIGMOID),
    nn.Hardswish: _read_activation(LayerKind.HARDSWISH),
    nn.Tanh: _read_activation(LayerKind.TANH),
    nn.Softsign: _read_activation(LayerKind.SOFTSIGN),
    nn.Softplus: _read_softplus,
    nn.GELU: _read_gelu,
    nn.Identity: _read_identity,
    nn.Dropout: _read_identity,  # in evaluation
    nn.Flatten: read_flatten,
    nn.Unflatten: read_unflatten,
}


def _refuse_type(path: str, problem: str) -> NoReturn:
    supported = ", ".join(kind.__name__ for kind in READERS)
    hint = "pass the modules in the order of their evaluation: load_policy([net.body, net.lstm, net.heads])"
    message = f"{path} {problem}; a policy is made of modules of exactly these types: {supported}"
    raise ArgumentError(message, argument="module", hint=hint)


# ---- Checks ----


def device_of(layers: Sequence[LayerSpec]) -> torch.device:
    """Where the layers' tensors are; the CPU if they have none."""
    tensors = (tensor for layer in layers for tensor in layer.tensors.values())
    return next((tensor.device for tensor in tensors), torch.device("cpu"))


def _with_checked_shapes(layer: LayerSpec) -> LayerSpec:
    """The library reads as many numbers as the module's sizes say, wherever the tensors end."""
    for size in (layer.num_inputs, layer.num_outputs):
        if not is_integer(size):
            _refuse_type(layer.path, f"has a size of {size!r}, which is no integer")
    tensors = layer.tensors
    for (array, shape), name in zip(
        array_shapes(layer.kind, layer.num_inputs, layer.num_outputs, layer.shape).items(), layer.names, strict=True
    ):
        if array not in tensors and not is_optional(layer.kind, array):
            _refuse_type(layer.path, f"has no {name}")
        if array in tensors and _flat(layer, tensors[array]).shape != shape:
            hint = "set the sizes of a module, as in_features, to those of its tensors"
            _refuse_tensor(layer, f"{name} {list(tensors[array].shape)}", f"{list(shape)}, as its sizes say", hint)
    # integers of numpy are none for ctypes
    return replace(layer, num_inputs=operator.index(layer.num_inputs), num_outputs=operator.index(layer.num_outputs))


def _flat(layer: LayerSpec, tensor: torch.Tensor) -> torch.Tensor:
    """With the weights of an output of a convolution as one dimension."""
    return tensor.flatten(1) if layer.kind == LayerKind.CONV and tensor.ndim > 2 else tensor


def _check_tensors(layer: LayerSpec, device: torch.device) -> None:
    given = list(layer.tensors.values())
    for tensor in given:
        if tensor.device.type not in ("cpu", "cuda") or tensor.layout != torch.strided or tensor.is_meta:
            hint = "copy the module there: copy.deepcopy(module).cpu()"
            _refuse_tensor(layer, f"{tensor.dtype} on {tensor.device}", "on the CPU or a CUDA device", hint)
        if tensor.device != device:
            found = f"on {tensor.device}"
            _refuse_tensor(layer, found, f"on {device}, as the first one", "keep the module on one device")
        if tensor.dtype not in WEIGHT_TYPES:
            hint = "convert it: module.float()"
            _refuse_tensor(layer, f"{tensor.dtype}", "torch.float32 or torch.bfloat16", hint)
        if not tensor.is_contiguous():
            _refuse_tensor(layer, "not contiguous", "contiguous", "")
        if tensor.dtype != given[0].dtype:
            _refuse_tensor(layer, f"{given[0].dtype} and {tensor.dtype}", "of one dtype", "convert the module")
        _check_memory(layer, tensor)


def _check_memory(layer: LayerSpec, tensor: torch.Tensor) -> None:
    """Fake and wrapped tensors have none, and a storage may have been resized."""
    try:
        interop.describe(tensor)
    except ArgumentError as error:
        message = f"a tensor of {layer.path} cannot be read: {error.args[0]}"
        raise ArgumentError(message, argument="module", hint=error.hint) from error


def _refuse_tensor(layer: LayerSpec, found: str, wanted: str, hint: str) -> NoReturn:
    message = f"a tensor of {layer.path} is {found}; it must be {wanted}"
    raise ArgumentError(message, argument="module", hint=hint)


def width_of(layers: Sequence[LayerSpec]) -> int:
    """How many values they give.

    Raises:
        ArgumentError: they do not fit each other.
    """
    width, logits = 0, 0
    for layer in layers:
        if logits and not layer.is_head:
            _refuse_widths(f"{layer.path} follows the heads, which are the last module of a policy")
        if layer.num_inputs and width and layer.num_inputs != width:
            _refuse_widths(f"{layer.path} takes {layer.num_inputs} values; what is before it gives {width}")
        if layer.is_head:
            logits += 0 if layer.is_value else layer.num_outputs
            width = width or layer.num_inputs
        elif layer.num_inputs:
            width = layer.num_outputs or layer.num_inputs
    return logits or width


def _refuse_widths(message: str) -> NoReturn:
    hint = "end with torch.nn.Linear(n, sum(doorstep.ACTIONS)) or doorstep.policy.Heads"
    raise ArgumentError(message, argument="module", hint=hint)
