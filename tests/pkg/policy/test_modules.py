"""Modules that a policy cannot evaluate are refused by their path and type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import doorstep

torch = pytest.importorskip("torch")

from tests.pkg.policy.networks import NUM_INPUTS, NUM_LOGITS, mlp  # noqa: E402
from torch import nn  # noqa: E402

from doorstep.policy import Heads  # noqa: E402


class Scaled(nn.Linear):  # type: ignore[misc]
    """A module that is no Linear, although it is one for isinstance()."""

    def forward(self, values: Any) -> Any:
        return 2 * super().forward(values)


def with_hook() -> nn.Module:
    net = mlp(8)
    net[1].register_forward_hook(lambda module, inputs, outputs: None)
    return net


def strided() -> nn.Module:
    net = nn.Linear(NUM_INPUTS, NUM_LOGITS)
    net.weight = nn.Parameter(torch.zeros(NUM_INPUTS, NUM_LOGITS).T)
    return net


def mixed() -> nn.Module:
    net = nn.Linear(NUM_INPUTS, NUM_LOGITS)
    net.bias = nn.Parameter(net.bias.bfloat16())
    return net


LAST = nn.Linear(8, NUM_LOGITS)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "convolution": (lambda: nn.Sequential(mlp(8), nn.Conv1d(1, 1, 1)), r"module\.1 is a Conv1d; .*: Sequential, H"),
    "nested": (lambda: nn.Sequential(nn.Sequential(nn.Softplus()), LAST), r"module\.0\.0 is a Softplus"),
    "dropout": (lambda: [nn.Linear(NUM_INPUTS, 8), nn.Dropout(), LAST], r"module\[1\] is a Dropout"),
    "list": (lambda: nn.ModuleList([nn.Linear(NUM_INPUTS, 8), nn.ReLU6(), LAST]), r"module\[1\] is a ReLU6"),
    "function": (lambda: torch.tanh, r"module is a builtin_function_or_method"),
    "derived": (lambda: Scaled(NUM_INPUTS, NUM_LOGITS), r"module is a Scaled"),
    "hook": (with_hook, r"module\.1 has hooks"),
    "bidirectional": (lambda: [nn.LSTM(NUM_INPUTS, 4, bidirectional=True), LAST], r"module\[0\] has two directions"),
    "projection": (lambda: [nn.LSTM(NUM_INPUTS, 9, proj_size=8), LAST], r"module\[0\] has a projection"),
    "plane": (lambda: nn.Sequential(nn.LayerNorm((2, 47)), mlp()), r"module\.0 normalises over 2 dimensions"),
    "double": (lambda: mlp(8).double(), r"a tensor of module\.0 is torch\.float64; it must be torch\.float32 or"),
    "half": (lambda: mlp(8).half(), r"a tensor of module\.0 is torch\.float16"),
    "meta": (lambda: mlp(8).to("meta"), r"a tensor of module\.0 is torch\.float32 on meta"),
    "strided": (strided, r"a tensor of module is not contiguous"),
    "mixed": (mixed, r"a tensor of module is torch\.float32 and torch\.bfloat16; it must be of one dtype"),
    "widths": (lambda: [nn.Linear(NUM_INPUTS, 7), nn.Tanh(), LAST], r"module\[2\] takes 8 values; .* gives 7"),
    "logits": (lambda: nn.Linear(NUM_INPUTS, 20), r"module gives 20 values; it must give 19 logits \(4 \+ 8"),
    "empty": (lambda: nn.Sequential(), r"module gives 0 values"),
    "after heads": (
        lambda: nn.Sequential(Heads([nn.Linear(NUM_INPUTS, size) for size in doorstep.ACTIONS]), nn.Tanh()),
        r"module\.1 follows the heads",
    ),
    "derived head": (
        lambda: Heads([Scaled(NUM_INPUTS, size) for size in doorstep.ACTIONS]),
        r"module\.heads\.0 is a Scaled, but heads are Linear",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_modules_are_refused(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(doorstep.ArgumentError, match=f"^{message}") as raised:
        doorstep.Policy.from_torch(make())
    assert raised.value.argument == "module"


def test_heads_have_the_sizes_of_the_components() -> None:
    for sizes in ((4, 8, 5), (8, 4, 5, 2), (19,)):
        with pytest.raises(doorstep.ArgumentError, match=r"^heads is .* with 4, 8, 5, 2 outputs"):
            Heads([nn.Linear(8, size) for size in sizes])


def test_too_many_layers_are_refused() -> None:
    with pytest.raises(doorstep.ArgumentError, match="count is 301; it must be 1 to 256"):
        doorstep.Policy.from_torch([*[nn.Linear(NUM_INPUTS, NUM_INPUTS)] * 300, nn.Linear(NUM_INPUTS, NUM_LOGITS)])


def test_pytorch_is_imported_only_to_read_a_module(run_python: Callable[..., str]) -> None:
    code = """
import sys, doorstep, doorstep.policy
doorstep.Policy, doorstep.policy.SamplingParams()
print("torch" in sys.modules)
"""
    assert run_python(code) == "False\n"
