"""Readers of modules of PyTorch whose values are arranged: as tokens, as a sequence, or as an image."""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import index
from typing import Any

from torch import nn

from doorstep._native._generated import LayerKind
from doorstep.policy.shapes import SIDES, places
from doorstep.policy.torch_layers import LayerSpec, Read, Reader, RowShape, refuse_module

# ---- Arranging


def read_flatten(path: str, module: nn.Flatten, shape: RowShape) -> Read:
    """Of the dimensions of a row; what it does to rows is compared."""
    if shape is None:
        return [], None
    first, last = (_dimension(dim, shape) for dim in (module.start_dim, module.end_dim))
    first = max(first, 0)
    if last <= first:
        return [], shape
    return [], (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])


def read_unflatten(path: str, module: nn.Unflatten, shape: RowShape) -> Read:
    sizes = [index(size) for size in module.unflattened_size]
    if shape is None:
        if module.dim not in (1, -1) or min(sizes) < 1:
            hint = "write nn.Unflatten(1, sizes) with sizes above 0"
            refuse_module(path, f"divides dimension {module.dim} of rows into {sizes}", hint)
        return [], tuple(sizes)
    at = _dimension(module.dim, shape)
    if not 0 <= at < len(shape):
        refuse_module(path, f"divides dimension {module.dim} of rows {list(shape)}", "a row is divided from 1 on")
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = shape[at] // -math.prod(sizes)
    if math.prod(sizes) != shape[at] or min(sizes) < 1:
        problem = f"divides {shape[at]} values into {list(module.unflattened_size)}"
        refuse_module(path, problem, "pass sizes whose product is the number of values before it")
    return [], (*shape[:at], *sizes, *shape[at + 1 :])


def _dimension(dim: int, shape: tuple[int, ...]) -> int:
    """The index in a row's shape; -1 is that of the rows."""
    return index(dim) + len(shape) if dim < 0 else index(dim) - 1


def tokens_of(shape: RowShape) -> int:
    """How often a module that works on the last dimension is applied to a row."""
    return math.prod(shape[:-1]) if shape else 1


def flat_shape(path: str, module: nn.Module, shape: RowShape) -> None:
    """Refuses a module that takes rows alone after one that gives more dimensions."""
    if shape is not None and len(shape) > 1:
        problem = f"is a {type(module).__name__}, which takes flat rows; what is before it gives {list(shape)}"
        refuse_module(path, problem, "put nn.Flatten() before it")


# ---- Windows

_UNSUPPORTED: Mapping[str, tuple[Any, str]] = {
    "groups": (1, "pass groups=1"),
    "padding_mode": ("zeros", 'pass padding_mode="zeros"'),
    "dilation": (1, "pass dilation=1"),
    "ceil_mode": (False, "pass ceil_mode=False and pad the input"),
    "return_indices": (False, "pass return_indices=False"),
    "divisor_override": (None, "pass divisor_override=None"),
}


def read_convolution(dimensions: int) -> Reader:
    def read(path: str, module: nn.Conv1d | nn.Conv2d, shape: RowShape) -> Read:
        image = _image(path, module, shape, dimensions)
        if image[0] != module.in_channels:
            problem = f"has in_channels={module.in_channels}; what is before it gives {list(image)}"
            refuse_module(path, problem, "pass the first of these numbers, or another nn.Unflatten before it")
        return _read_window(path, module, LayerKind.CONV, image, module.out_channels, ("weight", "bias"))

    return read


def read_pool(kind: LayerKind, dimensions: int) -> Reader:
    def read(path: str, module: Any, shape: RowShape) -> Read:
        image = _image(path, module, shape, dimensions)
        if kind == LayerKind.AVG_POOL and not module.count_include_pad and any(_sides(module.padding, dimensions)):
            refuse_module(path, "has count_include_pad=False", "pass count_include_pad=True, or padding=0")
        return _read_window(path, module, kind, image, image[0], ())

    return read


def _read_window(
    path: str, module: Any, kind: LayerKind, image: tuple[int, ...], channels: int, names: tuple[str, ...]
) -> Read:
    """image: channels, then height and width, or a length, which is a width."""
    for name, (wanted, hint) in _UNSUPPORTED.items():
        found = getattr(module, name, wanted)
        if found not in (wanted, (wanted,) * (len(image) - 1)):
            refuse_module(path, f"has {name}={found!r}", hint)
    sides = SIDES[3 - len(image) :]
    window = {"channels": image[0], "height": 1, "kernel_height": 1, "stride_height": 1}
    window.update(zip(sides, image[1:], strict=True))
    settings = {"kernel": module.kernel_size, "stride": module.stride, "pad": _padding(path, module)}
    for name, given in settings.items():
        for side, number in zip(sides, _sides(given, len(sides)), strict=True):
            window[f"{name}_{side}"] = number
    given_places = places(window)[3 - len(image) :]
    inputs, outputs = math.prod(image), channels * math.prod(given_places)
    layer = LayerSpec(path, module, kind, inputs, outputs, names=names, shape=window)
    return [layer], (index(channels), *given_places)


def _image(path: str, module: nn.Module, shape: RowShape, dimensions: int) -> tuple[int, ...]:
    if shape is None or len(shape) != dimensions + 1:
        sizes = "channels, length" if dimensions == 1 else "channels, height, width"
        found = "flat rows" if shape is None else list(shape)
        problem = f"is a {type(module).__name__}, which takes [{sizes}]; what is before it gives {found}"
        refuse_module(path, problem, f"put nn.Unflatten(1, ({sizes})) before it")
    return shape


def _padding(path: str, module: Any) -> Any:
    """Numbers for what torch has names for."""
    if module.padding == "valid":
        return 0
    if module.padding != "same":
        return module.padding
    if any(size % 2 == 0 for size in module.kernel_size):
        problem = f'has padding="same" with kernel_size={module.kernel_size}, which pads one side more'
        refuse_module(path, problem, "use an odd kernel_size")
    return tuple(size // 2 for size in module.kernel_size)


def _sides(given: Any, count: int) -> tuple[int, ...]:
    return tuple(map(index, given)) if isinstance(given, (tuple, list)) else (index(given),) * count


# ---- Attention


def read_attention(path: str, module: nn.MultiheadAttention, shape: RowShape) -> Read:
    """Of a row's tokens to each other: query, key and value are the values before it."""
    if not module.batch_first:
        refuse_module(path, "has batch_first=False: rows would attend to each other", "pass batch_first=True")
    if (module.kdim, module.vdim) != (module.embed_dim, module.embed_dim):
        problem = f"has kdim={module.kdim} and vdim={module.vdim}, which are not embed_dim={module.embed_dim}"
        refuse_module(path, problem, "leave out kdim and vdim: tokens attend to each other")
    if module.bias_k is not None or module.bias_v is not None:
        refuse_module(path, "has add_bias_kv=True", "pass add_bias_kv=False")
    if module.add_zero_attn:
        refuse_module(path, "has add_zero_attn=True", "pass add_zero_attn=False")
    if shape is None or len(shape) != 2 or shape[1] != module.embed_dim:
        found = "flat rows" if shape is None else list(shape)
        problem = f"takes [tokens, {module.embed_dim}]; what is before it gives {found}"
        refuse_module(path, problem, f"put nn.Unflatten(1, (tokens, {module.embed_dim})) before it")
    names = ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
    numbers = {"num_tokens": shape[0], "num_attention_heads": index(module.num_heads)}
    width = math.prod(shape)
    return [LayerSpec(path, module, LayerKind.ATTENTION, width, width, names=names, shape=numbers)], shape
