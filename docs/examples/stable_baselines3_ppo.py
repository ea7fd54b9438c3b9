"""Trains one policy for both agents with PPO of Stable-Baselines3.

pip install "doorstep[stable-baselines3]"
"""

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

import doorstep.envs

torch.set_num_threads(1)  # the network is small; other processors step the worlds


class PrintReturns(BaseCallback):
    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        returns = [episode["r"] for episode in self.model.ep_info_buffer]
        if returns:
            print(f"{self.num_timesteps:7d} steps: mean return {sum(returns) / len(returns):6.3f}")


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
model.learn(120_000, callback=PrintReturns())
env.close()
