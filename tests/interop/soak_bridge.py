"""Many extractions, new tensors and steps leave reference counts and memory as they were.

python -m tests.interop.soak_bridge [READS] [TENSORS]
"""

import contextlib
import gc
import sys

import numpy as np
import torch
from tests.leaks import resident_bytes

import doorstep
from doorstep import ArgumentError, interop

LEEWAY = 4 << 20  # bytes that an allocator may keep for itself


def watch(name, objects, body, count):
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


def soak(reads, tensors):
    plain, leaf, array = torch.ones(4, 5), torch.ones(3, requires_grad=True), np.ones((4, 5))
    many = [plain, plain.t(), leaf, torch.nn.Parameter(plain), array, array.T, torch.zeros(0), torch.tensor(1)]
    refused, target = torch._neg_view(plain), np.zeros(80, np.uint8)
    kept = [*many, refused, target, torch.Tensor, np.ndarray, torch.float32, True, None, interop.TensorDescription]

    def refuse():
        with contextlib.suppress(ArgumentError):
            interop.describe(refused)
            raise AssertionError("it was not refused")

    watch("describe_many", kept, lambda: interop.describe_many(many), reads // len(many))
    watch("signature", kept, lambda: interop.signature(plain), reads // 10)
    watch("properties", kept, lambda: interop.describe(plain).shape, reads // 10)
    watch("refusals", kept, refuse, reads // 100)
    watch("copies", kept, lambda: interop.copy_to_pointer(plain, target.ctypes.data, 80), reads // 10)
    with doorstep.Simulator(2, num_threads=1) as sim:
        rewards = sim.rewards
        watch("to_torch", [*kept, rewards], rewards.to_torch, tensors)
        watch("step", [*kept, sim, sim._step_handle], sim.step, max(reads, 300_000))

    def refuse_to_step():
        with contextlib.suppress(doorstep.ClosedError):
            sim.step()
            raise AssertionError("it is closed")

    watch("refused steps", [*kept, sim, sim._step_handle], refuse_to_step, tensors)
    watch("zeros_like", kept, lambda: interop.zeros_like(plain), tensors)
    watch("empty_like", kept, lambda: interop.empty_like(array), tensors)
    assert doorstep.live_counts()["export"] == 0


if __name__ == "__main__":
    soak(*map(int, sys.argv[1:] or (10_000_000, 1_000_000)))
