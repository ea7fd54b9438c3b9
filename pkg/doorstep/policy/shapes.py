"""The arrays of a layer: their names and shapes, which are PyTorch's, and which of them may be absent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from doorstep._native._generated import MAX_LAYER_WIDTH, LayerKind, LayerShape

# In the order in which modules of PyTorch give them: weight, bias; weight_ih, bias_ih, weight_hh, bias_hh.
ARRAYS = ("weights", "biases", "hidden_weights", "hidden_biases")
NORMS = (LayerKind.LAYER_NORM, LayerKind.RMS_NORM)
GATES = {LayerKind.LSTM: 4, LayerKind.GRU: 3}
SIDES = ("height", "width")
SHAPE_NUMBERS = tuple(name for name in LayerShape.__annotations__ if not name.startswith("_"))


def checked_shape(shape: Any) -> dict[str, int]:
    """The shape of a layer in a file, which has integers that a LayerShape can hold.

    Raises:
        ValueError: it has anything else.
    """
    given = dict(shape)
    for name, number in given.items():
        if name not in SHAPE_NUMBERS or not isinstance(number, int) or not 0 <= number <= MAX_LAYER_WIDTH:
            raise ValueError(f"a layer has {name!r}: {number!r} in its shape")
    return given


def array_shapes(
    kind: LayerKind, num_inputs: int, num_outputs: int, shape: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    """The shape of each array of such a layer, by name.

    Raises:
        ValueError: the numbers of a layer do not fit each other.
    """
    tokens = shape.get("num_tokens", 0) or 1
    inputs, outputs = num_inputs // tokens, num_outputs // tokens
    if kind == LayerKind.LINEAR:
        return {"weights": (outputs, inputs), "biases": (outputs,)}
    if kind == LayerKind.LAYER_NORM:
        return {"weights": (inputs,), "biases": (inputs,)}
    if kind == LayerKind.RMS_NORM:
        return {"weights": (inputs,)}
    if kind == LayerKind.CONV:
        channels, covered = num_outputs // math.prod(places(shape)), shape["kernel_height"] * shape["kernel_width"]
        return {"weights": (channels, shape["channels"] * covered), "biases": (channels,)}
    if kind not in GATES and kind != LayerKind.ATTENTION:
        return {}
    rows, hidden = (3 * inputs, inputs) if kind == LayerKind.ATTENTION else (GATES[kind] * outputs,) * 2
    return {
        "weights": (rows, inputs),
        "biases": (rows,),
        "hidden_weights": (hidden, outputs),
        "hidden_biases": (hidden,),
    }


def places(shape: Mapping[str, int]) -> tuple[int, int]:
    """Rows and columns of what a window gives for an image.

    Raises:
        ValueError: it has no place in the image.
    """
    found = []
    for side in SIDES:
        size = shape.get(side, 0) + 2 * shape.get(f"pad_{side}", 0)
        kernel, stride = shape.get(f"kernel_{side}", 0), shape.get(f"stride_{side}", 0)
        if kernel < 1 or stride < 1 or kernel > size:
            raise ValueError(f"a window of {kernel}, moved by {stride}, does not fit {size} values")
        found.append((size - kernel) // stride + 1)
    return found[0], found[1]


def is_optional(kind: LayerKind, name: str) -> bool:
    """Whether a layer may lack the array: absent biases are zero, and absent weights of a norm are one."""
    return name.endswith("biases") or kind in NORMS
