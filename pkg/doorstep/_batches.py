"""What states of worlds outside a simulator have in common, whatever the framework of their tensors."""

from __future__ import annotations

from doorstep._native import TENSORS, ActionCheck
from doorstep.errors import ArgumentError
from doorstep.simulator import Simulator

NAMES = tuple(row.name for row in TENSORS)
INPUTS = ("resets", "actions")  # which a step writes too
# These are written when an episode ends, and keep their value until the next one does.
OUTLIVING = NAMES[NAMES.index("final_steps_remaining") :]
FLAT = ("observations", "final_observations")  # which a step writes only if they are there


def check_never_raises(sim: Simulator) -> None:
    """Refuses a simulator whose steps may raise: what runs within a program cannot."""
    settings = sim._settings
    if settings["action_check"] == ActionCheck.RAISE or settings["strict"]:
        raise ArgumentError(
            "the simulator's steps may raise (action_check='raise' or strict=True); a step within a program cannot",
            argument="sim",
            hint="make the simulator with action_check='clamp' or 'off', and strict=False",
        )
