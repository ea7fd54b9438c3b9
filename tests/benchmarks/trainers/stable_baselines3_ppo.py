"""PPO of Stable-Baselines3. `VecNormalize` normalises observations and rewards."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecNormalize
from tests.benchmarks.trainers.meter import Meter, TimeIsUpError
from tests.benchmarks.trainers.task import learning_rate, num_rows, policy_of_rows, rules

from doorstep.envs import EscapeRoomVecEnv
from doorstep.training import TrainingConfig
from doorstep.training.config import NetworkConfig
from doorstep.training.networks import make_encoder


class Rooms(EscapeRoomVecEnv):
    """Episodes that run out of time have ended for good, as for the other trainers: agents observe the time."""

    def __init__(self, config: TrainingConfig, meter: Meter) -> None:
        super().__init__(num_rows(config), **rules(config))
        self._meter = meter

    def step_async(self, actions: Any) -> None:
        self._meter.before_step()
        super().step_async(actions)

    def step_wait(self) -> Any:
        observations, rewards, dones, infos = super().step_wait()
        for row in np.flatnonzero(dones).tolist():
            infos[row]["TimeLimit.truncated"] = False
        return observations, rewards, dones, infos


class Encoder(BaseFeaturesExtractor):  # type: ignore[misc]
    """The hidden layers, shared by actor and critic."""

    def __init__(self, observation_space: Any, config: NetworkConfig) -> None:
        super().__init__(observation_space, config.widths[-1])
        self.layers = make_encoder(config, observation_space.shape)

    def forward(self, observations: Any) -> Any:
        return self.layers(observations)


def train(config: TrainingConfig, meter: Meter) -> Any:
    ppo, experience = config.ppo, config.experience
    env = VecNormalize(Rooms(config, meter), gamma=ppo.gamma)
    network = {"features_extractor_class": Encoder, "features_extractor_kwargs": {"config": config.network}}
    steps = experience.num_steps * env.num_envs
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=experience.num_steps,
        batch_size=steps // ppo.num_minibatches,
        n_epochs=ppo.num_epochs,
        learning_rate=lambda remaining: learning_rate(config, 1 - remaining),
        gamma=ppo.gamma,
        gae_lambda=ppo.gae_lambda,
        clip_range=ppo.clip_range,
        ent_coef=ppo.entropy_coefficient,
        vf_coef=ppo.value_coefficient / 2,  # of the squared error; ours is of half of it
        max_grad_norm=ppo.max_gradient_norm,
        policy_kwargs={**network, "net_arch": []},
        seed=config.seed,
        device="cpu",
    )
    with suppress(TimeIsUpError):
        model.learn(config.num_updates * steps)
    return policy_of_rows(lambda observations: model.predict(env.normalize_obs(observations))[0])
