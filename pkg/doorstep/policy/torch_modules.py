"""Reads modules of PyTorch as layers of a policy. Each kind of module is a row of a table."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import torch
from torch import nn

from doorstep import interop
from doorstep._arguments import is_integer
from doorstep._native import ACTIONS
from doorstep._native._generated import DeviceKind, LayerKind, WeightType
from doorstep._native.policies import LayerHandle, LayerWeights
from doorstep.errors import ArgumentError
from doorstep.policy.heads import Heads
from doorstep.policy.shapes import ARRAYS, array_shapes, is_optional

WEIGHT_TYPES = {torch.float32: WeightType.FLOAT32, torch.bfloat16: WeightType.BFLOAT16}


@dataclass(frozen=True)
class LayerSpec:
    """A layer: where it is in the module, its numbers, and the names of its tensors there, in the order of ARRAYS."""

    path: str
    module: nn.Module
    kind: LayerKind
    num_inputs: int = 0
    num_outputs: int = 0
    parameter: float = 0.0
    names: tuple[str, ...] = ()
    is_head: bool = False
    is_value: bool = False  # the last head

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Those that the module has, by their names in a layer."""
        found = {array: getattr(self.module, name, None) for array, name in zip(ARRAYS, self.names, strict=False)}
        return {array: tensor for array, tensor in found.items() if tensor is not None}

    @property
    def weight_type(self) -> WeightType:
        return next((WEIGHT_TYPES[tensor.dtype] for tensor in self.tensors.values()), WeightType.FLOAT32)

    def create(self, device: torch.device) -> LayerHandle:
        """The native layer, which reads the tensors in place."""
        # Aliases: what replaces a parameter's tensor does not free the memory that the layer reads.
        own = {array: tensor.detach() for array, tensor in self.tensors.items()}
        addresses = {array: tensor.data_ptr() for array, tensor in own.items()}
        kind = DeviceKind.CUDA if device.type == "cuda" else DeviceKind.CPU
        weights = LayerWeights(self.weight_type, kind, device.index or 0, **addresses, owner=own)
        return LayerHandle.create(self.kind, self.num_inputs, self.num_outputs, self.parameter, weights)


def read_layers(module: object) -> list[LayerSpec]:
    """The layers of a module, or of a sequence of modules, in the order in which they are evaluated.

    Raises:
        ArgumentError: a module is not supported, or the layers do not fit each other or the actions.
    """
    modules = named_modules(module)
    layers = [_with_checked_shapes(layer) for path, one in modules for layer in read_module(path, one)]
    device = device_of(layers)
    for layer in layers:
        _check_tensors(layer, device)
    _check_widths(layers)
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


def read_module(path: str, module: object) -> Iterator[LayerSpec]:
    """The layers of a module, whose tensors are not checked."""
    if type(module) not in READERS:
        _refuse_module(path, f"is a {type(module).__name__}")
    assert isinstance(module, nn.Module)
    if module._forward_hooks or module._forward_pre_hooks:
        _refuse_module(path, "has hooks, which a policy cannot call")
    if "forward" in vars(module):
        _refuse_module(path, f"has a forward() of its own in addition to that of {type(module).__name__}")
    try:
        yield from READERS[type(module)](path, module)
    except (AttributeError, TypeError, ValueError) as error:  # of attributes that were changed by hand
        if isinstance(error, ArgumentError):
            raise
        _refuse_module(path, f"cannot be read: {error}")


def _read_sequential(path: str, module: nn.Sequential) -> Iterator[LayerSpec]:
    for at, child in children_of(path, module):
        yield from read_module(at, child)


def _read_heads(path: str, module: Heads) -> Iterator[LayerSpec]:
    for index, head in enumerate(module.heads):
        at = f"{path}.heads.{index}"
        if type(head) is not nn.Linear:
            _refuse_module(at, f"is a {type(head).__name__}, but heads are Linear")
        for layer in read_module(at, head):
            yield replace(layer, is_head=True)
    if has_value(module):
        for layer in read_module(f"{path}.value", module.value):
            yield replace(layer, is_head=True, is_value=True)


def has_value(module: Heads) -> bool:
    """Whether a policy evaluates its value."""
    value: Any = module.value
    return type(value) is nn.Linear and value.out_features == 1


def _read_identity(path: str, module: nn.Module) -> Iterator[LayerSpec]:
    return iter(())


def _read_linear(path: str, module: nn.Linear) -> Iterator[LayerSpec]:
    yield LayerSpec(path, module, LayerKind.LINEAR, module.in_features, module.out_features, names=("weight", "bias"))


