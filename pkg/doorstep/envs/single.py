"""One world as an environment of gymnasium."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsFloat

import gymnasium
import numpy as np

from doorstep._action_forms import ActionForm
from doorstep._observations import OBSERVATIONS
from doorstep.envs._arrays import as_array
from doorstep.envs._rooms import (
    RENDER_MODES,
    EnvObservations,
    OverDrawnRooms,
    Rooms,
    check_render_mode,
    integers,
    row_of,
)
from doorstep.envs._spaces import action_space, observation_space
from doorstep.envs.vector import OverSpecifiedRooms, check_options


class EscapeRoomEnv(OverSpecifiedRooms, OverDrawnRooms, gymnasium.Env[Any, Any]):  # type: ignore[misc]
    """One world; its action is the actions of all agents side by side, its reward their mean.

    Without a `seed`, one is drawn for each environment. Those with the same seed begin with the same levels: give each
    a seed or a `world_offset` of its own.

    >>> import doorstep.envs
    >>> env = doorstep.envs.EscapeRoomEnv(num_agents=1)
    >>> observation, info = env.reset(seed=5)
    >>> observation.shape
    (91,)
    >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    >>> env.close()

    Args:
        actions, observations, render_mode, render_options, rules: as for `EscapeRoomVectorEnv`. What the agents observe
            has a first dimension of agents, unless there is only one.
    """

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 25}  # noqa: RUF012

    def __init__(
        self,
        *,
        actions: ActionForm = "multi_discrete",
        observations: EnvObservations = OBSERVATIONS,
        render_mode: str | None = None,
        render_options: Mapping[str, Any] | None = None,
        **rules: Any,
    ) -> None:
        mode = check_render_mode(render_mode)
        self._rooms = Rooms(
            1,
            actions=actions,
            observations=observations,
            autoreset="disabled",
            render_options=render_options,
            rules=rules,
        )
        self.render_mode = mode
        self.observation_space = observation_space(self._rooms)
        self.action_space = action_space(self._rooms)
        super().reset(seed=self.np_random_seed)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; `seed` of the levels, 0 to 2**32 - 1, or None: the level that follows."""
        check_options(options, ())
        observation = row_of(self._rooms.start(seed), 0)
        super().reset(seed=None if seed is None else self._rooms.config.seed)
        return observation, {}

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One step; an element of `action_space`.

        Raises:
            ArgumentError: the action has another shape, or is no integers; or, as "discrete", a number is outside.
            StateError: no episode has begun, or it has ended.
        """
        values = integers("action", as_array("action", action), self._rooms.action_shape)
        outcome = self._rooms.step(values[np.newaxis])
        info: dict[str, Any] = {}
        if outcome.ended[0]:
            info["episode_returns"] = float(self._rooms.final_returns()[0])
            info["episode_lengths"] = int(self._rooms.final_lengths()[0])
        observation = row_of(outcome.observation, 0)
        reward = float(outcome.rewards[0])
        return observation, reward, bool(outcome.terminations[0]), bool(outcome.truncations[0]), info
