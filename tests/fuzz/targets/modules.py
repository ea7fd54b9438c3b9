"""Modules of PyTorch, drawn by the seed that an input is: a policy gives what its module gives, or refuses it."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

import doorstep

Draw: TypeAlias = Callable[[random.Random, tuple[int, ...]], nn.Module]  # of a module that takes rows of this shape

MOST_VALUES = 3000  # of a row
SCALES = (1e-3, 1.0, 100.0)  # of rows
ALLOWED = 1e-4, 50  # differences from double precision: of the largest logit, or times those of PyTorch
ACTIVATIONS: tuple[Callable[[random.Random], nn.Module], ...] = (
    *(lambda _, kind=kind: kind() for kind in (nn.ReLU, nn.ReLU6, nn.SELU, nn.SiLU, nn.Mish, nn.Sigmoid, nn.Tanh)),
    *(lambda _, kind=kind: kind() for kind in (nn.Hardsigmoid, nn.Hardswish, nn.Softsign, nn.Identity, nn.Dropout)),
    lambda chance: nn.LeakyReLU(chance.choice((0.01, 0.0, -0.5, 1.0, 2.0))),
    lambda chance: chance.choice((nn.ELU, nn.CELU))(chance.choice((1.0, 0.3, 2.0, -1.0))),
    lambda chance: nn.Softplus(chance.choice((1.0, 0.3, 5.0, 0.01)), chance.choice((10.0, 20.0, 30.0))),
    lambda chance: nn.GELU(chance.choice(("none", "tanh"))),
)


class Modules:
    def inputs(self) -> Sequence[bytes]:
        return [str(seed).encode() for seed in range(8)]

    def change(self, data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
        return str(chance.randrange(2**62)).encode()

    def run(self, data: bytes) -> str:
        chance = random.Random(int(data))
        torch.manual_seed(int(data))
        module, width = _draw_module(chance)
        policy = doorstep.load_policy(module)
        for scale in SCALES:
            rows = scale * torch.randn(chance.choice((1, 3, 8, 17, 33)), width)
            _compare(np.asarray(policy.forward(rows.numpy())), module, rows)
        return "the same logits"

    def close(self) -> None:
        pass


@torch.no_grad()  # type: ignore[untyped-decorator]
def _compare(logits: Any, module: nn.Module, rows: torch.Tensor) -> None:
    given, exact = module(rows).numpy(), copy.deepcopy(module).double()(rows.double()).numpy()
    assert logits.shape == given.shape
    share, times = ALLOWED
    allowed = max(share * np.abs(exact).max(), times * np.abs(given - exact).max(), 1e-6)
    assert np.abs(logits - exact).max() <= allowed, module


# ---- Drawing


@torch.no_grad()  # type: ignore[untyped-decorator]
def _draw_module(chance: random.Random) -> tuple[nn.Module, int]:
    """A module and how many values it takes."""
    width = chance.choice((94, 12, 24, 36, 60))
    modules: list[nn.Module] = []
    shape: tuple[int, ...] = (width,)
    for _ in range(chance.randint(1, 7)):
        try:
            module = chance.choice(_DRAWN)(chance, shape)
            given = tuple(nn.Sequential(*modules, module).eval()(torch.zeros(2, width)).shape[1:])
        except (RuntimeError, ValueError, IndexError, AssertionError):
            continue  # PyTorch refuses it here
        if given and math.prod(given) <= MOST_VALUES:
            modules.append(module)
            shape = given
    modules += [nn.Flatten(), nn.Linear(math.prod(shape), sum(doorstep.ACTIONS))]
    whole = nn.Sequential(*modules).eval()
    scale = chance.choice((1, 1, 0.1, 3, 10))
    for parameter in whole.parameters():
        parameter.mul_(scale)
    return whole, width


def _divisor(chance: random.Random, number: int) -> int:
    return chance.choice([one for one in range(1, number + 1) if number % one == 0])


def _activation(chance: random.Random, shape: tuple[int, ...]) -> nn.Module:
    return chance.choice(ACTIVATIONS)(chance)


def _linear(chance: random.Random, shape: tuple[int, ...]) -> nn.Module:
    return nn.Linear(shape[-1], chance.choice((1, 3, 4, 6, 8, 12, 16, 17, 24, 33)), bias=chance.random() < 0.7)


def _layer_norm(chance: random.Random, shape: tuple[int, ...]) -> nn.Module:
    has_weight, has_bias = chance.random() < 0.7, chance.random() < 0.6
    return nn.LayerNorm(shape[-1], chance.choice((1e-5, 1e-3, 1.0)), elementwise_affine=has_weight, bias=has_bias)


def _rms_norm(chance: random.Random, shape: tuple[int, ...]) -> nn.Module:
    return nn.RMSNorm(shape[-1], chance.choice((1e-5, 1.0)), elementwise_affine=chance.random() < 0.7)


def _flatten(chance: random.Random, shape: tuple[int, ...]) -> nn.Module:
    return nn.Flatten(*chance.choice(((), (1,), (2, -1), (1, 2), (-2, -1))))


def _unflatten(chance: random.Random, shape: tuple[int, ...]) -> nn.Module:
    first = _divisor(chance, shape[-1])
    second = _divisor(chance, shape[-1] // first)
    return nn.Unflatten(chance.choice((-1, 1)), chance.choice(((first, shape[-1] // first), (first, second, -1))))


def _window(chance: random.Random, shape: tuple[int, ...]) -> nn.Module:
    sizes = tuple(chance.randint(1, 3) for _ in shape[1:])
    stride, pad = chance.choice((1, 2)), chance.choice((0, 0, 1))
    kinds: dict[int, Sequence[Any]] = {
        2: (nn.Conv1d, nn.MaxPool1d, nn.AvgPool1d),
        3: (nn.Conv2d, nn.MaxPool2d, nn.AvgPool2d),
    }
    convolution, *pools = kinds.get(len(shape), (nn.Conv2d, nn.MaxPool2d))
    if chance.random() < 0.4:
        return chance.choice(pools)(sizes, stride, pad)
    padding = chance.choice((pad, "same", "valid"))
    return convolution(shape[0], chance.choice((1, 2, 4)), sizes, stride, padding, bias=chance.random() < 0.7)


def _encoder(chance: random.Random, shape: tuple[int, ...]) -> nn.Module:
    return nn.TransformerEncoderLayer(
        shape[-1], _divisor(chance, shape[-1]), chance.choice((4, 8)), activation=chance.choice(("relu", "gelu")),
        batch_first=True, norm_first=chance.random() < 0.5, bias=chance.random() < 0.8,
    )  # fmt: skip


_DRAWN: tuple[Draw, ...] = (
    *(_activation, _activation, _linear, _linear, _layer_norm, _rms_norm),
    *(_flatten, _unflatten, _unflatten, _window, _window, _encoder),
)
