"""doorstep computes and draws the same without PyTorch and beside it, whichever of the two is loaded first."""

import pytest

# Steps, then draws with Embree, whose threads and C++ runtime are in the same process as PyTorch's.
RUN = """
import hashlib, sys
import doorstep
def run():
    with doorstep.Simulator(16, seed=5) as sim:
        sim.actions.to_numpy()[:] = 1
        if "torch" in sys.modules:
            sim.actions.to_torch().fill_(1)
            assert sim.actions.to_torch().sum() == sim.actions.to_numpy().sum()
        for _ in range(20):
            sim.step()
        print(sim.hash(), hashlib.sha256(sim.render(width=64, height=48)).hexdigest())
run()
"""
TORCH_LATER = """
from doorstep import interop
interop.describe(doorstep.Simulator(1).rewards)
torch = __import__("torch")  # not by the process that this one is forked from
assert interop.describe(torch.zeros(3)).library == "torch"
run()
"""


def test_results_do_not_depend_on_what_is_loaded_first(run_python):
    pytest.importorskip("torch")
    alone, *beside = run_python(RUN + TORCH_LATER).splitlines()
    beside += run_python("import torch; torch.ones(2, 2) @ torch.ones(2, 2)\n" + RUN).splitlines()
    assert beside == [alone] * 2
