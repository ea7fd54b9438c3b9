"""Loops that call environments as scripts of other projects do, changed as docs/how_to/other_scripts.md says."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep
import doorstep.envs

gymnasium: Any = pytest.importorskip("gymnasium")

PAGE = Path(__file__).resolve().parents[2] / "docs/how_to/other_scripts.md"
LENGTH, STEPS = 5, 12


def test_the_page_counts_the_lines_that_change() -> None:
    text = PAGE.read_text("utf-8")
    counted = re.findall(r"^\| .* \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    diffs = re.findall(r"^```diff\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    found = [
        tuple(str(len(re.findall(pattern, diff, re.MULTILINE))) for pattern in (r"^-(?!-- )", r"^\+")) for diff in diffs
    ]
    assert counted == [("0", "0"), *found]


def test_a_loop_of_cleanrl_reads_episodes_that_end() -> None:
    torch: Any = pytest.importorskip("torch")
    envs = gymnasium.make_vec(
        "doorstep/EscapeRoom-v0", num_envs=8, agents="rows", autoreset_mode="same_step", episode_length=LENGTH
    )
    torch.manual_seed(0)
    actor = torch.nn.Linear(int(np.prod(envs.single_observation_space.shape)), int(envs.single_action_space.nvec.sum()))
    actions = torch.zeros((STEPS, 8, *envs.single_action_space.shape))
    next_obs, _ = envs.reset(seed=1)
    returns, told = np.zeros(8, np.float32), []
    for step in range(STEPS):
        probabilities = doorstep.envs.MultiDiscrete(actor(torch.Tensor(next_obs)))
        action = probabilities.sample()
        actions[step] = action
        assert probabilities.log_prob(action).shape == probabilities.entropy().shape == (8,)
        next_obs, reward, terminations, truncations, infos = envs.step(action.cpu().numpy())
        returns += reward
        done = np.logical_or(terminations, truncations)
        if "final_info" in infos:
            ended, episodes = infos["_final_info"], infos["final_info"]
            np.testing.assert_array_equal(ended, done)
            np.testing.assert_allclose(episodes["episode_returns"][ended], returns[ended], rtol=1e-5)
            told += episodes["episode_lengths"][ended].tolist()
            returns[ended] = 0
    assert told == [LENGTH] * 8 * (STEPS // LENGTH)
    again = doorstep.envs.MultiDiscrete(actor(torch.zeros(STEPS * 8, 94))).log_prob(actions.long().reshape(-1, 4))
    assert again.shape == (STEPS * 8,)
    envs.close()


def test_a_program_of_purejaxrl_logs_the_returns_of_episodes() -> None:
    jax: Any = pytest.importorskip("jax")
    jnp = jax.numpy
    env: Any = doorstep.envs.EscapeRoomJaxEnv(agents="rows", flags="done", episode_length=LENGTH)
    params = env.default_params
    size = sum(env.action_space(params).nvec[0])
    weights = jax.random.normal(jax.random.key(0), (env.observation_space(params).shape[-1], size))

    def step(carry: Any, key: Any) -> Any:
        observations, states, returns = carry
        action_key, step_key = jax.random.split(key)
        distribution = doorstep.envs.JaxMultiDiscrete(observations @ weights)
        actions = distribution.sample(seed=action_key)
        keys = jax.random.split(step_key, 4)
        observations, states, reward, done, info = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
            keys, states, actions, params
        )
        returns = returns + reward
        logged = (done, returns, info["episode_returns"], distribution.log_prob(actions))
        return (observations, states, returns * (1 - done)), logged

    def rollout(key: Any) -> Any:
        observations, states = jax.vmap(env.reset, in_axes=(0, None))(jax.random.split(key, 4), params)
        start = (observations, states, jnp.zeros((4, env.num_agents)))
        return jax.lax.scan(step, start, jax.random.split(key, STEPS))[1]

    done, returns, told, log_probabilities = map(np.asarray, jax.jit(rollout)(jax.random.key(1)))
    assert done.shape == log_probabilities.shape == (STEPS, 4, 2)
    assert np.flatnonzero(done.all((1, 2))).tolist() == [LENGTH - 1, 2 * LENGTH - 1]
    np.testing.assert_allclose(returns[done], told[done], rtol=1e-5)


def copies_of(env: Any, number: int) -> list[Any]:
    """As SuperSuit makes them."""
    pickled = pickle.dumps(env)
    return [pickle.loads(pickled) for _ in range(number)]


def test_a_vector_of_pettingzoos_copies_goes_on_where_episodes_end() -> None:
    pytest.importorskip("pettingzoo")
    env = doorstep.envs.EscapeRoomParallelEnv(episode_length=LENGTH)
    env.reset(seed=0)
    copies = copies_of(env, 3)
    rows = [agent for copied in copies for agent in copied.possible_agents]
    observations = np.stack([o for i, each in enumerate(copies) for o in each.reset(seed=i)[0].values()])
    assert not np.array_equal(observations[:2], observations[2:4])
    ended = 0
    for _ in range(STEPS):
        for each in copies:
            actions = {agent: each.action_space(agent).sample() for agent in each.agents}
            told, _, terminations, truncations, infos = each.step(actions)
            if all(terminations[agent] or truncations[agent] for agent in told):
                ended += 1
                assert all(info["episode_lengths"] == LENGTH for info in infos.values())
                told, _ = each.reset()
            assert list(told) == each.agents == each.possible_agents
    assert ended == len(copies) * (STEPS // LENGTH)
    assert len(rows) == len(observations)
    for each in (env, *copies):
        each.close()


def test_pettingzoos_turns_of_agents_reach_the_end_of_an_episode() -> None:
    utils: Any = pytest.importorskip("pettingzoo.utils")
    env = utils.parallel_to_aec(doorstep.envs.EscapeRoomParallelEnv(episode_length=LENGTH))
    env.reset(seed=0)
    turns = 0
    for agent in env.agent_iter():
        observation, _, termination, truncation, _ = env.last()
        assert observation in env.observation_space(agent)
        if termination or truncation:
            break
        env.step(env.action_space(agent).sample())
        turns += 1
    assert turns == LENGTH * 2
    assert set(env.rewards) == {"agent_0", "agent_1"}
    env.close()
