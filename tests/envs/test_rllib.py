"""EscapeRoomRLlibEnv: RLlib's runner counts every step of every episode, and its PPO learns."""

import re

import numpy as np
import pytest
from tests.refuses import refuses

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.vector import AutoresetMode  # noqa: E402
from tests.envs.histories import History, output_of_example  # noqa: E402

from doorstep.envs import EscapeRoomRLlibEnv  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns of much

WORLDS, AGENTS, LENGTH = 4, 2, 5


def config_of(*, seed=None, **env_config):
    pytest.importorskip("ray.rllib")
    from ray.rllib.algorithms.ppo import PPOConfig

    config = PPOConfig().environment(EscapeRoomRLlibEnv, env_config={"episode_length": LENGTH, **env_config})
    rows = WORLDS * AGENTS
    config.env_runners(num_env_runners=0, num_envs_per_env_runner=rows, gym_env_vectorize_mode="vector_entry_point")
    return config.debugging(seed=seed)


@pytest.fixture(autouse=True)
def _no_runner_stays():
    """RLlib registers a function with its runner in it."""
    yield
    gymnasium.registry.pop("rllib-single-agent-env-v0", None)


def runner_of(config):
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    return SingleAgentEnvRunner(config=config, worker_index=0)


def test_a_runner_keeps_whole_episodes_as_a_simulator_has_them():
    runner = runner_of(config_of(seed=3))
    episodes = runner.sample(num_episodes=WORLDS * AGENTS, random_actions=True)
    runner.stop()
    whole = [episode for episode in episodes if episode.is_done]
    assert len(whole) >= WORLDS * AGENTS
    first = whole[: WORLDS * AGENTS]  # all worlds end together, row by row
    assert [len(episode) for episode in first] == [LENGTH] * len(first)
    history = History("next_step", WORLDS, seed=3, num_agents=AGENTS, episode_length=LENGTH)
    observations = [history.worlds.observe()["observations"]]
    rewards = []
    actions = np.stack([np.asarray(episode.get_actions()) for episode in first])  # [rows, steps, 4]
    for step in range(LENGTH):
        told = history.step(actions[:, step].reshape(WORLDS, AGENTS, 4))
        observations.append(told.observations["observations"])
        rewards.append(told.rewards)
    assert told.ended.all()
    # The last observation of each is the true one: it is before the reset.
    told_observations = np.stack([np.asarray(episode.get_observations()) for episode in first])
    np.testing.assert_array_equal(told_observations, np.stack(observations, 2).reshape(told_observations.shape))
    told_rewards = np.stack([np.asarray(episode.get_rewards()) for episode in first])
    np.testing.assert_array_equal(told_rewards, np.stack(rewards, 2).reshape(told_rewards.shape))
    assert all(episode.is_truncated and not episode.is_terminated for episode in first)


def test_rows_are_agents_by_default():
    env = EscapeRoomRLlibEnv({"num_envs": 6, "num_agents": 3})
    assert env.simulator.num_worlds == 2
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert env.reset(seed=1)[0].shape == (6, 97)
    joint = EscapeRoomRLlibEnv({"num_envs": 6, "num_agents": 3, "agents": "joint"})
    assert joint.simulator.num_worlds == 6


def test_configs_that_do_not_fit_are_refused():
    for env_config, argument, message in (
        ({"num_envs": 2, "autoreset_mode": "same_step"}, "autoreset_mode", "autoreset_mode is .* drops the first step"),
        ({"num_envs": 2, "autoreset_mode": AutoresetMode.DISABLED}, "autoreset_mode", "drops the first step"),
        ({}, "num_envs", "num_envs is absent.*vector_entry_point"),
        ({"num_envs": 3}, "num_envs", "a multiple of num_agents"),
        ({"num_envs": 2, "copy": False}, "copy", "copy is False.*RLlib keeps observations"),
    ):
        refuses(message, EscapeRoomRLlibEnv, env_config, argument=argument)


def test_without_the_vector_entry_point_the_error_says_so():
    config = config_of().env_runners(gym_env_vectorize_mode="sync")
    refuses("vector_entry_point", runner_of, config)


def test_the_example_learns(tmp_path):
    pytest.importorskip("ray.rllib")
    # Ray writes a token into the folder
    text = output_of_example("rllib_ppo.py", warns=True, HOME=str(tmp_path), OMP_NUM_THREADS="1")
    told = re.findall(r"return (-?[\d.]+), steps of an episode ([\d.]+)", text)
    assert {float(steps) for _, steps in told} == {40.0}, text
    returns = [float(episode_return) for episode_return, _ in told]
    assert returns[-1] > returns[0] + 0.05, text
