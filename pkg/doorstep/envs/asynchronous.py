"""Stepping in groups, so that some worlds are simulated while a policy looks at the others; in the way of EnvPool."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doorstep._action_forms import ActionForm
from doorstep._arguments import check_choice, check_integer, refuse, showing
from doorstep._native import MAX_GLOBAL_WORLDS, MAX_WORLDS
from doorstep._observations import OBSERVATIONS
from doorstep.envs._arrays import as_array
from doorstep.envs._rooms import AGENTS_VIEWS, AgentsView, EnvObservations, Outcome, Rooms, rows_of_worlds, with_seed
from doorstep.envs._spaces import SpacesOfRows
from doorstep.errors import StateError
from doorstep.event import StepEvent
from doorstep.simulator import Simulator

POLL_SECONDS = 1e-4  # between two looks at which of several groups is ready


class AsyncEscapeRooms(SpacesOfRows):
    """Sub-environments in `num_groups` groups, which are stepped at the same time and received one at a time.

    While the caller chooses actions for the group that `recv()` returned, the others are simulated. Each group has a
    simulator of its own; together they are one: worlds, levels and episodes are those of an `EscapeRoomVectorEnv` with
    the same arguments, as are all numbers returned for a row, step by step.

    As with autoreset mode "next_step", the step after the end of an episode begins the next one, and its actions have
    no effect on these rows.

    >>> import doorstep.envs
    >>> env = doorstep.envs.AsyncEscapeRooms(8, seed=3)   # 2 groups of 4 worlds
    >>> env.async_reset()
    >>> for _ in range(10):
    ...     observations, rewards, terminations, truncations, info = env.recv()
    ...     env.send(env.action_space.sample(), info["env_id"])
    >>> observations.shape, info["env_id"].tolist() in ([0, 1, 2, 3], [4, 5, 6, 7])
    ((4, 2, 94), True)
    >>> env.close()

    Args:
        num_envs: sub-environments, a multiple of `num_groups`.
        num_groups: groups. 1: nothing overlaps.
        agents: what a sub-environment is: "joint", a world, or "rows", an agent, as for `EscapeRoomVectorEnv`. Agents
            of a world are in one group.
        actions, observations, rules: as for `EscapeRoomVectorEnv`. `num_threads` is for each group.

    Attributes:
        num_envs: sub-environments.
        num_groups: groups.
        batch_size: sub-environments of a group: `num_envs / num_groups`.
        single_observation_space, single_action_space: of one sub-environment.

    Raises:
        ArgumentError: an argument is out of range; the message names it.
    """

    __repr__ = showing("num_envs", "num_groups", "batch_size")

    def __init__(
        self,
        num_envs: int,
        *,
        num_groups: int = 2,
        agents: AgentsView = "joint",
        actions: ActionForm = "multi_discrete",
        observations: EnvObservations = OBSERVATIONS,
        **rules: Any,
    ) -> None:
        self.num_envs = check_integer("num_envs", num_envs, 1, MAX_WORLDS)
        self.num_groups = check_integer("num_groups", num_groups, 1, MAX_WORLDS)
        check_choice("agents", agents, AGENTS_VIEWS)
        rows_per_world = rows_of_worlds(1, rules) if agents == "rows" else 1
        worlds, rest = divmod(self.num_envs, self.num_groups * rows_per_world)
        if rest:
            of_agents = "" if rows_per_world == 1 else f" times num_agents, which is {rows_per_world}"
            refuse("num_envs", f"a multiple of num_groups, which is {self.num_groups}{of_agents}", num_envs)
        self.batch_size = worlds * rows_per_world
        last = MAX_GLOBAL_WORLDS - worlds * self.num_groups
        offset = check_integer("world_offset", rules.get("world_offset", 0), 0, last)
        seeded = with_seed(rules)
        self._groups = [
            Rooms(
                self.batch_size,
                agents=agents,
                actions=actions,
                observations=observations,
                rules={**seeded, "world_offset": offset + group * worlds},
            )
            for group in range(self.num_groups)
        ]
        self._ids = np.arange(self.num_envs, dtype=np.int32).reshape(self.num_groups, self.batch_size)
        self._is_started = False
        # A group is in one of these, or its rows were received.
        self._begun: dict[int, Any] = {}
        self._running: dict[int, StepEvent] = {}
        self._make_spaces(self._groups[0])

    @property
    def simulators(self) -> tuple[Simulator, ...]:
        """The simulator of each group. They stay the same. Not to be used while its group steps.

        Steps cost a tenth more once they were asked for: they then have observations of their own.
        """
        return tuple(rooms.simulator for rooms in self._groups)

    @property
    def np_random_seed(self) -> int:
        """The seed of the levels: the one that was given, or drawn where none was."""
        return self._groups[0].config.seed

    def async_reset(self, *, seed: int | None = None) -> None:
        """Begins an episode everywhere; `recv()` then returns the first observations of each group.

        Steps that run, and what was not received, are dropped.

        Args:
            seed: of the levels, 0 to 2**32 - 1. None: the levels that follow those seen.
        """
        begun = {group: rooms.start(seed) for group, rooms in enumerate(self._groups)}
        self._begun, self._running = begun, {}
        self._is_started = True

    def send(self, actions: Any, env_id: Any) -> None:
        """Begins a step of the group whose rows `env_id` names, and returns at once.

        Args:
            actions: integers of the shape of `action_space`, in the order of `env_id`; copied.
            env_id: integers [batch_size], as `recv()` returned them in its info.

        Raises:
            ArgumentError: the actions have another shape, or a number is outside, or `env_id` is not that of a group.
            StateError: the group was not received since it was sent, or no episode has begun.
        """
        group = self._group_of(env_id)
        if not self._is_started:
            raise StateError("no episode has begun", hint="call async_reset() first")
        if group in self._running or group in self._begun:
            first, last = self._ids[group, [0, -1]]
            hint = "receive these rows with recv() first"
            raise StateError(f"rows {first} to {last} were not received", argument="env_id", hint=hint)
        self._running[group] = self._groups[group].begin(actions)

    def recv(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Waits for the group that is ready first; of several that are ready, the one that was sent first.

        Returns:
            Observations, rewards (float32), terminations, truncations (bool), info, each of the rows `info["env_id"]`
            (int32 [batch_size]). After `async_reset()`, rewards and flags are 0. Where an episode has ended, info has
            its `episode_returns` and `episode_lengths`; their masks begin with `_`. None of it is overwritten later.

        Raises:
            StateError: nothing was sent.
        """
        if self._begun:
            group = next(iter(self._begun))
            none = np.zeros(self.batch_size, bool)
            outcome = Outcome(self._begun.pop(group), none.astype(np.float32), none, none.copy(), none.copy())
        elif self._running:
            group = self._ready_first()
            del self._running[group]
            outcome = self._groups[group].finish()
        else:
            raise StateError("there is nothing to receive", hint="call async_reset() or send() first")
        statistics = self._groups[group].statistics(outcome.ended) if outcome.ended.any() else {}
        info = {"env_id": self._ids[group].copy(), **statistics}
        return outcome.observation, outcome.rewards, outcome.terminations, outcome.truncations, info

    def step(
        self, actions: Any, env_id: Any
    ) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """`send(actions, env_id)`, then `recv()`, which may return another group."""
        self.send(actions, env_id)
        return self.recv()

    def close(self) -> None:
        """Waits for steps that run, and closes the simulators."""
        for rooms in self._groups:
            rooms.close()

    def _ready_first(self) -> int:
        oldest = next(iter(self._running.values()))
        while True:
            for group, event in self._running.items():
                if event.done:
                    return group
            oldest.wait(POLL_SECONDS if len(self._running) > 1 else None)

    def _group_of(self, env_id: Any) -> int:
        ids = as_array("env_id", env_id)
        group = int(ids[0]) // self.batch_size if ids.shape == (self.batch_size,) and ids.dtype.kind in "iu" else -1
        if not (0 <= group < self.num_groups and np.array_equal(ids, self._ids[group])):
            refuse("env_id", f"the {self.batch_size} numbers of a group, as recv() returned them", ids.tolist())
        return group
