"""The arrays of a layer: their names and shapes, which are PyTorch's, and which of them may be absent."""

from __future__ import annotations

from doorstep._native._generated import LayerKind

# In the order in which modules of PyTorch give them: weight, bias; weight_ih, bias_ih, weight_hh, bias_hh.
ARRAYS = ("weights", "biases", "hidden_weights", "hidden_biases")
NORMS = (LayerKind.LAYER_NORM, LayerKind.RMS_NORM)
GATES = {LayerKind.LSTM: 4, LayerKind.GRU: 3}


def array_shapes(kind: LayerKind, num_inputs: int, num_outputs: int) -> dict[str, tuple[int, ...]]:
    """The shape of each array of such a layer, by name."""
    if kind == LayerKind.LINEAR:
        return {"weights": (num_outputs, num_inputs), "biases": (num_outputs,)}
    if kind == LayerKind.LAYER_NORM:
        return {"weights": (num_inputs,), "biases": (num_inputs,)}
    if kind == LayerKind.RMS_NORM:
        return {"weights": (num_inputs,)}
    if kind not in GATES:
        return {}
    rows = GATES[kind] * num_outputs
    return {
        "weights": (rows, num_inputs),
        "biases": (rows,),
        "hidden_weights": (rows, num_outputs),
        "hidden_biases": (rows,),
    }


def is_optional(kind: LayerKind, name: str) -> bool:
    """Whether a layer may lack the array: absent biases are zero, and absent weights of a norm are one."""
    return name.endswith("biases") or kind in NORMS
