"""Trains agents with skrl's PPO for a few seconds.

pip install "doorstep[skrl]"
"""

from typing import Any

import torch
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, Model, MultiCategoricalMixin
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed

import doorstep.envs

set_seed(0)
torch.set_num_threads(1)  # networks this small are no work for two
env = doorstep.envs.EscapeRoomSkrlEnv(64, episode_length=40, seed=0)  # 32 worlds of 2 agents


def network(outputs: int) -> torch.nn.Sequential:
    layers = [torch.nn.Linear(env.observation_space.shape[0], 64), torch.nn.ELU(), torch.nn.Linear(64, 64)]
    return torch.nn.Sequential(*layers, torch.nn.ELU(), torch.nn.Linear(64, outputs))


class Policy(MultiCategoricalMixin, Model):
    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        MultiCategoricalMixin.__init__(self)
        self.net = network(sum(self.action_space.nvec))

    def compute(self, inputs: dict[str, torch.Tensor], role: str) -> tuple[torch.Tensor, dict[str, Any]]:
        return self.net(inputs["observations"]), {}


class Value(DeterministicMixin, Model):
    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = network(1)

    def compute(self, inputs: dict[str, torch.Tensor], role: str) -> tuple[torch.Tensor, dict[str, Any]]:
        return self.net(inputs["observations"]), {}


spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": env.device}
config = PPO_CFG(rollouts=20, learning_epochs=5, mini_batches=4, learning_rate=2e-3, time_limit_bootstrap=True)
config.experiment.write_interval = config.experiment.checkpoint_interval = 0
agent = PPO(
    models={"policy": Policy(**spaces), "value": Value(**spaces)},
    memory=RandomMemory(memory_size=config.rollouts, num_envs=env.num_envs, device=env.device),
    cfg=config,
    **spaces,
)

for steps in (40, 240, 240):
    trainer = SequentialTrainer(cfg={"timesteps": steps, "disable_progressbar": True}, env=env, agents=agent)
    trainer.train()  # begins with new episodes, and ends with the last step of an episode
    returns = env.simulator.episode_returns.to_torch()
    print(f"mean return of the last episodes: {returns.mean():.2f}")

env.close()
