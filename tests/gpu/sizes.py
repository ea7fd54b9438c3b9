"""How much the tests and measurements on a GPU do. A rehearsal runs them on the stand-in driver of tests/cuda, which
executes kernels on one core, so it does little; DOORSTEP_GPU_REHEARSAL asks for one, and says how many times as long
programs may take."""

from __future__ import annotations

import os
from typing import TypeVar

Size = TypeVar("Size")

REHEARSAL = "DOORSTEP_GPU_REHEARSAL"
IS_REHEARSAL = REHEARSAL in os.environ
PATIENCE = float(os.environ.get(REHEARSAL, 1))
AGENTS = (1, 2, 3, 5, 8) if IS_REHEARSAL else tuple(range(1, 9))


def sized(full: Size, rehearsed: Size) -> Size:
    """What to use on a GPU, and in a rehearsal."""
    return rehearsed if IS_REHEARSAL else full
