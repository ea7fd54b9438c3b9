"""One world as a parallel environment of PettingZoo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from doorstep._action_forms import ActionForm
from doorstep._arguments import refuse
from doorstep._native import STATE_FIELDS
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
    rows_of_worlds,
)
from doorstep.envs._spaces import action_space, observation_space
from doorstep.errors import StateError

# The number of an episode is no part of what happens in it.
STATE_PARTS = tuple(row.name for row in STATE_FIELDS if row.name != "episode_index")


class EscapeRoomParallelEnv(OverDrawnRooms, ParallelEnv[str, Any, Any]):  # type: ignore[misc]
    """One world, whose agents "agent_0", "agent_1", ... act at once. All leave when the episode ends.

    >>> import doorstep.envs
    >>> env = doorstep.envs.EscapeRoomParallelEnv(num_agents=3)
    >>> observations, infos = env.reset(seed=5)
    >>> env.agents
    ['agent_0', 'agent_1', 'agent_2']
    >>> observations["agent_2"].shape
    (97,)
    >>> actions = {agent: env.action_space(agent).sample() for agent in env.agents}
    >>> observations, rewards, terminations, truncations, infos = env.step(actions)
    >>> env.close()

    Args:
        actions: the form of an agent's action, as for `EscapeRoomVectorEnv`.
        observations: parts, as for `Simulator`: one vector. "by_name": the parts by name. "pixels": the views of
            `cameras`; a dictionary, if the cameras make several tensors.
        render_mode: "rgb_array" or None.
        render_options: keywords of `Simulator.render` for pictures, such as `width`, `height` and `samples`.
        rules: of the simulator, by name: `num_agents`, `seed`, `episode_length`, `cameras`, ... as for
            `doorstep.SimulatorConfig`.

    Raises:
        ArgumentError: an argument is out of range; the message names it.
    """

    metadata = {  # noqa: RUF012
        "name": "doorstep_escape_room_v0",
        "render_modes": list(RENDER_MODES),
        "render_fps": 25,
        "is_parallelizable": True,
    }

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
        rows = rows_of_worlds(1, rules)
        self._rooms = Rooms(
            rows,
            agents="rows",
            actions=actions,
            observations=observations,
            autoreset="disabled",
            render_options=render_options,
            rules=rules,
        )
        self.render_mode = mode
        self.possible_agents = [f"agent_{index}" for index in range(rows)]
        self.agents: list[str] = []
        # Each agent has spaces of its own, as spaces have random numbers of their own.
        self.observation_spaces = {agent: observation_space(self._rooms) for agent in self.possible_agents}
        self.action_spaces = {agent: action_space(self._rooms) for agent in self.possible_agents}
        self.state_space = spaces.Box(-np.inf, np.inf, self.state().shape, np.float32)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The space of an agent's observations; the same object at every call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The space of an agent's actions: by default `MultiDiscrete([4, 8, 5, 2])`; the same object at every call."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Begins an episode, in which all agents take part.

        Args:
            seed: of the levels, 0 to 2**32 - 1. None: the level that follows.
            options: have no effect.

        Returns:
            Observations and empty dictionaries, by agent.
        """
        observation = self._rooms.start(seed)
        self.agents = list(self.possible_agents)
        return self._by_agent(observation), {agent: {} for agent in self.agents}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """One step.

        Args:
            actions: elements of their action spaces, by agent.

        Returns:
            Observations, rewards, terminations, truncations and infos, by agent. After the step that ended the episode,
            infos have its `episode_returns` and `episode_lengths`, and `agents` is empty.

        Raises:
            ArgumentError: an agent has no action, or one of another shape or range, or is not there.
            StateError: no episode has begun, or it has ended.
        """
        agents = self.agents
        if not agents:
            raise StateError("no agent takes part in an episode", hint="call reset()")
        outcome = self._rooms.step(self._rows_of(actions))
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in agents}
        if outcome.ended[0]:
            returns, lengths = self._rooms.final_returns().tolist(), self._rooms.final_lengths().tolist()
            for info, episode_return, length in zip(infos.values(), returns, lengths, strict=True):
                info.update(episode_returns=episode_return, episode_lengths=length)
            self.agents = []
        rewards, terminations, truncations = (
            dict(zip(agents, rows.tolist(), strict=True))
            for rows in (outcome.rewards, outcome.terminations, outcome.truncations)
        )
        return self._by_agent(outcome.observation), rewards, terminations, truncations, infos

    def state(self) -> NDArray[np.float32]:
        """All of the world, with what agents do not see: float32, one dimension.

        The fields of `simulator.state` one after the other, without `episode_index`, and the steps that remain of the
        episode. Positions are in metres; nothing is scaled.
        """
        fields = self.simulator.state
        parts = [getattr(fields, name).to_numpy()[0] for name in STATE_PARTS]
        parts.append(self.simulator.steps_remaining.to_numpy()[0, 0])
        return np.concatenate([np.ravel(part) for part in parts], dtype=np.float32)

    def _by_agent(self, observation: Any) -> dict[str, Any]:
        return {agent: row_of(observation, row) for row, agent in enumerate(self.possible_agents)}

    def _rows_of(self, actions: Mapping[str, Any]) -> NDArray[Any]:
        if not isinstance(actions, Mapping) or set(actions) != set(self.agents):
            given = sorted(map(str, actions)) if isinstance(actions, Mapping) else actions
            refuse("actions", f"a dictionary of the actions of {', '.join(self.agents)}", given)
        named = {f"actions[{agent!r}]": actions[agent] for agent in self.agents}
        shape = self._rooms.action_shape
        return np.stack([integers(name, as_array(name, action), shape) for name, action in named.items()])