def _read_layer_norm(path: str, module: nn.LayerNorm) -> Iterator[LayerSpec]:
    if len(module.normalized_shape) != 1:
        _refuse_module(path, f"normalises over {len(module.normalized_shape)} dimensions, not one")
    size, names = module.normalized_shape[0], ("weight", "bias")
    yield LayerSpec(path, module, LayerKind.LAYER_NORM, size, 0, module.eps, names)


def _read_rms_norm(path: str, module: nn.RMSNorm) -> Iterator[LayerSpec]:
    if len(module.normalized_shape) != 1:
        _refuse_module(path, f"normalises over {len(module.normalized_shape)} dimensions, not one")
    eps = torch.finfo(torch.float32).eps if module.eps is None else module.eps  # that of the arithmetic
    yield LayerSpec(path, module, LayerKind.RMS_NORM, module.normalized_shape[0], 0, eps, ("weight",))


def _read_recurrent(kind: LayerKind) -> Callable[[str, Any], Iterator[LayerSpec]]:
    def read(path: str, module: nn.RNNBase) -> Iterator[LayerSpec]:
        if module.bidirectional or module.proj_size:
            _refuse_module(path, "has two directions" if module.bidirectional else "has a projection")
        for index in range(module.num_layers):
            num_inputs, names = module.hidden_size if index else module.input_size, _recurrent_names(f"_l{index}")
            yield LayerSpec(f"{path} (layer {index})", module, kind, num_inputs, module.hidden_size, names=names)

    return read


def _read_cell(kind: LayerKind) -> Callable[[str, Any], Iterator[LayerSpec]]:
    def read(path: str, module: nn.RNNCellBase) -> Iterator[LayerSpec]:
        yield LayerSpec(path, module, kind, module.input_size, module.hidden_size, names=_recurrent_names(""))

    return read


def _recurrent_names(suffix: str) -> tuple[str, ...]:
    return tuple(name + suffix for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh"))


def _read_activation(kind: LayerKind, parameter: str = "") -> Callable[[str, Any], Iterator[LayerSpec]]:
    def read(path: str, module: nn.Module) -> Iterator[LayerSpec]:
        yield LayerSpec(path, module, kind, parameter=float(getattr(module, parameter)) if parameter else 0.0)

    return read


def _read_gelu(path: str, module: nn.GELU) -> Iterator[LayerSpec]:
    yield LayerSpec(path, module, LayerKind.GELU_TANH if module.approximate == "tanh" else LayerKind.GELU)


def _read_softplus(path: str, module: nn.Softplus) -> Iterator[LayerSpec]:
    if module.threshold < _SOFTPLUS_IS_LINEAR:
        _refuse_module(path, f"is linear from {module.threshold} on; a policy's is from {_SOFTPLUS_IS_LINEAR} on")
    yield LayerSpec(path, module, LayerKind.SOFTPLUS, parameter=float(module.beta))


_SOFTPLUS_IS_LINEAR = 20  # beta times the value: from here on single precision does not tell the function from a line


# By the exact type: a derived class may compute something else.
READERS: dict[type, Callable[[str, Any], Iterator[LayerSpec]]] = {
    nn.Sequential: _read_sequential,
    Heads: _read_heads,
    nn.Linear: _read_linear,
    nn.LayerNorm: _read_layer_norm,
    nn.RMSNorm: _read_rms_norm,
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
    nn.Flatten: _read_identity,  # of rows; what it does to other dimensions is compared
}


def _refuse_module(path: str, problem: str) -> NoReturn:
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
            _refuse_module(layer.path, f"has a size of {size!r}, which is no integer")
    tensors = layer.tensors
    for (array, shape), name in zip(
        array_shapes(layer.kind, layer.num_inputs, layer.num_outputs).items(), layer.names, strict=True
    ):
        if array not in tensors and not is_optional(layer.kind, array):
            _refuse_module(layer.path, f"has no {name}")
        if array in tensors and tensors[array].shape != shape:
            hint = "set the sizes of a module, as in_features, to those of its tensors"
            _refuse_tensor(layer, f"{name} {list(tensors[array].shape)}", f"{list(shape)}, as its sizes say", hint)
    # integers of numpy are none for ctypes
    return replace(layer, num_inputs=operator.index(layer.num_inputs), num_outputs=operator.index(layer.num_outputs))


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


def _check_widths(layers: Sequence[LayerSpec]) -> None:
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
    if (logits or width) != sum(ACTIONS):
        sizes = " + ".join(map(str, ACTIONS))
        _refuse_widths(f"module gives {logits or width} values; it must give {sum(ACTIONS)} logits ({sizes})")


def _refuse_widths(message: str) -> NoReturn:
    hint = "end with torch.nn.Linear(n, sum(doorstep.ACTIONS)) or doorstep.policy.Heads"
    raise ArgumentError(message, argument="module", hint=hint)
