"""doorstep computes and draws the same without PyTorch and beside it, whichever of the two is imported first."""

from __future__ import annotations

import pytest
from tests.conftest import RunPython

ALONE = "import doorstep"
ORDERS = {
    "torch first": "import torch; torch.ones(2, 2) @ torch.ones(2, 2); import doorstep",
    "doorstep first": "import doorstep; import torch",
    "torch after a picture": "import doorstep\nwith doorstep.Simulator(1) as sim: sim.render()\nimport torch",
}
# Steps, then draws with Embree, whose threads and C++ runtime are in the same process as PyTorch's.
RUN = """
import hashlib, sys
with doorstep.Simulator(16, seed=5) as sim:
    sim.actions.to_numpy()[:] = 1
    if "torch" in sys.modules:
        sim.actions.to_torch().fill_(1)
        assert sim.actions.to_torch().sum() == sim.actions.to_numpy().sum()
    for _ in range(20):
        sim.step()
    print(sim.hash(), hashlib.sha256(sim.render(width=64, height=48)).hexdigest())
"""


@pytest.mark.parametrize("order", ORDERS)
def test_results_do_not_depend_on_what_is_imported_first(
    run_python: RunPython, run_new_python: RunPython, order: str
) -> None:
    pytest.importorskip("torch")
    alone = run_python(ALONE + RUN)
    assert len(alone.split()) == 2
    assert run_new_python(ORDERS[order] + RUN) == alone
