"""EscapeRoomRLlibEnv: RLlib's runner counts every step of every episode, and its PPO learns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doorstep

pytest.importorskip("ray.rllib")

import gymnasium
from gymnasium.vector import AutoresetMode
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.utils.spaces.space_utils import unbatch
from tests.envs.histories import History

from doorstep.envs import EscapeRoomRLlibEnv

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns of much

PROJECT = Path(__file__).resolve().parents[2]
WORLDS, AGENTS, LENGTH = 4, 2, 5


def config_of(*, seed: int | None = None, **env_config: Any) -> Any:
    config = PPOConfig().environment(EscapeRoomRLlibEnv, env_config={"episode_length": LENGTH, **env_config})
    rows = WORLDS * AGENTS
    config.env_runners(num_env_runners=0, num_envs_per_env_runner=rows, gym_env_vectorize_mode="vector_entry_point")
    return config.debugging(seed=seed)


@pytest.fixture(autouse=True)
def _no_runner_stays() -> Iterator[None]:
    """RLlib registers a function with its runner in it."""
    yield
    gymnasium.registry.pop("rllib-single-agent-env-v0", None)


def test_a_runner_keeps_whole_episodes_as_a_simulator_has_them() -> None:
    runner = SingleAgentEnvRunner(config=config_of(seed=3), worker_index=0)
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


def test_runners_without_a_seed_have_levels_of_their_own() -> None:
    firsts = []
    for _ in range(2):
        env = EscapeRoomRLlibEnv({"num_envs": 2})
        firsts.append(env.reset()[0])
        env.close()
    assert (firsts[0] != firsts[1]).any()
    seeded = [EscapeRoomRLlibEnv({"num_envs": 2, "seed": 5}).reset()[0] for _ in range(2)]
    np.testing.assert_array_equal(*seeded)


def test_rows_are_agents_by_default() -> None:
    env = EscapeRoomRLlibEnv({"num_envs": 6, "num_agents": 3})
    assert env.simulator.num_worlds == 2
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    observations, _ = env.reset(seed=1)
    assert len(unbatch(observations)) == 6
    joint = EscapeRoomRLlibEnv({"num_envs": 6, "num_agents": 3, "agents": "joint"})
    assert joint.simulator.num_worlds == 6
    env.close()
    joint.close()


@pytest.mark.parametrize("mode", ["same_step", "disabled", AutoresetMode.SAME_STEP])
def test_other_autoreset_modes_are_refused(mode: Any) -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"autoreset_mode is .* drops the first step") as caught:
        EscapeRoomRLlibEnv({"num_envs": 2, "autoreset_mode": mode})
    assert caught.value.argument == "autoreset_mode"
    EscapeRoomRLlibEnv({"num_envs": 2, "autoreset_mode": "next_step"}).close()


@pytest.mark.parametrize(
    ("env_config", "argument", "message"),
    [
        ({}, "num_envs", "num_envs is absent.*vector_entry_point"),
        ({"num_envs": 3}, "num_envs", "a multiple of num_agents"),
        ({"num_envs": 2, "copy": False}, "copy", "copy is False.*RLlib keeps observations"),
    ],
)
def test_configs_that_do_not_fit_are_refused(env_config: Any, argument: str, message: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=message) as caught:
        EscapeRoomRLlibEnv(env_config)
    assert caught.value.argument == argument


def test_without_the_vector_entry_point_the_error_says_so() -> None:
    config = config_of().env_runners(gym_env_vectorize_mode="sync")
    with pytest.raises(doorstep.ArgumentError, match="vector_entry_point"):
        SingleAgentEnvRunner(config=config, worker_index=0)


def test_the_example_learns(tmp_path: Path) -> None:
    program = PROJECT / "docs/examples/rllib_ppo.py"
    variables = {**os.environ, "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}  # Ray writes a token into the folder
    done = subprocess.run(
        [sys.executable, str(program)], env=variables, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    told = re.findall(r"return (-?[\d.]+), steps of an episode ([\d.]+)", done.stdout)
    assert {float(steps) for _, steps in told} == {40.0}, done.stdout
    returns = [float(episode_return) for episode_return, _ in told]
    assert returns[-1] > returns[0] + 0.05, done.stdout
