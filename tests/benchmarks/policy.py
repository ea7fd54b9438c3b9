"""Native policies against PyTorch on one thread: a network, and the sampling of four components.

    python tests/benchmarks/policy.py [--rounds 15] [--network tanh]

Machines are shared and noisy, so the sides take turns within a round, speeds are per CPU-second, and every figure is a
median over the rounds; ratios are medians of the ratios within a round.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import doorstep
from doorstep._native.calls import check
from doorstep._native.library import load
from doorstep._native.policies import SAMPLING, SAMPLING_KEY, PolicyRows, address_of
from doorstep.policy import Branch, SamplingParams

NUM_INPUTS = 94
SIZES = tuple(doorstep.ACTIONS)
BATCHES = (1, 16, 1024)
SECONDS = 0.1  # CPU time of a side in a round

Side = Callable[[], object]


def perceptron(activation: type[nn.Module]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs in (NUM_INPUTS, 256, 256):
        layers += [nn.Linear(inputs, 256), activation()]
    return nn.Sequential(*layers, nn.Linear(256, sum(SIZES)))


def with_head(body: nn.Module, outputs: int, hidden: int = 128) -> nn.Sequential:
    return nn.Sequential(body, nn.Linear(outputs, hidden), nn.ReLU(), nn.Linear(hidden, sum(SIZES)))


def convolution() -> nn.Sequential:
    """Two convolutions of the lidar, beside the whole observation."""
    convolved = (nn.Conv2d(1, 32, (5, 2)), nn.ReLU(), nn.Conv2d(32, 32, (5, 1), (2, 1)), nn.ReLU())
    lidar = nn.Sequential(nn.Unflatten(1, (1, 30, 2)), *convolved, nn.Flatten())
    return with_head(Branch(NUM_INPUTS, slice(32, 92), lidar), 32 * 11 + NUM_INPUTS)


def attention() -> nn.Sequential:
    """An encoder layer of six entities, beside the whole observation."""
    encoder = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    entities = nn.Sequential(nn.Unflatten(1, (6, 3)), nn.Linear(3, 32), encoder, nn.Flatten())
    return with_head(Branch(NUM_INPUTS, slice(11, 29), entities), 6 * 32 + NUM_INPUTS)


def pixels() -> nn.Sequential:
    """The convolutions of Mnih et al. (2015) on 3 x 64 x 64 values."""
    convolved = (nn.Conv2d(3, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU())
    return with_head(nn.Sequential(nn.Unflatten(1, (3, 64, 64)), *convolved, nn.Flatten()), 64 * 4 * 4, 512)


NETWORKS: dict[str, Callable[[], nn.Sequential]] = {
    "tanh": lambda: perceptron(nn.Tanh),
    "relu": lambda: perceptron(nn.ReLU),
    "convolution": convolution,
    "attention": attention,
    "pixels": pixels,
}


def make_sides(net: nn.Sequential, batch: int) -> dict[str, Side]:
    """The same work in the library, called as native code calls it and from Python, and in PyTorch."""
    policy = doorstep.load_policy(net, sampling=SamplingParams(seed=1))
    observations = torch.rand(batch, 1, policy.num_inputs) * 2 - 1
    flat, array = observations.reshape(batch, -1), observations.numpy()

    def components() -> Any:
        return net(flat).split(SIZES, dim=-1)

    def act_in_torch() -> object:
        """Gumbel's trick, the fastest way: the largest of logits plus noise is a sample, and all noise is one call."""
        logits = net(flat)
        noisy = logits - torch.empty_like(logits).exponential_().log_()
        return torch.stack([component.argmax(-1) for component in noisy.split(SIZES, dim=-1)], -1)

    def act_with_multinomial() -> object:
        return torch.cat([torch.multinomial(component.softmax(-1), 1) for component in components()], -1)

    def act_with_categorical() -> object:
        return torch.stack([torch.distributions.Categorical(logits=one).sample() for one in components()], -1)

    traced = torch.jit.freeze(torch.jit.trace(net.eval(), flat))

    def act_traced() -> object:
        logits = traced(flat)
        noisy = logits - torch.empty_like(logits).exponential_().log_()
        return torch.stack([component.argmax(-1) for component in noisy.split(SIZES, dim=-1)], -1)

    return {
        "native forward": c_call(policy, array, with_actions=False),
        "native act": c_call(policy, array, with_actions=True),
        "native act, from Python": lambda: policy.act(array),
        "native act, from Python of a tensor": lambda: policy.act(observations),
        "torch forward": without_gradients(lambda: net(flat)),
        "torch act, Gumbel": without_gradients(act_in_torch),
        "torch act, traced": without_gradients(act_traced),
        "torch act, multinomial": without_gradients(act_with_multinomial),
        "torch act, Categorical": without_gradients(act_with_categorical),
    }


def without_gradients(side: Side) -> Side:
    run: Side = torch.inference_mode()(side)
    return run


def c_call(policy: doorstep.Policy, array: NDArray[np.float32], *, with_actions: bool) -> Side:
    """A call of the C API, prepared as native code would."""
    batch = len(array)
    outputs = {
        "logits": np.empty((batch, sum(SIZES)), np.float32),
        "sampling": np.full(batch, np.array((1, 1), SAMPLING)),
        "keys": np.zeros(batch, SAMPLING_KEY),
        "actions": np.empty((batch, len(SIZES)), np.int32),
    }
    outputs["keys"]["step"] = np.arange(batch)
    names = ("sampling", "keys", "actions") if with_actions else ("logits",)
    rows = PolicyRows(batch, address_of(array), policy.num_inputs, None, 0)
    call = rows.call(**{name: address_of(outputs[name]) for name in names})
    function = load().ds_policy_act if with_actions else load().ds_policy_forward
    kept = (policy, array, outputs)

    def run() -> object:
        check(function(policy.native_handle, call))
        return kept

    return run


def calibrate(side: Side) -> int:
    """The number of calls that take SECONDS."""
    count = 1
    while True:
        taken = seconds(side, count)
        if taken > SECONDS / 4:
            return max(1, int(count * SECONDS / taken))
        count *= 2


def seconds(side: Side, count: int) -> float:
    begin = time.process_time()
    for _ in range(count):
        side()
    return time.process_time() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--network", choices=NETWORKS, default="tanh")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = NETWORKS[options.network]()
    print(f"{options.network}; rows per CPU-second and thread, medians of {options.rounds} rounds")
    print("| rows | side | rows/s | microseconds a call | native is faster by |\n|---|---|---|---|---|")
    for batch in BATCHES:
        sides = make_sides(net, batch)
        counts = {name: calibrate(side) for name, side in sides.items()}
        rounds = [
            {name: seconds(side, counts[name]) / counts[name] for name, side in sides.items()}
            for _ in range(options.rounds)
        ]
        for name in sides:
            taken = statistics.median(one[name] for one in rounds)
            native = "native forward" if name.endswith("forward") else "native act"
            ratio = statistics.median(one[name] / one[native] for one in rounds)
            print(f"| {batch:,} | {name} | {batch / taken:,.0f} | {taken * 1e6:.1f} | {ratio:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
