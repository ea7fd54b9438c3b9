"""One world as an environment of JAX programs, with the functions of gymnax."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

import doorstep.jax
from doorstep._action_forms import ACTION_FORMS, ACTION_TABLE, ActionForm
from doorstep._arguments import check_choice, refuse, showing
from doorstep._batches import OUTLIVING, with_levels
from doorstep._level_table import REFERENCE
from doorstep._native import ACTIONS
from doorstep._observations import OBSERVATIONS, AnyObservations
from doorstep.config import as_config
from doorstep.envs._bounds import bounds_of
from doorstep.envs._jax_spaces import Box, Dict, Tuple, action_space, for_gymnax
from doorstep.envs._rooms import AGENTS_VIEWS, AgentsView, longest_episode, parts_of_agent, refuse_unknown
from doorstep.jax import BatchState
from doorstep.levels.choice import AnyLevels
from doorstep.levels.rules import Rewards

Flags: TypeAlias = Literal["both", "done"]

FLAGS = ("both", "done")
READ = ("rewards", "terminations", "truncations", "episode_returns", "episode_lengths")
# Rules that the environment decides, and what to use in their place
DECIDED = {
    "num_worlds": "jax.vmap makes many",
    "auto_reset": "a step that ends an episode begins the next one",
    "seed": "the key of reset() chooses the levels",
}


@final
@functools.partial(jax.tree_util.register_dataclass, data_fields=(), meta_fields=("max_steps_in_episode",))
@dataclass(frozen=True)
class EnvParams:
    """The rules that programs written for gymnax ask for. They are fixed when an environment is made."""

    max_steps_in_episode: int


@final
class EscapeRoomJaxEnv:
    """One world as pure functions, with the arguments and results of gymnax 1.0.

    `jax.vmap` of them is many worlds, which each step steps in one call. Nothing of this needs gymnax.

    >>> import doorstep.envs, jax
    >>> env = doorstep.envs.EscapeRoomJaxEnv(agents="rows")
    >>> keys = jax.random.split(jax.random.key(0), 16)
    >>> observations, states = jax.vmap(env.reset)(keys)
    >>> observations.shape
    (16, 2, 94)
    >>> actions = jax.vmap(env.action_space().sample)(keys)
    >>> observations, states, rewards, terminated, truncated, info = jax.vmap(env.step)(keys, states, actions)
    >>> rewards.shape
    (16, 2)

    Programs written for gymnax before 1.0, rejax and PureJaxRL among them, choose one of an agent's 320 actions and
    read one flag:

    >>> env = doorstep.envs.EscapeRoomJaxEnv(num_agents=1, actions="discrete", flags="done")
    >>> env.action_space().n
    320
    >>> observation, state = env.reset(jax.random.key(0))
    >>> observation, state, reward, done, info = env.step(None, state, jax.numpy.int32(180))

    Args:
        agents: "joint": an action is the actions of all agents side by side, a reward their mean, the flags scalars.
            "rows": all of these have a first dimension of agents. Observations have it in both, but for a single agent
            with "joint".
        actions: "multi_discrete": integers, the components of agents' actions side by side. "discrete": for each agent
            one number, that of `numpy.ravel_multi_index(action, doorstep.ACTIONS)`; a single agent's has no dimension
            with "joint", and numbers outside are clamped to 0 to 319. "tuple": a tuple of the components, with "joint"
            those of all agents, with "rows" each [agents].
        flags: "both": steps return terminated and truncated. "done": one flag in their place, either of the two.
        observations: parts, as for `Simulator`: one vector for each agent. "by_name": the parts by name.
        levels: what worlds play, as for `Simulator`: a world draws one of them at every reset, all equally likely.
        reward: what agents are rewarded for, as for `Simulator`.
        rules: as for `doorstep.jax.make`: `num_agents`, `episode_length`, `device`, ...

    Raises:
        ArgumentError: an argument is out of range, or a level is refused; the message names it.
        DeviceError: the device cannot be used.
    """

    __repr__ = showing("num_agents")

    def __init__(
        self,
        *,
        agents: AgentsView = "joint",
        actions: ActionForm = "multi_discrete",
        flags: Flags = "both",
        observations: AnyObservations = OBSERVATIONS,
        levels: AnyLevels = REFERENCE,
        reward: Rewards | None = None,
        **rules: Any,
    ) -> None:
        own: dict[str, Any] = {"agents": agents, "actions": actions, "flags": flags, "observations": observations}
        self._arguments = {**own, "levels": levels, "reward": reward, **rules}
        check_choice("agents", agents, AGENTS_VIEWS)
        check_choice("actions", actions, ACTION_FORMS)
        check_choice("flags", flags, FLAGS)
        refuse_unknown(rules, DECIDED, ())
        config, chosen = with_levels(as_config(1, {**rules, "observations": observations}), levels)
        self.num_agents, self._observations = config.num_agents, config.observations
        self._by_agent = agents == "rows"
        self._action_space = action_space(actions, config.num_agents, by_agent=self._by_agent)
        self._has_agents = self._by_agent or config.num_agents > 1
        self._params = EnvParams(longest_episode(config, chosen))
        self._plays_levels = config.max_levels > 0
        self._parts = parts_of_agent(config)
        finals = [f"final_{name}" for name in self._parts]
        drawn = ["level_indices"] if self._plays_levels else []
        outputs = [*self._parts, *finals, *READ, *drawn]
        self._rooms = doorstep.jax.make(config, outputs=outputs, levels=chosen or REFERENCE, reward=reward)
        self._program = jax.eval_shape(self._rooms.init).program

    # ---- What it is ----

    @property
    def name(self) -> str:
        return "EscapeRoom"

    @property
    def default_params(self) -> EnvParams:
        """The rules, as an argument for the functions; None means the same."""
        return self._params

    def observation_space(self, params: EnvParams | None = None) -> Any:
        """The space of one world's observations; `sample(key)` and `contains(x)` may be traced."""
        self._check_params(params)
        return self._space_below(1 if self._has_agents else 2)

    def action_space(self, params: EnvParams | None = None) -> Any:
        """The space of one world's actions, of int32, as `actions` and `agents` say."""
        self._check_params(params)
        return for_gymnax(self._action_space)

    # ---- Episodes ----

    @functools.partial(jax.jit, static_argnames=("self",))
    def reset(self, key: jax.Array, params: EnvParams | None = None) -> tuple[Any, BatchState]:
        """Begins the first episode.

        Args:
            key: chooses the levels of this episode and of all that follow it: those of the seed
                `jax.random.bits(key, (), "uint32")`.
            params: `default_params` or None.

        Returns:
            The observation, float32 [agents, size] or a dictionary of arrays, and the state: a
            `doorstep.jax.BatchState` without the dimension of worlds, which `jax.vmap` adds.
        """
        self._check_params(params)
        batch = self._rooms.init(jax.random.bits(key, (), jnp.uint32))
        return self._observation(batch), self._state(batch)

    @functools.partial(jax.jit, static_argnames=("self",))
    def step(
        self, key: jax.Array | None, state: BatchState, action: Any, params: EnvParams | None = None
    ) -> tuple[Any, ...]:
        """One step. If it ends the episode, it also begins the next one.

        Args:
            key: not used: a world knows the levels that follow.
            state: of `reset()` or `step()`.
            action: integers of the shape of `action_space()`, or a tuple of them.
            params: `default_params` or None.

        Returns:
            Observation, state, reward (float32), terminated, truncated (bool), info; with `flags="done"` one flag in
            place of two. Where an episode has ended, the observation is the first one of the next. `info` has
            `terminated`, `truncated` and

            - `final_observation`: what the action led to, also where the episode has ended;
            - `episode_returns`, `episode_lengths`: of the episode that ended last; 0 before;
            - `level`, if the environment was made with levels: int32 [], the index of the one that the world plays now.

        Raises:
            ArgumentError: `state` was not returned by this environment, or the action has another shape or dtype.
        """
        self._check_params(params)
        if not isinstance(state, BatchState) or state.program is not self._program:
            refuse("state", "a state of this environment, as reset() and step() return", state)
        batch = self._rooms.step(jax.tree_util.tree_map(lambda array: array[None], state), self._actions(action))
        terminated, truncated = batch.terminations[0, :, 0] != 0, batch.truncations[0, :, 0] != 0
        ended = (terminated | truncated)[0]
        final = {
            name: self._of_world(jnp.where(ended, batch.tensors[f"final_{name}"], batch.tensors[name]))
            for name in self._parts
        }
        if not self._by_agent:
            terminated, truncated = terminated[0], truncated[0]
        info = {
            "terminated": terminated,
            "truncated": truncated,
            "final_observation": self._joined(final),
            "episode_returns": self._reward(batch.episode_returns),
            "episode_lengths": jnp.broadcast_to(batch.episode_lengths[0, 0], terminated.shape),
        }
        if self._plays_levels:
            info["level"] = batch.level_indices[0, 0]
        flags = (terminated | truncated,) if self._arguments["flags"] == "done" else (terminated, truncated)
        return self._observation(batch), self._state(batch), self._reward(batch.rewards), *flags, info

    def __reduce__(self) -> Any:
        """Copies and pickles are made of the arguments; states belong to the environment that returned them."""
        return functools.partial(EscapeRoomJaxEnv, **self._arguments), ()

    # ---- Steps of these ----

    def _check_params(self, params: object) -> None:
        if params is not None and params != self._params:
            refuse("params", "None or default_params", params, "rules are arguments of the environment itself")

    def _actions(self, action: Any) -> jax.Array:
        """As the batch of one world takes them."""
        space, parts = self._action_space, (action,)
        if isinstance(space, Tuple):
            if not isinstance(action, (tuple, list)) or len(action) != space.num_spaces:
                refuse("action", f"a tuple of {space.num_spaces} components", action)
            parts, space = tuple(action), space.spaces[0]
        for part in parts:
            shape, dtype = jnp.shape(part), jnp.result_type(part)
            if shape != space.shape or not jnp.issubdtype(dtype, jnp.integer):
                refuse("action", f"integers of the shape {list(space.shape)}", f"{dtype}{list(shape)}")
        components = jnp.stack(parts, -1) if len(parts) > 1 else jnp.asarray(action)
        if self._arguments["actions"] == "discrete":
            components = jnp.take(jnp.asarray(ACTION_TABLE), components, axis=0, mode="clip")
        return components.astype(jnp.int32).reshape(1, self.num_agents, len(ACTIONS))

    def _state(self, batch: BatchState) -> BatchState:
        """One world, with no more than it needs to be stepped: what outlives a step."""
        kept = {name: array[0] for name, array in batch.tensors.items() if name in OUTLIVING}
        return BatchState(batch.worlds[0], kept, batch.program)

    def _observation(self, batch: BatchState) -> Any:
        return self._joined({name: self._of_world(batch.tensors[name]) for name in self._parts})

    def _of_world(self, batch: jax.Array) -> jax.Array:
        """An observation of a batch of one world; a single agent has no dimension with "joint"."""
        return batch[0] if self._has_agents else batch[0, 0]

    def _joined(self, parts: dict[str, jax.Array]) -> Any:
        return parts if len(parts) > 1 else parts[self._parts[0]]

    def _reward(self, by_agent: jax.Array) -> jax.Array:
        return by_agent[0, :, 0] if self._by_agent else by_agent[0, :, 0].mean()

    def _space_below(self, dimensions: int) -> Any:
        """Of observations without their first dimensions, which are worlds and agents."""
        boxes = {name: self._box(name, self._rooms.shapes[name].shape[dimensions:]) for name in self._parts}
        return for_gymnax(Dict(boxes) if len(boxes) > 1 else boxes[self._parts[0]])

    def _box(self, name: str, shape: tuple[int, ...]) -> Box:
        array = self._rooms.shapes[name]
        longest = self._params.max_steps_in_episode
        if array.dtype == np.int32:
            return Box(np.int32(0), np.int32(longest), shape, array.dtype)
        low, high = bounds_of(
            name,
            num_agents=self.num_agents,
            longest_episode=longest,
            has_levels=self._plays_levels,
            observations=self._observations,
        )
        return Box(low, high, shape, array.dtype)
