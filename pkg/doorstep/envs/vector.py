"""Vector environments of gymnasium: one simulator is all of their sub-environments."""

from __future__ import annotations

import copy as copies
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from doorstep._action_forms import ActionForm
from doorstep._arguments import check_choice, is_number, nearest, refuse
from doorstep._observations import OBSERVATIONS
from doorstep.envs._arrays import Arrays, host_arrays, torch_arrays
from doorstep.envs._rooms import (
    RENDER_MODES,
    AgentsView,
    Autoreset,
    EnvObservations,
    Outcome,
    OverRooms,
    Rooms,
    check_render_mode,
)
from doorstep.envs._spaces import SpacesOfRows
from doorstep.errors import ArgumentError

RESET_OPTIONS = ("reset_mask",)


class OverSpecifiedRooms(OverRooms):
    """An environment that gymnasium may have made from a spec."""

    _spec: Any = None

    @property
    def spec(self) -> Any:
        """What gymnasium made it from, with the length of its episodes; None if it was made directly."""
        return self._spec

    @spec.setter
    def spec(self, spec: Any) -> None:
        if spec is not None and spec.max_episode_steps is None:
            spec = copies.copy(spec)
            spec.max_episode_steps = self._rooms.longest_episode
        self._spec = spec


class _RoomsVectorEnv(SpacesOfRows, OverSpecifiedRooms, VectorEnv[Any, Any, Any]):  # type: ignore[misc]
    """What both environments share; `_arrays` makes the difference."""

    metadata: dict[str, Any]
    _arrays: Callable[[str], Arrays]

    def __init__(
        self,
        num_envs: int = 1,
        *,
        agents: AgentsView = "joint",
        actions: ActionForm = "multi_discrete",
        observations: EnvObservations = OBSERVATIONS,
        autoreset_mode: AutoresetMode | Autoreset = "next_step",
        render_mode: str | None = None,
        render_options: Mapping[str, Any] | None = None,
        copy: bool = True,
        max_episode_steps: int | None = None,
        **rules: Any,
    ) -> None:
        mode = check_autoreset_mode(autoreset_mode)
        render_mode = check_render_mode(render_mode)
        self._rooms = Rooms(
            num_envs,
            agents=agents,
            actions=actions,
            observations=observations,
            autoreset=_name_of(mode),
            copy=copy,
            arrays=type(self)._arrays,
            render_options=render_options,
            rules=rules,
        )
        longest = self._rooms.longest_episode
        if max_episode_steps is not None and not (is_number(max_episode_steps) and max_episode_steps == longest):
            self._rooms.close()
            refuse("max_episode_steps", f"None or {longest}, as of the rules", max_episode_steps, "pass episode_length")
        self.metadata = {**type(self).metadata, "autoreset_mode": mode}
        self.render_mode = render_mode
        self.num_envs = self._rooms.num_rows
        self._make_spaces(self._rooms)
        super().reset(seed=self.np_random_seed)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins episodes.

        Args:
            seed: of the levels, 0 to 2**32 - 1. None: the levels that follow those seen.
            options: `{"reset_mask": booleans [num_envs]}` begins an episode in these sub-environments only.

        Returns:
            All observations, and an empty dictionary.
        """
        mask = check_options(options, RESET_OPTIONS).get("reset_mask")
        observations = self._rooms.start(seed, mask)
        super().reset(seed=None if seed is None else self.np_random_seed)
        return observations, {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps every sub-environment once.

        Args:
            actions: integers of the shape of `action_space`; see the argument `actions` of the class.

        Returns:
            Observations, rewards (float32), terminations, truncations (bool), info. Where an episode has ended, info
            has its `episode_returns` and `episode_lengths`; with autoreset mode SAME_STEP they are in `final_info`,
            beside `final_obs`. Keys that begin with `_` are masks: where the value belongs to an ended episode.

        Raises:
            ArgumentError: the actions have another shape, or are no integers; or, as "discrete", a number is outside.
            StateError: reset() was not called, or, with autoreset mode DISABLED, not for an episode that has ended.
        """
        outcome = self._rooms.step(actions)
        info = self._info(outcome)
        return outcome.observation, outcome.rewards, outcome.terminations, outcome.truncations, info

    def _info(self, outcome: Outcome) -> dict[str, Any]:
        if not self._rooms.may_have_ended:
            return {}
        ended = outcome.ended
        statistics = self._rooms.statistics(ended)
        if self._rooms.autoreset != "same_step":
            return statistics
        final = self._rooms.final_observation(ended)
        return {"final_obs": final, "_final_obs": ended, "final_info": statistics, "_final_info": ended}

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """An attribute for each sub-environment, or what its method returns; as of gymnasium's own vectors."""
        value = getattr(self, name)
        result = value(*args, **kwargs) if callable(value) else value
        return result if name == "render" and result is not None else (result,) * self.num_envs

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """With render_mode "rgb_array": a picture of every sub-environment, uint8 [height, width, 3]."""
        if self.render_mode is None:
            return None
        return tuple(self._rooms.render(row) for row in range(self.num_envs))

    def close(self, **kwargs: Any) -> None:
        """Closes the simulator."""
        if "_rooms" in vars(self):  # older versions of gymnasium close what could not be made, too
            super().close()
        self.closed = True


