"""Environments of skrl: one agent or one world in each row, or the agents of a world by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from skrl.envs.wrappers.torch import MultiAgentEnvWrapper, Wrapper
from skrl.utils.spaces.torch import flatten_tensorized_space

from doorstep._action_forms import ActionForm
from doorstep._arguments import refuse
from doorstep._observations import OBSERVATIONS, Parts, PartsRule
from doorstep.envs._arrays import torch_arrays
from doorstep.envs._rooms import (
    AgentsView,
    Autoreset,
    EnvObservations,
    Outcome,
    OverDrawnRooms,
    Rooms,
    check_render_mode,
    integers,
    refuse_pixels,
    rows_of_worlds,
)
from doorstep.envs._spaces import action_space, observation_space


class _OverRooms(OverDrawnRooms):
    """What both environments share."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)  # pickle's own way asks skrl's `__getattr__` for what is not there yet


class EscapeRoomSkrlEnv(_OverRooms, Wrapper):  # type: ignore[misc]
    """An environment for skrl's agents. It has skrl's interface: it needs no `wrap_env()`, which does not know it.

    Tensors stay on the simulator's device, and no step waits for a GPU. A step that ends an episode begins the next one
    and returns its first observation; a single environment (`num_envs=1`) is reset by skrl's trainers instead.

    >>> import torch, doorstep.envs
    >>> env = doorstep.envs.EscapeRoomSkrlEnv(8, seed=3)    # 4 worlds of 2 agents
    >>> observations, infos = env.reset()
    >>> observations.shape, env.action_space
    (torch.Size([8, 94]), MultiDiscrete([4 8 5 2]))
    >>> observations, rewards, terminated, truncated, infos = env.step(torch.zeros(8, 4, dtype=torch.int64))
    >>> rewards.shape, truncated.shape
    (torch.Size([8, 1]), torch.Size([8, 1]))
    >>> env.close()

    Args:
        num_envs: environments.
        agents: what an environment is. "rows": an agent of a world, so that one policy controls all agents; `num_envs`
            is then a multiple of `num_agents`. "joint": a world; its action is the actions of all agents side by side,
            its reward their mean.
        actions: the form of an agent's action in `action_space`. "multi_discrete" and "tuple": its four components,
            which tensors have side by side. "discrete": one number, 0 to 319, as for `EscapeRoomVectorEnv`.
        observations: parts, as for `Simulator`: one vector for each agent. "by_name": all parts, in a space of
            gymnasium's Dict; tensors are flat all the same, as skrl has them, and `unflatten_tensorized_space()` takes
            them apart.
        render_mode: "rgb_array", or None: `render()`, which skrl's trainers call after every step unless they are
            `headless`, does nothing.
        render_options: keywords of `Simulator.render` for pictures, such as `width`, `height` and `samples`.
        rules: of the simulator, by name: `seed`, `device`, `num_agents`, `episode_length`, ... as for
            `doorstep.SimulatorConfig`.

    Raises:
        ArgumentError: an argument is out of range; the message names it.
    """

    def __init__(
        self,
        num_envs: int = 2,
        *,
        agents: AgentsView = "rows",
        actions: ActionForm = "multi_discrete",
        observations: EnvObservations = OBSERVATIONS,
        render_mode: str | None = None,
        render_options: Mapping[str, Any] | None = None,
        **rules: Any,
    ) -> None:
        refuse_pixels(observations)
        self.render_mode = check_render_mode(render_mode)
        self._rooms = Rooms(
            num_envs,
            agents=agents,
            actions=actions,
            observations=observations,
            autoreset=_autoreset_of(num_envs),
            arrays=torch_arrays,
            render_options=render_options,
            rules=rules,
        )
        inner = SimpleNamespace(  # of which skrl tells these
            device=self._rooms.device,
            num_envs=self._rooms.num_rows,
            observation_space=observation_space(self._rooms),
            action_space=action_space(self._rooms),
        )
        super().__init__(inner)

    def reset(self, *, seed: int | None = None) -> tuple[torch.Tensor, dict[str, Any]]:
        """Begins new episodes everywhere.

        Args:
            seed: of the levels, 0 to 2**32 - 1. None: the levels that follow those seen.

        Returns:
            Observations, [num_envs, features], and an empty dictionary.
        """
        return flatten_tensorized_space(self._rooms.start(seed)), {}

    def step(
        self, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Steps every environment once.

        Args:
            actions: integers [num_envs, components]; as "discrete" a number is one component.

        Returns:
            Observations [num_envs, features]; rewards, float32 [num_envs, 1]; terminated and truncated, bool
            [num_envs, 1]; infos. In infos are the "final_observations" of episodes that ended in this step, 0
            elsewhere, and by environment the "episode_returns" and "episode_lengths" of its latest ended episode.

        Raises:
            ArgumentError: the actions have another shape.
            StateError: reset() was not called; or, of a single environment, not after the end of its episode.
        """
        outcome = self._rooms.step(_rows("actions", actions, self.num_envs, self._rooms))
        return (
            flatten_tensorized_space(outcome.observation),
            outcome.rewards[:, None],
            outcome.terminations[:, None],
            outcome.truncations[:, None],
            _infos(self._rooms, outcome),
        )

    def state(self) -> None:
        """None: there is no state beside the observations."""

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """With render_mode "rgb_array": a picture of the first environment, uint8 [height, width, 3]."""
        return None if self.render_mode is None else self._rooms.render(0)


class EscapeRoomSkrlMultiAgentEnv(_OverRooms, MultiAgentEnvWrapper):  # type: ignore[misc]
    """An environment for skrl's multi-agent algorithms (IPPO, MAPPO): dictionaries by agent, "agent_0" and so on.

    It has skrl's interface, as `EscapeRoomSkrlEnv` has. The state of a world, for centralised critics, is the flat
    observations of its agents side by side, with `critic_observations`.

    >>> import torch, doorstep.envs
    >>> env = doorstep.envs.EscapeRoomSkrlMultiAgentEnv(4, seed=3)
    >>> observations, infos = env.reset()
    >>> env.possible_agents, observations["agent_0"].shape, env.state()["agent_0"].shape
    (['agent_0', 'agent_1'], torch.Size([4, 94]), torch.Size([4, 188]))
    >>> actions = {agent: torch.zeros(4, 4, dtype=torch.int64) for agent in env.agents}
    >>> observations, rewards, terminated, truncated, infos = env.step(actions)
    >>> rewards["agent_1"].shape
    torch.Size([4, 1])
    >>> env.close()

    Args:
        num_envs: worlds.
        actions: as for `EscapeRoomSkrlEnv`.
        observations: parts, as for `Simulator`.
        critic_observations: further parts of each agent in the state, such as ("physics",).
        render_mode: "rgb_array", or None: `render()`, which skrl's trainers call after every step unless they are
            `headless`, does nothing.
        render_options: keywords of `Simulator.render` for pictures, such as `width`, `height` and `samples`.
        rules: of the simulator, by name: `seed`, `device`, `num_agents`, `episode_length`, ... as for
            `doorstep.SimulatorConfig`.

    Raises:
        ArgumentError: an argument is out of range; the message names it.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        actions: ActionForm = "multi_discrete",
        observations: Parts = OBSERVATIONS,
        critic_observations: Parts | None = None,
        render_mode: str | None = None,
        render_options: Mapping[str, Any] | None = None,
        **rules: Any,
    ) -> None:
        self.render_mode = check_render_mode(render_mode)
        self._rooms = Rooms(
            rows_of_worlds(num_envs, rules),
            agents="rows",
            actions=actions,
            observations=PartsRule().check("observations", observations),
            critic_observations=critic_observations,
            autoreset=_autoreset_of(num_envs),
            arrays=torch_arrays,
            render_options=render_options,
            rules=rules,
        )
        agents = [f"agent_{agent}" for agent in range(self._rooms.num_agents)]
        whole, of_action = observation_space(self._rooms), action_space(self._rooms)
        assert isinstance(whole, spaces.Box)
        of_agent = spaces.Box(self._seen(whole.low), self._seen(whole.high), dtype=np.float32)
        state = spaces.Box(-float("inf"), float("inf"), (self._rooms.num_agents * whole.shape[0],))
        inner = SimpleNamespace(  # of which skrl tells these
            device=self._rooms.device,
            num_envs=num_envs,
            num_agents=len(agents),
            max_num_agents=len(agents),
            possible_agents=agents,
            observation_spaces=dict.fromkeys(agents, of_agent),
            action_spaces=dict.fromkeys(agents, of_action),
            state_space=state,
        )
        super().__init__(inner)
        self._state: torch.Tensor | None = None
        self._has_ended = False

    @property
    def agents(self) -> list[str]:
        """The same names; none after the episode of a single world has ended, until reset()."""
        return [] if self._has_ended else list(self.possible_agents)

    def reset(self, *, seed: int | None = None) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Begins new episodes everywhere.

        Args:
            seed: of the levels, 0 to 2**32 - 1. None: the levels that follow those seen.

        Returns:
            Observations by agent, [num_envs, features], and an empty dictionary.
        """
        observation = self._rooms.start(seed)
        self._has_ended = False
        self._state = observation.reshape(self.num_envs, -1)
        return self._by_agent(self._seen(observation)), {}

    def step(
        self, actions: Mapping[str, torch.Tensor]
    ) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], dict[str, torch.Tensor], dict[str, torch.Tensor], Any]:
        """Steps every world once.

        Args:
            actions: by agent, integers [num_envs, 4]; as "discrete" [num_envs, 1].

        Returns:
            By agent: observations [num_envs, features]; rewards, float32 [num_envs, 1]; terminated and truncated, bool
            [num_envs, 1]. And infos, as of `EscapeRoomSkrlEnv`, [num_envs, num_agents, ...].

        Raises:
            ArgumentError: an agent has no actions, or of another shape, or there is no such agent.
            StateError: reset() was not called; or, of a single world, not after the end of its episode.
        """
        outcome = self._rooms.step(self._joined(actions))
        if self.num_envs == 1:
            self._has_ended = bool(outcome.ended.any())
        self._state = outcome.observation.reshape(self.num_envs, -1)
        infos = {name: self._by_world(value) for name, value in _infos(self._rooms, outcome).items()}
        infos["final_observations"] = self._seen(infos["final_observations"])
        return (
            self._by_agent(self._seen(outcome.observation)),
            self._by_agent(outcome.rewards[:, None]),
            self._by_agent(outcome.terminations[:, None]),
            self._by_agent(outcome.truncations[:, None]),
            infos,
        )

    def state(self) -> dict[str, torch.Tensor | None]:
        """The state of every world, [num_envs, num_agents * features], by agent; None before reset()."""
        return dict.fromkeys(self.possible_agents, self._state)

    def _seen(self, observation: Any) -> Any:
        """Without what only critics see."""
        return observation[..., : observation.shape[-1] - self._rooms.num_critic_inputs]

    def _by_world(self, array: torch.Tensor) -> torch.Tensor:
        return array.reshape(self.num_envs, self.num_agents, *array.shape[1:])

    def _by_agent(self, array: torch.Tensor) -> dict[str, torch.Tensor]:
        return dict(zip(self.possible_agents, self._by_world(array).unbind(1), strict=True))

    def _joined(self, actions: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Actions of all agents, [num_envs * num_agents, ...]."""
        if not isinstance(actions, Mapping) or set(actions) != set(self.possible_agents):
            shown = list(actions) if isinstance(actions, Mapping) else actions
            refuse("actions", f"a dictionary of {self.possible_agents}", shown)
        agents = self.possible_agents
        rows = [_rows(f"actions[{agent!r}]", actions[agent], self.num_envs, self._rooms) for agent in agents]
        return torch.stack(rows, 1).flatten(0, 1)


def _rows(name: str, actions: Any, num_rows: int, rooms: Rooms) -> Any:
    """Actions of tensors in the manner of skrl, where single numbers have a dimension, too."""
    shape = (num_rows, len(rooms.action_sizes))
    return integers(name, actions, shape).reshape(num_rows, *rooms.action_shape)


def _autoreset_of(num_envs: int) -> Autoreset:
    """skrl's trainers reset a single environment when its episode ends, but never one of several."""
    return "disabled" if num_envs == 1 else "same_step"


def _infos(rooms: Rooms, outcome: Outcome) -> dict[str, Any]:
    if rooms.autoreset == "same_step":
        final = flatten_tensorized_space(rooms.final_observation(outcome.ended))
    else:
        final = flatten_tensorized_space(outcome.observation) * outcome.ended[:, None]
    return {
        "final_observations": final,
        "episode_returns": rooms.final_returns(),
        "episode_lengths": rooms.final_lengths(),
    }
