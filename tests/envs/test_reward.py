"""Rewards that environments are given: terms that the simulator applies, and functions of a step's tensors."""

import numpy as np
import pytest
from tests.refuses import refuses

import doorstep.envs

pytest.importorskip("gymnasium")


def rewards_of(env, steps=12):
    env.reset(seed=3)
    generator = np.random.default_rng(0)
    return np.array([env.step(generator.integers(0, 2, env.action_space.shape))[1] for _ in range(steps)])


def environment(kind="EscapeRoomVectorEnv", **options):
    return getattr(doorstep.envs, kind)(4, seed=3, episode_length=5, **options)


def double(step):
    return 2.0 * step.rewards


def test_a_function_reads_what_the_step_yielded():
    seen = rewards_of(environment(reward=lambda step: 0.1 * step.truncations[..., 0]), 6)
    assert seen.dtype == np.float32
    np.testing.assert_allclose(seen, np.asarray([0, 0, 0, 0, 0.1, 0], np.float32)[:, None].repeat(4, axis=1))


FORMS = {
    "numpy": np.asarray,
    "float64": lambda rewards: np.asarray(rewards, np.float64)[..., 0],
    "list": lambda rewards: rewards.tolist(),
    "torch": lambda rewards: pytest.importorskip("torch").tensor(np.asarray(rewards)).requires_grad_(),
    "jax": lambda rewards: pytest.importorskip("jax").numpy.asarray(np.asarray(rewards)),
}
WRONG = [
    (lambda step: 3.0, "returned float"),
    (lambda step: step.rewards[:, :1], r"returned (torch\.)?float32"),
    (lambda step: step.dones, "must return floats"),
    (lambda step: step.rewards + np.float32(np.nan), "not finite"),
    (lambda step: step.rewards + np.float32(np.inf), "not finite"),
    (lambda step: [[1.0], [1.0, 2.0]], r"reward returned \[\[1.0\], \[1.0, 2.0\]\]; it must return floats"),
    (lambda step: {"a": 1.0}, "reward returned object"),
    (lambda step: None, "reward returned object"),
]


@pytest.mark.parametrize("kind", ["EscapeRoomVectorEnv", "TorchEscapeRoomVectorEnv"])
def test_a_function_returns_numbers_in_any_form_and_nothing_else(kind):
    """What has a gradient, as of a network, is not recorded by PyTorch."""
    pytest.importorskip("torch" if kind.startswith("Torch") else "numpy")
    expected = rewards_of(environment(reward=double))
    assert expected.any()
    for form, convert in FORMS.items():
        found = rewards_of(environment(kind, reward=lambda step, convert=convert: convert(double(step))))
        np.testing.assert_array_equal(found, expected, form)
    for wrong, told in WRONG:
        refuses(told, rewards_of, environment(kind, reward=wrong), argument="reward")


def test_an_unknown_tensor_is_named():
    env = environment(reward=lambda step: step.reward)
    env.reset()
    refuses(r"no 'reward'; did you mean 'rewards'", env.step, env.action_space.sample(), error=AttributeError)
