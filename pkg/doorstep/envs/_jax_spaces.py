"""Spaces in the manner of gymnax, which has none for actions of several components."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from doorstep._action_forms import NUM_ACTIONS
from doorstep._native import ACTIONS


@dataclass(frozen=True, eq=False)
class Box:
    """Arrays whose elements are from `low` to `high`, which broadcast to their shape."""

    low: Any
    high: Any
    shape: tuple[int, ...]
    dtype: Any

    def sample(self, key: jax.Array) -> jax.Array:
        """Uniform."""
        if jnp.issubdtype(self.dtype, jnp.integer):
            return jax.random.randint(key, self.shape, self.low, self.high + 1, self.dtype)
        return jax.random.uniform(key, self.shape, self.dtype, self.low, self.high)

    def contains(self, x: jax.Array) -> jax.Array:
        return jnp.all((x >= self.low) & (x <= self.high))


@dataclass(frozen=True)
class MultiDiscrete:
    """Integers, each from 0 to its number in `nvec` - 1; int32, of the shape of `nvec`, which is nested tuples."""

    nvec: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(jnp.shape(jnp.asarray(self.nvec)))

    @property
    def dtype(self) -> Any:
        return jnp.int32

    def sample(self, key: jax.Array) -> jax.Array:
        """Uniform."""
        return jax.random.randint(key, self.shape, 0, jnp.asarray(self.nvec), jnp.int32)

    def contains(self, x: jax.Array) -> jax.Array:
        return jnp.all((x >= 0) & (x < jnp.asarray(self.nvec)))


class Discrete(MultiDiscrete):
    """One integer, from 0 to `n` - 1."""

    @property
    def n(self) -> int:
        return int(self.nvec)


@dataclass(frozen=True)
class _Several:
    spaces: Any

    @property
    def num_spaces(self) -> int:
        return len(self.spaces)

    def sample(self, key: jax.Array) -> Any:
        keys = iter(jax.random.split(key, self.num_spaces))
        return jax.tree_util.tree_map(lambda space: space.sample(next(keys)), self.spaces)

    def contains(self, x: Any) -> jax.Array:
        found = jax.tree_util.tree_map(lambda space, value: space.contains(value), self.spaces, x)
        return jnp.all(jnp.stack(jax.tree_util.tree_leaves(found)))


class Tuple(_Several):
    """A tuple with a space for each element."""


class Dict(_Several):
    """A dictionary with a space for each name."""


def action_space(form: str, num_agents: int, *, by_agent: bool) -> Any:
    """Of the actions of agents, side by side or with a dimension of agents."""
    components = tuple(ACTIONS)
    if form == "tuple":
        if by_agent:
            return Tuple(tuple(MultiDiscrete((size,) * num_agents) for size in components))
        return Tuple(tuple(map(Discrete, components * num_agents)))
    if form == "discrete":
        one = NUM_ACTIONS
        return MultiDiscrete((one,) * num_agents) if by_agent or num_agents > 1 else Discrete(one)
    return MultiDiscrete((components,) * num_agents if by_agent else components * num_agents)


def for_gymnax(space: Any) -> Any:
    """The space, an instance also of gymnax's class of that name if the program has imported gymnax.

    Programs ask `isinstance(space, gymnax.environments.spaces.Discrete)`; others do not need gymnax.
    """
    theirs = getattr(sys.modules.get("gymnax.environments.spaces"), type(space).__name__, None)
    if theirs is None:
        return space
    both: Any = object.__new__(type(type(space).__name__, (type(space), theirs), {}))
    vars(both).update(vars(space))
    return both
