"""PPO of skrl. Running scalers normalise observations and values."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, Model, MultiCategoricalMixin
from skrl.resources.preprocessors.torch import RunningStandardScaler
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed
from tests.benchmarks.trainers.meter import Meter, TimeIsUpError
from tests.benchmarks.trainers.task import learning_rate_factor, num_rows, policy_of_rows, rules
from torch.optim.lr_scheduler import LambdaLR

from doorstep.envs import EscapeRoomSkrlEnv
from doorstep.training import TrainingConfig
from doorstep.training.networks import ActorCritic


class Rooms(EscapeRoomSkrlEnv):
    """Episodes that run out of time have ended for good, as for the other trainers: agents observe the time."""

    def __init__(self, config: TrainingConfig, meter: Meter) -> None:
        super().__init__(num_rows(config), **rules(config))
        self._meter = meter

    def step(self, actions: torch.Tensor) -> Any:
        self._meter.before_step()
        observations, rewards, terminations, truncations, infos = super().step(actions)
        return observations, rewards, terminations | truncations, torch.zeros_like(truncations), infos


class Shared(MultiCategoricalMixin, DeterministicMixin, Model):  # type: ignore[misc]
    """Actor and critic with the same hidden layers. skrl asks for the policy first, and then for the values of the
    same observations, which are then there already."""

    def __init__(self, config: TrainingConfig, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        MultiCategoricalMixin.__init__(self, role="policy")
        DeterministicMixin.__init__(self, role="value")
        network = ActorCritic(config.network, self.observation_space.shape)
        self.encoder, self.actor, self.critic = network.encoder, network.actor, network.critic
        self._features: torch.Tensor | None = None

    def act(self, inputs: dict[str, Any], role: str = "") -> Any:
        mixin: Any = MultiCategoricalMixin if role == "policy" else DeterministicMixin
        return mixin.act(self, inputs, role=role)

    def compute(self, inputs: dict[str, Any], role: str = "") -> Any:
        if role == "policy":
            self._features = self.encoder(inputs["observations"])
            return self.actor(self._features), {}
        features = self.encoder(inputs["observations"]) if self._features is None else self._features
        self._features = None
        return self.critic(features), {}


def train(config: TrainingConfig, meter: Meter) -> Any:
    set_seed(config.seed)
    ppo, steps = config.ppo, config.experience.num_steps
    env = Rooms(config, meter)
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": env.device}
    options = PPO_CFG(
        rollouts=steps,
        learning_epochs=ppo.num_epochs,
        mini_batches=ppo.num_minibatches,
        discount_factor=ppo.gamma,
        gae_lambda=ppo.gae_lambda,
        learning_rate=ppo.learning_rate,
        learning_rate_scheduler=LambdaLR,
        learning_rate_scheduler_kwargs={"lr_lambda": learning_rate_factor(config)},
        ratio_clip=ppo.clip_range,
        value_clip=0,
        entropy_loss_scale=ppo.entropy_coefficient,
        value_loss_scale=ppo.value_coefficient / 2,  # of the squared error; ours is of half of it
        grad_norm_clip=ppo.max_gradient_norm,
        observation_preprocessor=RunningStandardScaler,
        observation_preprocessor_kwargs={"size": env.observation_space, "device": env.device},
        value_preprocessor=RunningStandardScaler,
        value_preprocessor_kwargs={"size": 1, "device": env.device},
    )
    options.experiment.write_interval = options.experiment.checkpoint_interval = 0
    model = Shared(config, **spaces)
    agent = PPO(
        models={"policy": model, "value": model},
        memory=RandomMemory(memory_size=steps, num_envs=env.num_envs, device=env.device),
        cfg=options,
        **spaces,
    )
    timesteps = config.num_updates * steps
    trainer = SequentialTrainer(cfg={"timesteps": timesteps, "disable_progressbar": True}, env=env, agents=agent)
    with suppress(TimeIsUpError):
        trainer.train()
    agent.enable_training_mode(False)
    return policy_of_rows(lambda observations: act(agent, torch.from_numpy(observations)))


@torch.no_grad()  # type: ignore[untyped-decorator]
def act(agent: PPO, observations: torch.Tensor) -> Any:
    actions, _ = agent.act(observations, None, timestep=0, timesteps=0)
    return actions.numpy()
