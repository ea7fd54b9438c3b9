"""Spaces in the manner of gymnax, which has none for actions of several components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp


@final
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


@final
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


@final
@dataclass(frozen=True)
class Dict:
    """A dictionary with a space for each name."""

    spaces: Mapping[str, Box]

    @property
    def num_spaces(self) -> int:
        return len(self.spaces)

    def sample(self, key: jax.Array) -> dict[str, jax.Array]:
        keys = jax.random.split(key, len(self.spaces))
        return {name: space.sample(keys[i]) for i, (name, space) in enumerate(self.spaces.items())}

    def contains(self, x: Mapping[str, jax.Array]) -> jax.Array:
        return jnp.all(jnp.stack([space.contains(x[name]) for name, space in self.spaces.items()]))
