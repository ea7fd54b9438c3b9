"""A vector environment of Stable-Baselines3: one simulator is all of its sub-environments."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from doorstep._action_forms import NO_TUPLES, ActionForm
from doorstep._arguments import check_choice, check_integer, is_integer, refuse
from doorstep._native import MAX_SEED
from doorstep._observations import OBSERVATIONS
from doorstep.envs._rooms import AgentsView, EnvObservations, Outcome, OverRooms, Rooms, check_render_mode, row_of
from doorstep.envs._spaces import action_space, observation_space
from doorstep.envs.vector import check_options

# Observations, rewards, dones, infos.
Stepped: TypeAlias = tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]


class EscapeRoomVecEnv(OverRooms, VecEnv):  # type: ignore[misc]
    """A vector environment of Stable-Baselines3, with arrays of numpy.

    A step that ends an episode begins the next one. Infos of rows whose episode ended have:

    - `terminal_observation`, the last observation of the episode that ended;
    - `TimeLimit.truncated`, whether time ended it, and not the task;
    - `episode`: `{"r": return, "l": steps, "t": seconds since the environment was made}`, as a `Monitor` adds it.

    Infos of other rows are empty.

    >>> import doorstep.envs
    >>> env = doorstep.envs.EscapeRoomVecEnv(8, seed=3)   # 4 worlds of 2 agents
    >>> env.reset().shape
    (8, 94)
    >>> import numpy
    >>> observations, rewards, dones, infos = env.step(numpy.ones((8, 4), int))
    >>> rewards.shape, len(infos)
    ((8,), 8)
    >>> env.close()

    Args:
        num_envs: sub-environments.
        agents: what a sub-environment is. "rows": an agent of a world, so that one policy controls all agents;
            `num_envs` is then a multiple of `num_agents`. "joint": a world; its action is the actions of all agents
            side by side, its reward their mean.
        actions: the form of an agent's action. "multi_discrete": its four components. "discrete": one number, 0 to 319,
            as for `EscapeRoomVectorEnv`; DQN, QRDQN and ARS know no other.
        observations: parts, as for `Simulator`: one vector for each agent. "by_name": the parts by name, for
            `MultiInputPolicy`. "pixels": the views of `cameras`; a dictionary, if the cameras make several tensors.
        render_mode: "rgb_array" or None.
        render_options: keywords of `Simulator.render` for pictures, such as `width`, `height` and `samples`.
        rules: of the simulator, by name: `seed`, `num_agents`, `episode_length`, `num_threads`, `cameras`, ... as for
            `doorstep.SimulatorConfig`.

    Raises:
        ArgumentError: an argument is out of range; the message names it.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        agents: AgentsView = "rows",
        actions: ActionForm = "multi_discrete",
        observations: EnvObservations = OBSERVATIONS,
        render_mode: str | None = None,
        render_options: Mapping[str, Any] | None = None,
        **rules: Any,
    ) -> None:
        check_choice("actions", actions, NO_TUPLES)
        self.render_mode = check_render_mode(render_mode)
        # Cameras draw no view of an episode that is replaced in the same step: here a reset replaces it after the step.
        autoreset: Any = "disabled" if observations == "pixels" else "same_step"
        self._rooms = Rooms(
            num_envs,
            agents=agents,
            actions=actions,
            observations=observations,
            autoreset=autoreset,
            render_options=render_options,
            rules=rules,
        )
        super().__init__(self._rooms.num_rows, observation_space(self._rooms), action_space(self._rooms))
        self._infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self._made_at = time.perf_counter()

    def reset(self) -> Any:
        """Begins an episode everywhere and returns all observations; a step that runs is dropped.

        The levels are those of `seed()`, if it was called since the last reset, else those that follow.
        """
        observations = self._rooms.start(self._seeds[0])
        self._reset_seeds()
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Begins a step of every sub-environment and returns at once; `step_wait()` reads it.

        Args:
            actions: integers [num_envs, components]; as "discrete" the numbers of actions, [num_envs] for agents.

        Raises:
            ArgumentError: the actions have another shape, are no integers, or, as "discrete", a number is outside.
            StateError: `reset()` was not called, or a step is running.
        """
        self._rooms.begin(actions)

    def step_wait(self) -> Stepped:
        """Waits for the step that `step_async()` began.

        Returns:
            Observations, rewards (float32), dones (bool), infos. None of it is overwritten later.

        Raises:
            StateError: no step has begun.
        """
        return self._told(self._rooms.finish())

    def step(self, actions: NDArray[Any]) -> Stepped:
        """`step_async(actions)`, then `step_wait()`, without the way to another thread and back."""
        return self._told(self._rooms.step(actions))

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Sets the seed of the levels for the next `reset()`, 0 to 2**32 - 1; None: a random one of numpy.

        Returns:
            The seed, once for each sub-environment: it is one seed for all of them, whose levels differ.
        """
        if seed is not None:
            seed = check_integer("seed", seed, 0, MAX_SEED)
        self._seeds = [super().seed(seed)[0]] * self.num_envs
        return self._seeds

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """Resets have no options: refuses all but None and empty ones."""
        for each in options if isinstance(options, list) else [options]:
            check_options(each, ())

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """An attribute of this object, which all sub-environments share, once for each of `indices`."""
        value = getattr(self, attr_name)
        return [value for _ in self._rows(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Sets an attribute of this object, which all sub-environments share: `indices` are all of them, or None."""
        self._check_all(indices)
        setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of this object once, and returns its result for each sub-environment.

        `indices` are all of them, or None, except for "render": it draws a picture of each, uint8 [height, width, 3],
        with the keywords of `Simulator.render`.
        """
        if method_name == "render":
            return [self._rooms.render(row, *method_args, **method_kwargs) for row in self._rows(indices)]
        self._check_all(indices)
        result = getattr(self, method_name)(*method_args, **method_kwargs)
        return [result for _ in range(self.num_envs)]

    def env_is_wrapped(self, wrapper_class: Any, indices: int | Iterable[int] | None = None) -> list[bool]:
        """For each of `indices`: True for `Monitor`, whose infos these environments have, False for other wrappers."""
        return [wrapper_class is Monitor for _ in self._rows(indices)]

    def get_images(self) -> Sequence[NDArray[np.uint8]]:
        """A picture of every sub-environment, uint8 [height, width, 3]; `render()` puts them side by side."""
        return [self._rooms.render(row) for row in range(self.num_envs)]

    def _told(self, outcome: Outcome) -> Stepped:
        observations = outcome.observation
        # A dictionary with something in it is the caller's from now on; it takes long to make thousands of empty ones.
        self._infos = [{} if info else info for info in self._infos]
        if outcome.ended.any():
            for row, info in self._infos_of_ended(outcome):
                self._infos[row] = info
            if self._rooms.autoreset == "disabled":
                observations = self._rooms.start(rows=outcome.ended)
        return observations, outcome.rewards, outcome.ended, self._infos.copy()

    def _infos_of_ended(self, outcome: Outcome) -> Iterable[tuple[int, dict[str, Any]]]:
        replaced = self._rooms.autoreset == "same_step"
        final = self._rooms.final_observation(outcome.ended) if replaced else outcome.observation
        returns, lengths = self._rooms.final_returns().tolist(), self._rooms.final_lengths().tolist()
        truncated = (outcome.truncations & ~outcome.terminations).tolist()
        seconds = round(time.perf_counter() - self._made_at, 6)
        for row in np.flatnonzero(outcome.ended).tolist():
            yield (
                row,
                {
                    "terminal_observation": copy.deepcopy(row_of(final, row)),  # else it keeps the memory of all rows
                    "TimeLimit.truncated": truncated[row],
                    "episode": {"r": returns[row], "l": lengths[row], "t": seconds},
                },
            )

    def _rows(self, indices: object) -> Iterable[int]:
        if indices is None:
            return range(self.num_envs)
        if is_integer(indices):
            indices = [indices]
        if not isinstance(indices, Iterable):
            refuse("indices", "None, an integer or several", indices)
        return [check_integer("indices", index, 0, self.num_envs - 1) for index in indices]

    def _check_all(self, indices: int | Iterable[int] | None) -> None:
        if indices is not None and set(self._rows(indices)) != set(range(self.num_envs)):
            refuse("indices", "None or all, as all sub-environments are one object", indices)
