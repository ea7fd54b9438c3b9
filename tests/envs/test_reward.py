"""Rewards that environments are given: terms that the simulator applies, and functions of a step's tensors."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from doorstep import Rewards
from doorstep.envs import EscapeRoomVectorEnv
from doorstep.errors import ArgumentError

TERMS = Rewards(progress=0.5, idle=-0.25)


def rewards_of(env: EscapeRoomVectorEnv, steps: int = 12) -> np.ndarray:
    env.reset(seed=3)
    generator = np.random.default_rng(0)
    return np.array([env.step(generator.integers(0, 2, env.action_space.shape))[1] for _ in range(steps)])


def environment(**options: Any) -> EscapeRoomVectorEnv:
    return EscapeRoomVectorEnv(4, seed=3, episode_length=5, **options)


def double(step: Any) -> Any:
    return 2.0 * step.rewards


@pytest.mark.parametrize("agents", ["joint", "rows"])
def test_terms_and_the_function_that_says_the_same_give_the_same_rewards(agents: Any) -> None:
    plain = rewards_of(environment(agents=agents))
    terms = rewards_of(environment(agents=agents, reward=Rewards(progress=0.1, idle=-0.01)))
    function = rewards_of(environment(agents=agents, reward=double))
    np.testing.assert_allclose(function, 2.0 * plain, rtol=1e-6)
    np.testing.assert_allclose(terms, function, rtol=1e-5)
    assert np.abs(plain).max() > 0


def test_a_function_reads_what_the_step_yielded() -> None:
    seen = rewards_of(environment(reward=lambda step: 0.1 * step.truncations[..., 0]), 6)
    assert seen.dtype == np.float32
    np.testing.assert_allclose(seen, np.asarray([0, 0, 0, 0, 0.1, 0], np.float32)[:, None].repeat(4, axis=1))


def test_copies_and_seeded_resets_keep_the_reward() -> None:
    for reward in (TERMS, double):
        env = environment(reward=reward)
        expected = rewards_of(env)
        np.testing.assert_array_equal(rewards_of(env), expected)
        np.testing.assert_array_equal(rewards_of(copy.deepcopy(env)), expected)


@pytest.mark.parametrize(
    ("reward", "told"),
    [
        (lambda step: 3.0, "returned float"),
        (lambda step: step.rewards[:, :1], "returned float32"),
        (lambda step: step.dones, "must return floats"),
        (lambda step: step.rewards + np.float32(np.nan), "not finite"),
        (lambda step: step.rewards + np.float32(np.inf), "not finite"),
    ],
)
def test_a_function_that_returns_something_else_is_refused_at_the_first_step(reward: Any, told: str) -> None:
    env = environment(reward=reward)
    env.reset()
    with pytest.raises(ArgumentError, match=told) as caught:
        env.step(env.action_space.sample())
    assert caught.value.argument == "reward"


def in_torch(rewards: Any) -> Any:
    return pytest.importorskip("torch").tensor(np.asarray(rewards)).requires_grad_()


def in_jax(rewards: Any) -> Any:
    return pytest.importorskip("jax").numpy.asarray(np.asarray(rewards))


FORMS: dict[str, Any] = {
    "numpy": np.asarray,
    "float64": lambda rewards: np.asarray(rewards, np.float64)[..., 0],
    "list": lambda rewards: rewards.tolist(),
    "torch": in_torch,
    "jax": in_jax,
}


def vector_environment(reward: Any) -> list[float]:
    return [float(one) for one in rewards_of(environment(reward=reward)).ravel()]


def torch_environment(reward: Any) -> list[float]:
    torch = pytest.importorskip("torch")
    from doorstep.envs import TorchEscapeRoomVectorEnv

    env = TorchEscapeRoomVectorEnv(4, seed=3, reward=reward)
    env.reset(seed=3)
    actions = torch.tensor((3, 0, 2, 0)).repeat(*env.action_space.shape[:-1], env.action_space.shape[-1] // 4)
    return [one for _ in range(3) for one in env.step(actions)[1].flatten().tolist()]


def training(reward: Any) -> list[float]:
    pytest.importorskip("torch")
    from tests.pkg.training.runs import small

    from doorstep.training import Trainer

    trainer = Trainer(small(), reward_function=reward)
    trainer.update()
    return [one for rewards in trainer._rollout.rewards.tolist() for one in rewards]


@pytest.mark.parametrize("user", [vector_environment, torch_environment, training])
@pytest.mark.parametrize("form", FORMS)
def test_a_function_returns_numbers_in_any_form(form: str, user: Any) -> None:
    expected = user(double)
    assert any(expected)
    assert user(lambda step: FORMS[form](double(step))) == expected
    for wrong, told in (
        (lambda step: [[1.0], [1.0, 2.0]], r"reward returned \[\[1.0\], \[1.0, 2.0\]\]; it must return floats"),
        (lambda step: {"a": 1.0}, "reward returned object"),
        (lambda step: None, "reward returned object"),
    ):
        with pytest.raises(ArgumentError, match=told) as caught:
            user(wrong)
        assert caught.value.argument == "reward"


def test_an_unknown_tensor_is_named() -> None:
    env = environment(reward=lambda step: step.reward)
    env.reset()
    with pytest.raises(AttributeError, match=r"no 'reward'; did you mean 'rewards'"):
        env.step(env.action_space.sample())


@pytest.mark.parametrize("reward", ["sparse", 1.0, {"goal": 1.0}])
def test_what_is_neither_terms_nor_a_function_is_refused(reward: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        environment(reward=reward)
    assert caught.value.argument == "reward"
