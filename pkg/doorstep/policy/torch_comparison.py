"""Compares the layers that were read from modules with the modules: what these compute when they are called.

A module may compute something else than its type and its tensors say: because of hooks of all modules, of a class whose
`forward()` was replaced, of tensors that it keeps elsewhere. Every module is called once by itself, and once more by
the Sequential or the Heads that contain it, with a few rows, in evaluation mode and without gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch import nn
from torch.nn import functional

from doorstep._native._generated import LayerKind
from doorstep.errors import ArgumentError
from doorstep.policy.modules import Branch, Heads
from doorstep.policy.shapes import SIDES
from doorstep.policy.torch_layers import LayerSpec
from doorstep.policy.torch_modules import children_of, device_of, has_value, named_modules, read_module

ROWS = 8
RECURRENT = (nn.RNNBase, nn.RNNCellBase)
TRANSFORMERS = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)
NOT_IN_SEQUENTIAL = (*RECURRENT, nn.MultiheadAttention)  # they return more, or take more, than one tensor

# Both sides are computed by PyTorch from the same rows: most by the same kernel, so that they are equal. Recurrent
# layers and transformers have several, which add up in another order or round factors to TF32: 2**-11 is its roundoff.
# Roundings of independent signs change a sum by about one unit roundoff of the size that such sums have: 16 of them
# are allowed.
UNITS = 16
UNIT_ROUNDOFF = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-9}
TF32_UNIT_ROUNDOFF = 2.0**-11


def compare(module: object, layers: list[LayerSpec]) -> None:
    """Refuses modules that compute something else than the layers that were read from them.

    Raises:
        ArgumentError: one does, or cannot be called; the message names the first one by its path.
    """
    num_inputs = next(layer.num_inputs for layer in layers if layer.num_inputs)
    device = device_of(layers)
    generator = torch.Generator().manual_seed(0)  # of its own: the caller's random numbers stay as they are
    values = torch.randn(ROWS, num_inputs, device="cpu", dtype=torch.float32, generator=generator).to(device)
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        for path, one in named_modules(module):
            assert isinstance(one, nn.Module)
            values = _compare(path, one, values)


def _compare(path: str, module: nn.Module, values: torch.Tensor, *, is_part: bool = False) -> torch.Tensor:
    """What the module gives for these rows, which its layers give too. is_part: of one that is called with it."""
    layers, shape = read_module(path, module, tuple(values.shape[1:]))
    dtypes = {tensor.dtype for layer in layers for tensor in layer.tensors.values()}
    if len(dtypes) == 1:
        values = values.to(*dtypes)
    if isinstance(module, nn.Sequential):
        # PyTorch cannot call one of several dtypes either
        is_called = not is_part and len(dtypes) <= 1 and _may_be_called(module)
        expected = values
        for at, child in children_of(path, module):
            expected = _compare(at, child, expected, is_part=is_part or is_called)
    elif isinstance(module, Heads):
        is_called = len(dtypes) == 1
        heads = [_compare(f"{path}.heads.{index}", head, values) for index, head in enumerate(module.heads)]
        expected = torch.cat(heads, dim=-1)
        if has_value(module):
            assert module.value is not None
            _compare(f"{path}.value", module.value, values)
    elif isinstance(module, Branch):
        is_called = len(dtypes) <= 1 and _may_be_called(module)
        given = _compare(f"{path}.module", module.module, values[:, module.part], is_part=is_called)
        expected = torch.cat([given, values], dim=-1)
    else:
        is_called, expected = True, _evaluate(layers, values).reshape(len(values), *(shape or values.shape[1:]))
    if is_called:
        _check(path, module, values, expected)
    return expected


def _may_be_called(module: nn.Sequential | Branch) -> bool:
    return all(
        _may_be_called(one) if isinstance(one, (nn.Sequential, Branch)) else not isinstance(one, NOT_IN_SEQUENTIAL)
        for one in module._modules.values()
    )


def _check(path: str, module: nn.Module, values: torch.Tensor, expected: torch.Tensor) -> None:
    found = _call(path, module, values)
    if not isinstance(found, torch.Tensor) or found.shape != expected.shape:
        _refuse(path, module, f"it returns {_describe(found)} for {list(values.shape)}")
    units = TF32_UNIT_ROUNDOFF if isinstance(module, RECURRENT + TRANSFORMERS) else 0
    limit = UNITS * max(units, UNIT_ROUNDOFF[expected.dtype]) * _size(expected)
    if not torch.allclose(found.float(), expected.float(), rtol=0, atol=limit, equal_nan=True):
        _refuse(path, module, f"its outputs differ by up to {float((found - expected).abs().amax()):.3g}")


def _size(values: torch.Tensor) -> float:
    """The largest absolute value that is finite."""
    return float(values.float().nan_to_num(0, 0, 0).abs().amax())


# ---- Calling


def _call(path: str, module: nn.Module, values: torch.Tensor) -> Any:
    """What the module returns; of a recurrent one its output after one step from the initial state."""
    values = values.clone()  # activations may work in place
    try:
        with _evaluating(module):
            if isinstance(module, nn.RNNBase):
                axis = 1 if module.batch_first else 0
                return module._call_impl(values.unsqueeze(axis))[0].squeeze(axis)
            if isinstance(module, nn.MultiheadAttention):
                return module._call_impl(values, values, values, need_weights=False)[0]
            found = module._call_impl(values)  # with hooks, without what module.compile() has made for other sizes
            return found[0] if isinstance(module, nn.LSTMCell) else found
    except Exception as error:  # whatever a hook raises
        _refuse(path, module, f"it raises {type(error).__name__}: {error}", error)


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """In evaluation mode: modules may have dropout."""
    was_training = [one for one in module.modules() if one.training]
    try:
        for one in was_training:
            one.training = False
        yield
    finally:
        for one in was_training:
            one.training = True


# ---- What layers compute


def _evaluate(layers: list[LayerSpec], values: torch.Tensor) -> torch.Tensor:
    kept = []
    for layer in layers:
        if layer.kind == LayerKind.KEEP:
            kept.append(values)
        elif layer.kind == LayerKind.ADD:
            values = kept.pop() + values
        else:
            values = FUNCTIONS[layer.kind](layer, values)
    return values


def _convolution(layer: LayerSpec, values: torch.Tensor) -> torch.Tensor:
    convolve = functional.conv1d if values.ndim == 3 else functional.conv2d
    stride, padding = (_window(layer, name)[4 - values.ndim :] for name in ("stride", "pad"))
    return convolve(values, layer.tensors["weights"], layer.tensors.get("biases"), stride, padding)


def _pool(pool: Callable[..., torch.Tensor]) -> Callable[[LayerSpec, torch.Tensor], torch.Tensor]:
    def evaluate(layer: LayerSpec, values: torch.Tensor) -> torch.Tensor:
        image = values if values.ndim == 4 else values.unsqueeze(2)
        found = pool(image, *(_window(layer, name) for name in ("kernel", "stride", "pad")))
        return found if values.ndim == 4 else found.squeeze(2)

    return evaluate


def _window(layer: LayerSpec, name: str) -> list[int]:
    return [layer.shape.get(f"{name}_{side}", 0) for side in SIDES]


def _attention(layer: LayerSpec, values: torch.Tensor) -> torch.Tensor:
    tensors = layer.tensors
    projected = functional.linear(values, tensors["weights"], tensors.get("biases"))
    heads = projected.unflatten(-1, (3, layer.shape["num_attention_heads"], -1)).permute(2, 0, 3, 1, 4)
    attended = functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
    return functional.linear(attended, tensors["hidden_weights"], tensors.get("hidden_biases"))


def _lstm(layer: LayerSpec, values: torch.Tensor) -> torch.Tensor:
    zeros = values.new_zeros(len(values), layer.num_outputs)
    return torch.lstm_cell(values, (zeros, zeros), *_recurrent(layer))[0]


def _gru(layer: LayerSpec, values: torch.Tensor) -> torch.Tensor:
    return torch.gru_cell(values, values.new_zeros(len(values), layer.num_outputs), *_recurrent(layer))


def _recurrent(layer: LayerSpec) -> list[torch.Tensor | None]:
    return [layer.tensors.get(name) for name in ("weights", "hidden_weights", "biases", "hidden_biases")]


def _linear(layer: LayerSpec, values: torch.Tensor) -> torch.Tensor:
    return functional.linear(values, layer.tensors["weights"], layer.tensors.get("biases"))


def _layer_norm(layer: LayerSpec, values: torch.Tensor) -> torch.Tensor:
    weights, biases = layer.tensors.get("weights"), layer.tensors.get("biases")
    return functional.layer_norm(values, values.shape[-1:], weights, biases, layer.parameter)


def _rms_norm(layer: LayerSpec, values: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(values, values.shape[-1:], layer.tensors.get("weights"), layer.parameter)


FUNCTIONS: dict[LayerKind, Callable[[LayerSpec, torch.Tensor], torch.Tensor]] = {
    LayerKind.LINEAR: _linear,
    LayerKind.LAYER_NORM: _layer_norm,
    LayerKind.RMS_NORM: _rms_norm,
    LayerKind.CONV: _convolution,
    LayerKind.MAX_POOL: _pool(functional.max_pool2d),
    LayerKind.AVG_POOL: _pool(functional.avg_pool2d),
    LayerKind.ATTENTION: _attention,
    LayerKind.LSTM: _lstm,
    LayerKind.GRU: _gru,
    LayerKind.RELU: lambda _, values: functional.relu(values),
    LayerKind.RELU6: lambda _, values: functional.relu6(values),
    LayerKind.LEAKY_RELU: lambda layer, values: functional.leaky_relu(values, layer.parameter),
    LayerKind.ELU: lambda layer, values: functional.elu(values, layer.parameter),
    LayerKind.CELU: lambda layer, values: functional.celu(values, layer.parameter),
    LayerKind.SELU: lambda _, values: functional.selu(values),
    LayerKind.SILU: lambda _, values: functional.silu(values),
    LayerKind.MISH: lambda _, values: functional.mish(values),
    LayerKind.SIGMOID: lambda _, values: torch.sigmoid(values),
    LayerKind.HARDSIGMOID: lambda _, values: functional.hardsigmoid(values),
    LayerKind.HARDSWISH: lambda _, values: functional.hardswish(values),
    LayerKind.TANH: lambda _, values: torch.tanh(values),
    LayerKind.SOFTSIGN: lambda _, values: functional.softsign(values),
    LayerKind.SOFTPLUS: lambda layer, values: functional.softplus(values, layer.parameter),
    LayerKind.GELU: lambda _, values: functional.gelu(values),
    LayerKind.GELU_TANH: lambda _, values: functional.gelu(values, approximate="tanh"),
}


# ---- Refusing


def _describe(found: Any) -> str:
    return str(list(found.shape)) if isinstance(found, torch.Tensor) else f"a {type(found).__name__}"


def _refuse(path: str, module: nn.Module, problem: str, cause: Exception | None = None) -> NoReturn:
    message = f"{path} computes something else than a {type(module).__name__} with its tensors: {problem}"
    hint = "remove hooks of all modules and functions that replace forward(); a policy calls neither"
    raise ArgumentError(message, argument="module", hint=hint) from cause
