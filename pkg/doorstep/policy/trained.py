"""The policy that comes with doorstep: what `doorstep train` learned on the reference's levels."""

from __future__ import annotations

from pathlib import Path

from doorstep.policy.files import read_policy
from doorstep.policy.policy import Policy
from doorstep.policy.sampling import SamplingParams

FILE = Path(__file__).with_name("trained.safetensors")


def load_trained(*, sampling: SamplingParams | None = None) -> Policy:
    """The trained policy that comes with doorstep, for worlds with two agents. It needs no PyTorch.

    >>> import doorstep
    >>> policy = doorstep.load_trained()
    >>> sim = doorstep.Simulator(4, seed=1, flat_observations=True)
    >>> for _ in range(60):
    ...     sim.actions = policy.act(sim.observations)
    ...     sim.step()

    Args:
        sampling: how actions are chosen; None: as was measured to be best.
    """
    return read_policy(FILE, sampling=sampling)
