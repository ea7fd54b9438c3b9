"""The script ppo.py of the package cleanrl, unchanged, with a network of its own.

The script is of 2020. It asks gym for environments, and puts them into a vector environment of Stable-Baselines3: here
both are replaced by all rooms at once. It knows actions that are one choice: here one of all 320 combinations.
It normalises nothing: `VecNormalize` does, as wrappers do in the scripts of CleanRL for continuous actions.
"""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any
from unittest import mock

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Discrete
from stable_baselines3.common import vec_env
from stable_baselines3.common.vec_env import VecNormalize
from tests.benchmarks.trainers.meter import Meter, TimeIsUpError
from tests.benchmarks.trainers.task import num_rows, policy_of_rows, rules

from doorstep import ACTIONS
from doorstep.envs import EscapeRoomVecEnv
from doorstep.training import TrainingConfig


class Rooms(EscapeRoomVecEnv):
    """Actions are numbers of combinations."""

    def __init__(self, config: TrainingConfig, meter: Meter) -> None:
        super().__init__(num_rows(config), **rules(config))
        self.action_space = Discrete(int(np.prod(ACTIONS)))
        self._meter = meter

    def step_async(self, actions: Any) -> None:
        self._meter.before_step()
        super().step_async(as_actions(actions))


def stand_in_for_gym() -> dict[str, ModuleType]:
    """The modules that the script imports, with what it takes from them; of wrappers it imports names that it does not
    use here."""
    gym: Any = ModuleType("gym")
    wrappers: Any = ModuleType("gym.wrappers")
    gym.spaces, gym.wrappers = gymnasium.spaces, wrappers
    wrappers.TimeLimit = wrappers.Monitor = None
    return {"gym": gym, "gym.wrappers": wrappers, "gym.spaces": gymnasium.spaces}


def arguments(config: TrainingConfig) -> list[str]:
    """Of the script."""
    ppo, rows = config.ppo, num_rows(config)
    values = {
        "num-envs": rows,
        "num-steps": config.experience.num_steps,
        "total-timesteps": config.num_updates * config.experience.num_steps * rows,
        "n-minibatch": ppo.num_minibatches,
        "update-epochs": ppo.num_epochs,
        "learning-rate": ppo.learning_rate,
        "anneal-lr": ppo.final_learning_rate is not None,
        "gamma": ppo.gamma,
        "gae-lambda": ppo.gae_lambda,
        "clip-coef": ppo.clip_range,
        "clip-vloss": ppo.clip_value_loss,
        "ent-coef": ppo.entropy_coefficient,
        "vf-coef": ppo.value_coefficient,
        "max-grad-norm": ppo.max_gradient_norm,
        "seed": config.seed,
        "cuda": False,
    }
    return [f"--{name}={value}" for name, value in values.items()]


def train(config: TrainingConfig, meter: Meter) -> Any:
    sys.modules.update(stand_in_for_gym())
    env = VecNormalize(Rooms(config, meter), gamma=config.ppo.gamma)
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(sys, "argv", ["ppo.py", *arguments(config)]),
        mock.patch.object(vec_env, "DummyVecEnv", return_value=env),
    ):
        agent = run_script(folder)["agent"]
    return policy_of_rows(lambda observations: act(agent, torch.from_numpy(env.normalize_obs(observations))))


def run_script(folder: str) -> dict[str, Any]:
    """Its names. It writes into the folder "runs" in this one."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        return runpy.run_module("cleanrl.ppo", run_name="__main__")
    except TimeIsUpError as end:
        return next(frame.f_globals for frame, _ in walk_tb(end.__traceback__) if "agent" in frame.f_globals)
    finally:
        os.chdir(here)


@torch.no_grad()  # type: ignore[untyped-decorator]
def act(agent: Any, observations: torch.Tensor) -> Any:
    choices, _, _ = agent.get_action(observations)
    return as_actions(choices.numpy())


def as_actions(choices: Any) -> Any:
    """Of numbers of combinations."""
    return np.stack(np.unravel_index(choices, tuple(ACTIONS)), -1)
