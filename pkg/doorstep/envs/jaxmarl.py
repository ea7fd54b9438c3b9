"""One world as an environment of JaxMARL: everything by the names of agents."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, final

import jax
import jax.numpy as jnp

from doorstep._action_forms import ActionForm
from doorstep._arguments import refuse, showing
from doorstep.envs._jax_spaces import Discrete, action_space, for_gymnax
from doorstep.envs.jax import EscapeRoomJaxEnv
from doorstep.jax import BatchState


@final
class EscapeRoomJaxMARLEnv:
    """One world as pure functions, with the arguments and results of `jaxmarl.environments.MultiAgentEnv`.

    Nothing of this needs JaxMARL. As in `EscapeRoomJaxEnv`, which it is made of, `jax.vmap` is many worlds.

    >>> import doorstep.envs, jax
    >>> env = doorstep.envs.EscapeRoomJaxMARLEnv(actions="discrete")
    >>> env.agents, env.action_space("agent_0").n
    (['agent_0', 'agent_1'], 320)
    >>> key = jax.random.key(0)
    >>> observations, state = env.reset(key)
    >>> actions = {agent: env.action_space(agent).sample(key) for agent in env.agents}
    >>> observations, state, rewards, dones, info = env.step(key, state, actions)
    >>> observations["agent_1"].shape, sorted(dones)
    ((94,), ['__all__', 'agent_0', 'agent_1'])

    Args:
        actions: "multi_discrete", "discrete" or "tuple": what an agent's action is, as for `EscapeRoomJaxEnv`.
        arguments: others of `EscapeRoomJaxEnv`, but `agents` and `flags`: `observations`, `levels`, `num_agents`, ...

    Attributes:
        agents: their names, "agent_0", "agent_1", ...
        observation_spaces, action_spaces: one agent's, by its name.

    Raises:
        ArgumentError: an argument is out of range; the message names it.
    """

    name = "EscapeRoom"
    __repr__ = showing("num_agents")

    def __init__(self, *, actions: ActionForm = "multi_discrete", **arguments: Any) -> None:
        self._env = EscapeRoomJaxEnv(agents="rows", actions=actions, flags="done", **arguments)
        self.num_agents = self._env.num_agents
        self.agents = [f"agent_{agent}" for agent in range(self.num_agents)]
        self.observation_spaces = dict.fromkeys(self.agents, self._env._space_below(2))
        self.action_spaces = dict.fromkeys(self.agents, for_gymnax(action_space(actions, 1, by_agent=False)))

    def observation_space(self, agent: str) -> Any:
        """The space of an agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """The space of an agent's actions."""
        return self.action_spaces[agent]

    @functools.partial(jax.jit, static_argnames=("self",))
    def reset(self, key: jax.Array) -> tuple[dict[str, Any], BatchState]:
        """Begins the first episode: observations by agent, and the state. The key chooses all levels that follow."""
        observations, state = self._env.reset(key)
        return self._by_agent(observations), state

    @functools.partial(jax.jit, static_argnames=("self",))
    def step(
        self, key: jax.Array | None, state: BatchState, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Any], BatchState, dict[str, jax.Array], dict[str, jax.Array], dict[str, jax.Array]]:
        """One step. If it ends the episode, it also begins the next one.

        Args:
            key: not used: a world knows the levels that follow.
            state: of `reset()` or `step()`.
            actions: of each agent, integers of the shape of its space. A "discrete" one may be [1], as scripts of
                JaxMARL give it.

        Returns:
            Observations, the state, rewards (float32 []) and dones (bool []) by agent, and info. Where an episode has
            ended, observations are the first ones of the next. All agents are done at once, as is `dones["__all__"]`.
            `info` has arrays [agents]: `terminated`, `truncated`, `episode_returns`, `episode_lengths` and `level`, as
            `EscapeRoomJaxEnv.step()` says.

        Raises:
            ArgumentError: an agent has no action, one of another shape or dtype, or `state` is another environment's.
        """
        if not isinstance(actions, Mapping) or set(actions) != set(self.agents):
            refuse("actions", f"an action for each of {', '.join(self.agents)}", actions)
        rows = [actions[agent] for agent in self.agents]
        if isinstance(self.action_spaces[self.agents[0]], Discrete):
            rows = [jnp.reshape(row, ()) if jnp.shape(row) == (1,) else row for row in rows]
        stacked = jax.tree_util.tree_map(lambda *parts: jnp.stack(parts), *rows)
        observations, state, rewards, done, info = self._env.step(key, state, stacked)
        del info["final_observation"]  # scripts make one number for each agent of every array
        info = {name: jnp.broadcast_to(array, done.shape) for name, array in info.items()}
        dones = self._by_agent(done) | {"__all__": done.all()}
        return self._by_agent(observations), state, self._by_agent(rewards), dones, info

    def _by_agent(self, rows: Any) -> dict[str, Any]:
        return {
            agent: jax.tree_util.tree_map(lambda row, index=index: row[index], rows)
            for index, agent in enumerate(self.agents)
        }
