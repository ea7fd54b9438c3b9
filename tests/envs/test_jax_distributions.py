"""JaxMultiDiscrete is the distribution that MultiDiscrete is in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import doorstep

jax: Any = pytest.importorskip("jax")
torch: Any = pytest.importorskip("torch")

from doorstep.envs import JaxMultiDiscrete, MultiDiscrete  # noqa: E402

LOGITS = np.random.default_rng(0).normal(size=(5, 2, 19)).astype(np.float32)
LOGITS[0, 0, 3] = -np.inf  # the largest move amount is excluded
OTHERS = LOGITS + np.random.default_rng(1).normal(size=LOGITS.shape).astype(np.float32)


def test_it_is_the_distribution_of_pytorch() -> None:
    ours, theirs = JaxMultiDiscrete(LOGITS), MultiDiscrete(torch.from_numpy(LOGITS))
    actions = theirs.sample()
    np.testing.assert_allclose(ours.log_prob(actions.numpy()), theirs.log_prob(actions), rtol=1e-5)
    np.testing.assert_allclose(ours.entropy(), theirs.entropy(), rtol=1e-5)
    np.testing.assert_array_equal(ours.mode(), theirs.mode)
    expected = torch.distributions.kl_divergence(theirs, MultiDiscrete(torch.from_numpy(OTHERS)))
    np.testing.assert_allclose(ours.kl_divergence(JaxMultiDiscrete(OTHERS)), expected, rtol=1e-4)


def test_choices_are_as_frequent_as_they_are_likely() -> None:
    distribution = JaxMultiDiscrete(LOGITS[0, 0])
    actions, logarithms = jax.jit(lambda key: distribution.sample_and_log_prob(seed=key, sample_shape=(4000,)))(
        jax.random.key(0)
    )
    assert (actions.shape, actions.dtype, logarithms.shape) == ((4000, 4), np.int32, (4000,))
    for component, size in enumerate(doorstep.ACTIONS):
        first = sum(list(doorstep.ACTIONS)[:component])
        likely = np.exp(LOGITS[0, 0, first : first + size])
        frequencies = np.bincount(actions[:, component], minlength=size) / 4000
        np.testing.assert_allclose(frequencies, likely / likely.sum(), atol=0.03)
    assert 3 not in actions[:, 0]


def test_transformed_functions_take_and_return_it() -> None:
    returned = jax.vmap(jax.jit(JaxMultiDiscrete))(LOGITS)
    entropy = jax.jit(jax.vmap(lambda distribution: distribution.entropy()))(returned)
    np.testing.assert_allclose(entropy, JaxMultiDiscrete(LOGITS).entropy(), rtol=1e-6)
    assert returned.sizes == tuple(doorstep.ACTIONS)
    assert returned.sample(seed=jax.random.key(0), sample_shape=3).shape == (3, 5, 2, 4)


def test_gradients_of_excluded_choices_are_numbers() -> None:
    gradient = jax.grad(lambda logits: JaxMultiDiscrete(logits).entropy().sum())(LOGITS)
    assert np.isfinite(gradient).all()


def test_wrong_logits_are_refused() -> None:
    with pytest.raises(doorstep.ArgumentError) as caught:
        JaxMultiDiscrete(LOGITS[..., :-1])
    assert caught.value.argument == "logits"
