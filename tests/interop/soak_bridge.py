"""Many extractions and many new tensors leave reference counts and memory as they were.

    python -m tests.interop.soak_bridge [--reads 1e7] [--tensors 1e6]
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import doorstep
from doorstep import ArgumentError, interop

LEEWAY = 4 << 20  # bytes that an allocator may keep for itself


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def watch(name: str, objects: Sequence[object], body: Callable[[], object], count: int) -> None:
    """Runs a body, and asserts that reference counts of objects and the memory of the process are as before."""
    for _ in range(min(count, 10_000)):
        body()
    gc.collect()
    before, references = resident_bytes(), [sys.getrefcount(o) for o in objects]
    for _ in range(count):
        body()
    gc.collect()
    assert [sys.getrefcount(o) for o in objects] == references, name
    grown = resident_bytes() - before
    assert grown < LEEWAY, f"{name}: {grown} bytes more after {count}"
    print(f"{name}: {count} times, {grown} bytes more")


def soak(reads: int, tensors: int) -> None:
    plain, leaf, array = torch.ones(4, 5), torch.ones(3, requires_grad=True), np.ones((4, 5))
    parameter, nothing, single = torch.nn.Parameter(plain), torch.zeros(0), torch.tensor(1)
    many: list[Any] = [plain, plain.t(), leaf, parameter, array, array.T, nothing, single]
    refused = torch._neg_view(plain)
    kept = [*many, refused, torch.Tensor, np.ndarray, torch.float32, True, None, interop.TensorDescription]

    def refuse() -> None:
        try:
            interop.describe(refused)
        except ArgumentError:
            return
        raise AssertionError("it was not refused")

    watch("describe_many", kept, lambda: interop.describe_many(many), reads // len(many))
    watch("signature", kept, lambda: interop.signature(plain), reads // 10)
    watch("properties", kept, lambda: interop.describe(plain).shape, reads // 10)
    watch("refusals", kept, refuse, reads // 1000)
    with doorstep.Simulator(2, num_threads=1) as sim:
        rewards = sim.rewards
        watch("to_torch", [*kept, rewards], rewards.to_torch, tensors)
    watch("zeros_like", kept, lambda: interop.zeros_like(plain), tensors)
    watch("empty_like", kept, lambda: interop.empty_like(array), tensors)
    assert doorstep.live_counts()["export"] == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reads", type=float, default=1e7)
    parser.add_argument("--tensors", type=float, default=1e6)
    options = parser.parse_args()
    soak(int(options.reads), int(options.tensors))


if __name__ == "__main__":
    main()
