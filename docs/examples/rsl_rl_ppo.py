"""Trains agents with rsl_rl's PPO for a few seconds.

pip install "doorstep[rsl-rl]"
"""

import torch
from rsl_rl.runners import OnPolicyRunner

import doorstep.envs

torch.manual_seed(0)
torch.set_num_threads(1)  # networks this small are no work for two
env = doorstep.envs.EscapeRoomRslRlEnv(64, episode_length=40, seed=0)  # 32 worlds of 2 agents

network = {"class_name": "MLPModel", "hidden_dims": [64, 64], "activation": "elu"}
config = {
    "num_steps_per_env": 20,
    "save_interval": 50,
    "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
    "actor": {**network, "distribution_cfg": {"class_name": "doorstep.envs:MultiDiscreteDistribution"}},
    "critic": network,
    "algorithm": {"class_name": "PPO", "learning_rate": 2e-3, "gamma": 0.97, "entropy_coef": 0.001},
}
runner = OnPolicyRunner(env, config, log_dir=None)  # with a directory it writes checkpoints, and logs for TensorBoard


def mean_return() -> float:
    """Of an episode of every agent, with the likeliest actions."""
    policy = runner.get_inference_policy(device=env.device)
    observations, _ = env.reset()
    with torch.inference_mode():
        for _ in range(env.max_episode_length):
            observations, _, _, extras = env.step(policy(observations))
    return float(extras["log"]["Episode/return"])


print(f"before: mean return {mean_return():.2f}")
for iterations in (10, 20, 30):
    runner.learn(10, init_at_random_ep_len=True)
    print(f"after {iterations} iterations: mean return {mean_return():.2f}")

env.close()
