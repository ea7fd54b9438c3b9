"""The distribution of an agent's action in JAX, with the methods of distrax; distrax itself is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import jax
import jax.numpy as jnp

from doorstep._arguments import refuse, showing
from doorstep._native import ACTIONS


@final
class JaxMultiDiscrete:
    """Several independent choices, each with logits of its own, as `MultiDiscrete` in PyTorch.

    It is used where programs for one action have `distrax.Categorical(logits)`. As those it is a pytree: functions that
    `jax.jit`, `jax.vmap` and `jax.lax.scan` transform take and return it.

    >>> import jax, jax.numpy as jnp
    >>> from doorstep.envs import JaxMultiDiscrete
    >>> distribution = JaxMultiDiscrete(jnp.zeros((3, 2, 19)))
    >>> actions = distribution.sample(seed=jax.random.key(0))
    >>> actions.shape, actions.dtype
    ((3, 2, 4), dtype('int32'))
    >>> (jnp.exp(distribution.log_prob(actions)) * 320).round().tolist()    # 4 * 8 * 5 * 2 actions
    [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]

    Args:
        logits: [..., sum(sizes)], floating point: the components side by side. Minus infinity excludes a choice.
        sizes: number of choices of each component. None: those of one agent's action.

    Raises:
        ArgumentError: the last dimension of the logits is not the sum of the sizes.
    """

    __repr__ = showing("sizes")

    def __init__(self, logits: jax.Array, sizes: Sequence[int] | None = None) -> None:
        self.sizes = tuple(ACTIONS if sizes is None else sizes)
        if logits.shape[-1] != sum(self.sizes):
            refuse("logits", f"of a last dimension of {sum(self.sizes)}", f"an array of the shape {list(logits.shape)}")
        ends = [sum(self.sizes[: index + 1]) for index in range(len(self.sizes) - 1)]
        self._logarithms = [jax.nn.log_softmax(part) for part in jnp.split(logits, ends, -1)]

    def sample(self, *, seed: Any, sample_shape: int | Sequence[int] = ()) -> jax.Array:
        """int32 [*sample_shape, ..., components], with a key of JAX as `seed`."""
        keys = jax.random.split(seed, len(self.sizes))
        leading = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return jnp.stack([
            jax.random.categorical(key, part, shape=(*leading, *part.shape[:-1])).astype(jnp.int32)
            for key, part in zip(keys, self._logarithms, strict=True)
        ], -1)  # fmt: skip

    def log_prob(self, value: jax.Array) -> jax.Array:
        """[...]: of actions [..., components], integers, summed over the components."""
        total: Any = 0
        for index, part in enumerate(self._logarithms):
            chosen = value[..., index, None]
            part = jnp.broadcast_to(part, (*chosen.shape[:-1], part.shape[-1]))
            total = total + jnp.take_along_axis(part, chosen, -1)[..., 0]
        return total

    def sample_and_log_prob(self, *, seed: Any, sample_shape: int | Sequence[int] = ()) -> tuple[jax.Array, jax.Array]:
        """Actions, and their `log_prob()`."""
        actions = self.sample(seed=seed, sample_shape=sample_shape)
        return actions, self.log_prob(actions)

    def entropy(self) -> jax.Array:
        """[...]: summed over the components."""
        return sum(-_weighted(part, part) for part in self._logarithms)

    def mode(self) -> jax.Array:
        """int32 [..., components]: the likeliest choices."""
        return jnp.stack([part.argmax(-1).astype(jnp.int32) for part in self._logarithms], -1)

    def kl_divergence(self, other: JaxMultiDiscrete) -> jax.Array:
        """[...]: of another one from this one, summed over the components."""
        pairs = zip(self._logarithms, other._logarithms, strict=True)
        return sum(_weighted(part, part - of_other) for part, of_other in pairs)


def _flatten(distribution: JaxMultiDiscrete) -> tuple[tuple[list[jax.Array]], tuple[int, ...]]:
    return (distribution._logarithms,), distribution.sizes


def _unflatten(sizes: tuple[int, ...], children: tuple[list[jax.Array]]) -> JaxMultiDiscrete:
    distribution = object.__new__(JaxMultiDiscrete)
    distribution.sizes, (distribution._logarithms,) = sizes, children
    return distribution


jax.tree_util.register_pytree_node(JaxMultiDiscrete, _flatten, _unflatten)


def _weighted(logarithms: jax.Array, values: jax.Array) -> jax.Array:
    """The mean of values; those of excluded choices, which may be infinite, do not count."""
    probabilities = jnp.exp(logarithms)
    return jnp.where(probabilities > 0, probabilities * jnp.where(probabilities > 0, values, 0), 0).sum(-1)
