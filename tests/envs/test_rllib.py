"""EscapeRoomRLlibEnv: what RLlib asks of it; its PPO counts every step of every episode, and learns."""

import re

import pytest
from tests.refuses import refuses

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.vector import AutoresetMode  # noqa: E402
from tests.envs.histories import output_of_example  # noqa: E402

from doorstep.envs import EscapeRoomRLlibEnv  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns of much


@pytest.fixture(autouse=True)
def _no_runner_stays():
    """RLlib registers a function with its runner in it."""
    yield
    gymnasium.registry.pop("rllib-single-agent-env-v0", None)


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
    pytest.importorskip("ray.rllib")
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    config = PPOConfig().environment(EscapeRoomRLlibEnv, env_config={"episode_length": 5})
    config.env_runners(num_env_runners=0, num_envs_per_env_runner=8, gym_env_vectorize_mode="sync")
    refuses("vector_entry_point", SingleAgentEnvRunner, config=config, worker_index=0)


def test_the_example_learns(tmp_path):
    pytest.importorskip("ray.rllib")
    # Ray writes a token into the folder
    text = output_of_example("rllib_ppo.py", warns=True, HOME=str(tmp_path), OMP_NUM_THREADS="1")
    told = re.findall(r"return (-?[\d.]+), steps of an episode ([\d.]+)", text)
    assert {float(steps) for _, steps in told} == {40.0}, text
    returns = [float(episode_return) for episode_return, _ in told]
    assert returns[-1] > returns[0] + 0.05, text
