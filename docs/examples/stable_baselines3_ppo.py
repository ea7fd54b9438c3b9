"""Trains one policy for both agents with PPO of Stable-Baselines3.

pip install "doorstep[stable-baselines3]"
"""

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.utils import safe_mean
from stable_baselines3.common.vec_env import VecNormalize

import doorstep.envs

torch.set_num_threads(1)  # the network is small; other processors step the worlds

# 128 worlds of 2 agents; each agent is a sub-environment.
env = VecNormalize(doorstep.envs.EscapeRoomVecEnv(256, episode_length=60, seed=1), norm_obs=False, gamma=0.98)
model = PPO(
    "MlpPolicy",
    env,
    n_steps=60,
    batch_size=1920,
    n_epochs=4,
    learning_rate=2e-3,
    gamma=0.98,
    ent_coef=0.01,
    seed=0,
    device="cpu",
    stats_window_size=256,
)
for _ in range(8):
    model.learn(60 * 256, reset_num_timesteps=False)
    mean_return = safe_mean([episode["r"] for episode in model.ep_info_buffer or ()])
    print(f"{model.num_timesteps:7d} steps: mean return {mean_return:6.3f}")
env.close()
