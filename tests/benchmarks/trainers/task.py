"""What all trainers train on, and with: the default preset's rooms, rewards and hyperparameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from doorstep.training import TrainingConfig, preset
from doorstep.training.ppo import interpolated


def make_config(worlds: int | None, seed: int) -> TrainingConfig:
    """The default preset on one thread. worlds: None for the preset's number."""
    worlds = worlds or preset("default").simulator.num_worlds
    return preset("default").changed(
        f"simulator.num_worlds={worlds}", f"simulator.seed={seed}", f"seed={seed}", "simulator.num_threads=1"
    )


def rules(config: TrainingConfig) -> dict[str, Any]:
    """Of environments, which make a simulator with them."""
    return {
        "seed": config.simulator.seed,
        "num_threads": config.simulator.num_threads,
        "levels": config.levels,
        "level_weights": config.level_weights,
        "reward": config.reward,
    }


def num_rows(config: TrainingConfig) -> int:
    """Agents of all worlds."""
    return config.simulator.num_worlds * config.simulator.num_agents


def learning_rate(config: TrainingConfig, progress: float) -> float:
    """progress: the share of the updates that are done."""
    return interpolated(config.ppo.learning_rate, config.ppo.final_learning_rate, progress)


def learning_rate_factor(config: TrainingConfig) -> Callable[[int], float]:
    """For `LambdaLR`: the learning rate after this many updates, in units of the first one."""
    return lambda updates: learning_rate(config, updates / config.num_updates) / config.ppo.learning_rate


def policy_of_rows(act: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A policy for `doorstep.evaluate()`. act: returns actions [R, 4] for observations [R, F] of numpy."""

    def policy(observations: Any) -> Any:
        actions = act(observations.reshape(-1, observations.shape[-1]))
        return actions.reshape(*observations.shape[:-1], -1)

    return policy
