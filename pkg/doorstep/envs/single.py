"""One world as an environment of gymnasium."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from numpy.typing import NDArray

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
from doorstep.viewer import open_window


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
        actions, observations, render_options, rules: as for `EscapeRoomVectorEnv`. What the agents observe has a first
            dimension of agents, unless there is only one.
        render_mode: "rgb_array" for pictures, "human" for a page of the viewer, which shows every step and says how
            many there are in a second; its address is printed. It needs viser: pip install "doorstep[view]".
    """

    metadata: dict[str, Any] = {"render_modes": ["human", *RENDER_MODES], "render_fps": 25}  # noqa: RUF012
    _window: Any = None  # with "human", once something was shown

    def __init__(
        self,
        *,
        actions: ActionForm = "multi_discrete",
        observations: EnvObservations = OBSERVATIONS,
        render_mode: str | None = None,
        render_options: Mapping[str, Any] | None = None,
        **rules: Any,
    ) -> None:
        mode = check_render_mode(render_mode, ("human", *RENDER_MODES))
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
        self._show()
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
        self._show()
        observation = row_of(outcome.observation, 0)
        reward = float(outcome.rewards[0])
        return observation, reward, bool(outcome.terminations[0]), bool(outcome.truncations[0]), info

    def render(self) -> NDArray[np.uint8] | None:
        """With render_mode "rgb_array": a picture of the world, uint8 [height, width, 3]. With "human" `reset()` and
        `step()` show what happens."""
        return None if self.render_mode == "human" else super().render()

    def close(self) -> None:
        """Closes the simulator, and the page that showed it."""
        if self._window is not None:
            self._window.close()
            self._window = None
        super().close()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_window": None}  # a copy opens its own

    def _show(self) -> None:
        if self.render_mode == "human":
            self._window = self._window or open_window(self.simulator, self.metadata["render_fps"])
            self._window.show()
