"""An environment for RLlib: a vector environment whose rows are agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium.vector import AutoresetMode

from doorstep._action_forms import NO_TUPLES
from doorstep._arguments import check_choice, refuse
from doorstep.envs.vector import EscapeRoomVectorEnv, check_autoreset_mode
from doorstep.errors import ArgumentError


class EscapeRoomRLlibEnv(EscapeRoomVectorEnv):
    """Worlds for RLlib's new API stack: pass the class to `AlgorithmConfig.environment()`.

    Each runner steps all of its sub-environments by one call. They are agents by default, so that one policy controls
    all agents; `num_envs_per_env_runner` is then a multiple of `num_agents`.

    >>> from doorstep.envs import EscapeRoomRLlibEnv
    >>> from ray.rllib.algorithms.ppo import PPOConfig    # doctest: +SKIP
    >>> config = (
    ...     PPOConfig()
    ...     .environment(EscapeRoomRLlibEnv, env_config={"episode_length": 100})
    ...     .env_runners(num_envs_per_env_runner=64, gym_env_vectorize_mode="vector_entry_point")
    ... )    # doctest: +SKIP

    What RLlib calls:

    >>> env = EscapeRoomRLlibEnv({"num_agents": 4, "num_envs": 64})
    >>> env.simulator.num_worlds, env.single_observation_space.shape
    (16, (100,))
    >>> env.close()

    Args:
        env_config: the arguments of `EscapeRoomVectorEnv` by name. Differences: `agents` is "rows" by default;
            `actions` is not "tuple", as RLlib gives actions by row; `autoreset_mode` is "next_step" and `copy` True, as
            RLlib takes every environment to be so and keeps its observations; RLlib adds `num_envs`. Without a `seed`
            the levels are others in each runner and each time; `AlgorithmConfig.debugging(seed=...)` gives each runner
            a seed of its own.

    Raises:
        ArgumentError: an argument is out of range or not one that works with RLlib; the message names it.
    """

    def __init__(self, env_config: Mapping[str, Any]) -> None:
        arguments = {"agents": "rows", **env_config}
        check_choice("actions", arguments.get("actions", "multi_discrete"), NO_TUPLES)
        mode = arguments.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        if check_autoreset_mode(mode) != AutoresetMode.NEXT_STEP:
            reason = "in other modes RLlib drops the first step of every episode and says nothing"
            refuse("autoreset_mode", '"next_step"', mode, reason)
        if not arguments.get("copy", True):
            refuse("copy", "True", False, "RLlib keeps observations")
        if "num_envs" not in arguments:
            hint = 'set gym_env_vectorize_mode="vector_entry_point" in AlgorithmConfig.env_runners()'
            raise ArgumentError("num_envs is absent", argument="num_envs", hint=hint)
        super().__init__(**arguments)
