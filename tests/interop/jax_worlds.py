"""Actions for worlds inside JAX programs, and comparisons of their bits. Needs jax."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tests.scenes import random_actions

import doorstep


def actions_of(steps: int, num_worlds: int, num_agents: int = 2, seed: int = 1) -> Any:
    """Random actions, int32 [steps, num_worlds, num_agents, 4]."""
    return jnp.asarray(random_actions(seed, steps, num_worlds, num_agents))


def assert_same(state: Any, other: Any) -> None:
    """Two trees have the same bytes."""
    leaves, others = jax.tree_util.tree_leaves(state), jax.tree_util.tree_leaves(other)
    assert len(leaves) == len(others)
    for leaf, expected in zip(leaves, others, strict=True):
        assert np.asarray(leaf).tobytes() == np.asarray(expected).tobytes()


def same_bits_as(sim: doorstep.Simulator, state: Any) -> None:
    """The tensors of a state are those of a simulator."""
    for name, tensor in state.tensors.items():
        assert np.asarray(tensor).tobytes() == sim.tensors[name].to_numpy().tobytes(), name
