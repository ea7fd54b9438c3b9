"""An environment for PufferLib 3: its buffers are the simulator's memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pufferlib
from gymnasium import spaces
from numpy.typing import NDArray

from doorstep._arguments import refuse
from doorstep._native import ACTIONS
from doorstep.config import SimulatorConfig, as_config
from doorstep.envs._bounds import bounds_of
from doorstep.envs._rooms import RENDER_OPTIONS, integers, longest_episode, refuse_unknown, split_levels, with_seed
from doorstep.errors import ArgumentError, StateError
from doorstep.simulator import Simulator

# PufferLib's names of tensors; what they hold is the same
BUFFERS = {
    "observations": "observations",
    "rewards": "rewards",
    "terminals": "terminations",
    "truncations": "truncations",
    "actions": "actions",
}
# Rules that the environment decides, and what to use in their place
DECIDED = {
    "num_worlds": "pass num_envs",
    "auto_reset": "a step that ends an episode begins the next one",
}


class EscapeRoomPufferEnv(pufferlib.PufferEnv):  # type: ignore[misc]
    """Worlds for PufferLib. Rows are agents, those of world 0 first, so that one policy controls all agents.

    A step writes PufferLib's own buffers, also those shared between processes: nothing is copied. A step that ends an
    episode begins the next one; PufferLib has no place for the last observation. Pass the class to
    `pufferlib.vector.make`, with any backend; one environment already uses all cores.

    >>> import numpy
    >>> from doorstep.envs import EscapeRoomPufferEnv
    >>> env = EscapeRoomPufferEnv(4, seed=7)
    >>> observations, infos = env.reset()
    >>> observations.shape
    (8, 94)
    >>> observations, rewards, terminals, truncations, infos = env.step(numpy.ones((8, 4), numpy.int32))
    >>> observations is env.observations
    True
    >>> env.close()

    Args:
        num_envs: worlds.
        buf: buffers by name, of which PufferLib makes those that several environments share; None: own buffers.
        seed: of the levels, 0 to 2**32 - 1. None: one is drawn, which `np_random_seed` tells.
        rules: of the simulator, by name: `num_agents` (of a world), `episode_length`, `observations`, ... as for
            `doorstep.SimulatorConfig`. The device is the CPU.

    Raises:
        ArgumentError: an argument is out of range, or a buffer does not fit; the message names it.

    Attributes:
        num_agents: rows: `num_envs` times the agents of a world.
        observations: float32 [num_agents, size].
        rewards: float32 [num_agents].
        terminals: bool [num_agents]; where the task ended the episode.
        truncations: bool [num_agents]; where the time ended it.
        actions: int32 [num_agents, 4].
    """

    render_mode = "rgb_array"

    def __init__(
        self, num_envs: int = 1, *, buf: Mapping[str, Any] | None = None, seed: int | None = None, **rules: Any
    ) -> None:
        rules, played = split_levels(with_seed({**rules, "seed": seed}))
        config = _config_of(num_envs, rules)
        self._simulator = simulator = Simulator.from_config(config, **played)
        self._config = simulator.config  # with room for the levels
        self.num_agents = config.num_worlds * config.num_agents
        low, high = bounds_of(
            "observations",
            num_agents=config.num_agents,
            longest_episode=longest_episode(config, played.get("levels", ())),
            has_levels=simulator.config.max_levels > 0,
            observations=config.observations,
        )
        self.single_observation_space = spaces.Box(low, high, low.shape, np.float32)
        self.single_action_space = spaces.MultiDiscrete(tuple(ACTIONS))
        super().__init__(buf)
        self._bind(simulator)
        self._episodes = 0  # begun by reset()

    @property
    def simulator(self) -> Simulator:
        """The simulator that steps the worlds."""
        return self._simulator

    @property
    def np_random_seed(self) -> int:
        """The seed of the levels: the one that was given, or drawn where none was."""
        return self._simulator.seed

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._bind(self._simulator)

    def reset(self, seed: int | None = None) -> tuple[NDArray[np.float32], list[dict[str, float]]]:
        """Begins episodes in all worlds; `seed` of the levels, or None: the levels that follow.

        Returns:
            `observations`, and an empty list.
        """
        if seed is not None:
            self._simulator.reset(seed=seed)
        elif self._episodes:
            self._simulator.reset()
        self._episodes += 1
        return self.observations, []

    def step(
        self, actions: Any
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], list[dict[str, float]]]:
        """Steps every world once.

        Args:
            actions: integers [num_agents, 4]. `env.actions`, written in place, is not copied.

        Returns:
            `observations`, `rewards`, `terminals`, `truncations`, which the next step overwrites, and infos: where
            episodes have ended, a dictionary with the means of their `episode_return` and `episode_length`.

        Raises:
            ArgumentError: the actions have another shape or are no integers. Nothing was stepped.
            StateError: reset() was not called.
        """
        if not self._episodes:
            raise StateError("no episode has begun", hint="call reset() first")
        if actions is not self.actions:
            self._take(actions)
        self._simulator.step()
        return self.observations, self.rewards, self.terminals, self.truncations, self._infos()

    def render(self, world: int = 0, **options: Any) -> NDArray[np.uint8]:
        """A picture of a world, uint8 [height, width, 3], with the keywords of `Simulator.render`."""
        picture: NDArray[np.uint8] = self._simulator.render(world, **{**RENDER_OPTIONS, **options})
        return picture

    def close(self) -> None:
        """Closes the simulator; the buffers stay."""
        self._simulator.close()

    # ---- Steps of these ----

    def _bind(self, simulator: Simulator) -> None:
        simulator.bind(**{tensor: getattr(self, name) for name, tensor in BUFFERS.items()})

    def _take(self, actions: Any) -> None:
        self._simulator.actions = integers("actions", actions, self.actions.shape)

    def _infos(self) -> list[dict[str, float]]:
        if not (self.terminals.any() or self.truncations.any()):
            return []
        agents = self._config.num_agents
        ended = (self.terminals | self.truncations)[::agents]  # the agents of a world end together
        returns, lengths = (np.asarray(self._simulator.tensors[f"episode_{name}"]) for name in ("returns", "lengths"))
        return [{"episode_return": float(returns[ended].mean()), "episode_length": float(lengths[ended].mean())}]


def _config_of(num_envs: int, rules: Mapping[str, Any]) -> SimulatorConfig:
    refuse_unknown(rules, DECIDED, ())
    try:
        config = as_config(num_envs, rules)
    except ArgumentError as error:
        if error.argument not in ("num_worlds", "config"):
            raise
        refuse("num_envs", "a number of worlds", num_envs)
    if not config.has_flat_observations:
        refuse("observations", "parts, side by side", config.observations, "PufferLib's buffers are flat")
    for name, only in (("device", "cpu"), ("cameras", None)):
        if getattr(config, name) != only:
            refuse(name, repr(only), getattr(config, name), "PufferLib's buffers are on the CPU and flat")
    return config
