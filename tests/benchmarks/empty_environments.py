"""Steps in which nothing is simulated: what the vector environments of others cost by themselves."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from tests.benchmarks.interop.measuring import Side, per_call

CALLS = 4
FEW = 64  # environments of gymnasium's vector, which takes each in turn


class EmptyEnv(gymnasium.Env[Any, Any]):  # type: ignore[misc]
    """An environment that does nothing: what remains are its spaces, and what gymnasium does."""

    def __init__(self, observation_space: Any, action_space: Any) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        self.observation = np.zeros(observation_space.shape, observation_space.dtype)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self.observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observation, 0.0, False, False, {}


def gymnasium_side(worlds: int, observation_space: Any, action_space: Any) -> Side:
    """gymnasium's SyncVectorEnv, with the spaces of one world."""
    spaces = observation_space, action_space
    vector = gymnasium.vector.SyncVectorEnv([lambda: EmptyEnv(*spaces) for _ in range(FEW)])
    vector.reset()
    actions = np.ones(vector.action_space.shape, np.int64)
    side = per_call(lambda: vector.step(actions), CALLS)
    return lambda: side() * worlds / FEW


def envpool_side(worlds: int) -> Side:
    """EnvPool's smallest environment, four numbers and a cart, because environments of Python cannot be added to it."""
    import envpool

    vector = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=worlds)
    vector.reset()
    actions = np.zeros(worlds, np.int32)
    return per_call(lambda: vector.step(actions), CALLS)


def pufferlib_side(rows: int, observation_space: Any, action_space: Any) -> Side:
    """An environment of PufferLib that writes nothing into its buffers."""
    import pufferlib

    class Empty(pufferlib.PufferEnv):  # type: ignore[misc]
        def __init__(self) -> None:
            self.num_agents = rows
            self.single_observation_space, self.single_action_space = observation_space, action_space
            super().__init__(None)

        def reset(self, seed: int | None = None) -> tuple[Any, list[Any]]:
            return self.observations, []

        def step(self, actions: Any) -> tuple[Any, Any, Any, Any, list[Any]]:
            return self.observations, self.rewards, self.terminals, self.truncations, []

    env = Empty()
    env.async_reset(0)
    actions = np.zeros((rows, *action_space.shape), np.int32)

    def step() -> None:
        env.send(actions)
        env.recv()

    return per_call(step, CALLS)