class EscapeRoomVectorEnv(_RoomsVectorEnv, VectorEnv[Any, Any, Any]):  # type: ignore[misc]  # skrl reads its bases
    """A vector environment of gymnasium, with arrays of numpy.

    >>> import doorstep.envs
    >>> env = doorstep.envs.EscapeRoomVectorEnv(8, agents="rows", seed=3)   # 4 worlds of 2 agents
    >>> observations, info = env.reset()
    >>> observations.shape
    (8, 94)
    >>> observations, rewards, terminations, truncations, info = env.step(env.action_space.sample())
    >>> rewards.shape
    (8,)
    >>> env.close()

    Args:
        num_envs: sub-environments.
        agents: what a sub-environment is. "joint": a world; its action is the actions of all agents side by side, its
            reward their mean. "rows": an agent of a world, so that one policy controls all agents; `num_envs` is then a
            multiple of `num_agents`, and episodes of agents of one world end together.
        actions: the form of an agent's action. "multi_discrete": its four components, integers [num_envs, components].
            "discrete": one number, 0 to 319, for algorithms that know no other, such as DQN: that of
            `numpy.ravel_multi_index(action, doorstep.ACTIONS)`. [num_envs]; with "joint" and several agents
            [num_envs, num_agents]. "tuple": a space of gymnasium's `Tuple`, whose actions are a sequence of arrays
            [num_envs], one for each component; an array [num_envs, components] is the same.
        observations: parts, as for `Simulator`: one vector for each agent. "by_name": the parts by name. "pixels": the
            views of `cameras`; a dictionary, if the cameras make several tensors.
        autoreset_mode: when an ended episode is followed by the next: `gymnasium.vector.AutoresetMode`, or "next_step",
            "same_step", "disabled".
        render_mode: "rgb_array" or None.
        render_options: keywords of `Simulator.render` for pictures, such as `width`, `height`, `samples` and `camera`.
        copy: True: what `reset()` and `step()` return keeps its values. False: observations are the simulator's memory,
            which the next step overwrites.
        max_episode_steps: what a spec of gymnasium tells of the rules. To change it pass `episode_length`.
        rules: of the simulator, by name: `seed`, `num_agents`, `episode_length`, `num_threads`, `cameras`, `levels`,
            ... as for `Simulator`. Without a seed one is drawn: `np_random_seed` tells it.

    Raises:
        ArgumentError: an argument is out of range; the message names it.
        TypeError: a keyword is not an argument.
    """

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 25, "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012
    _arrays = staticmethod(host_arrays)


class TorchEscapeRoomVectorEnv(_RoomsVectorEnv, VectorEnv[Any, Any, Any]):  # type: ignore[misc]
    """As `EscapeRoomVectorEnv`, with tensors of PyTorch on the simulator's device: nothing is copied to the host.

    On a GPU no step waits for the device: `info` always has its keys, stepping a sub-environment whose episode has
    ended is not refused with autoreset mode "disabled", and numbers of actions outside of 0 to 319 are not refused,
    but treated as `action_check` treats actions out of range.

    >>> import doorstep.envs
    >>> env = doorstep.envs.TorchEscapeRoomVectorEnv(4)
    >>> observations, _ = env.reset(seed=1)
    >>> type(observations).__module__, tuple(observations.shape)
    ('torch', (4, 2, 94))
    >>> env.close()
    """

    metadata = {  # noqa: RUF012
        "render_modes": list(RENDER_MODES),
        "render_fps": 25,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
        "torch": True,
    }
    _arrays = staticmethod(torch_arrays)


def check_autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    if isinstance(mode, AutoresetMode):
        return mode
    names = tuple(member.name.lower() for member in AutoresetMode)
    return AutoresetMode[check_choice("autoreset_mode", mode, names).upper()]


def _name_of(mode: AutoresetMode) -> Any:
    return mode.name.lower()


def check_options(options: object, known: tuple[str, ...]) -> Mapping[str, Any]:
    """The options of `reset()`; none for None."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        refuse("options", "a dictionary or None", options)
    for name in options:
        if name not in known:
            hint = nearest(str(name), known) or f"the options are: {', '.join(known) or 'none'}"
            raise ArgumentError(f"{name!r} is not an option of reset()", argument="options", hint=hint)
    return options
