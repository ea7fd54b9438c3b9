"""Rewards as a function of a step's tensors: for what the terms of `doorstep.levels.Rewards` cannot say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, final

import numpy as np

from doorstep._arguments import nearest, refuse, shown
from doorstep.errors import ArgumentError
from doorstep.levels.rules import Rewards
from doorstep.tensor import lasting_view

RewardFunction: TypeAlias = "Callable[[Step], Any]"
AnyReward: TypeAlias = "Rewards | RewardFunction | None"


@final
class Step:
    """The tensors of a simulator after a step, by name, on the device of the worlds: `step.rewards`, `step.lidar`.

    Shapes and dtypes are those of the simulator's tensors. They are its memory: a function returns new values.
    """

    def __init__(self, views: Mapping[str, Callable[[], Any]]) -> None:
        self._views = views

    def __getattr__(self, name: str) -> Any:
        if name not in self._views:
            raise AttributeError(f"a step has no {name!r}; {nearest(name, self._views, 'it has')}")
        return self._views[name]()


def split_reward(reward: object) -> tuple[Rewards | None, RewardFunction | None]:
    """What a simulator applies itself, and what is applied to its steps.

    Raises:
        ArgumentError: it is neither `Rewards` nor a function nor None.
    """
    if reward is None or isinstance(reward, Rewards):
        return reward, None
    if not callable(reward):
        refuse("reward", "doorstep.levels.Rewards, a function of a step's tensors, or None", reward)
    return None, reward


@final
class AppliedReward:
    """A function that is applied to the steps of one simulator.

    Args:
        function: it is given a `Step`.
        views: makes the simulator's tensors, as arrays of numpy or tensors of PyTorch.
    """

    def __init__(self, function: RewardFunction, views: Mapping[str, Callable[[], Any]]) -> None:
        self._function = function
        self._step = Step({name: lasting_view(make) for name, make in views.items()})
        self._rewards = self._step.rewards * 0  # float32 [N, A, 1] in the same library
        self._was_checked = False

    def __call__(self) -> Any:
        """The rewards of the latest step, [N, A].

        Raises:
            ArgumentError: the function returned something else, or, at the first step, what is not finite.
        """
        values = self._function(self._step)
        if type(values) is not type(self._rewards):  # of another library, or a list
            try:
                values = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
            except Exception as error:  # of lists of several lengths, or whatever another library raises
                message = f"reward returned {shown(values)}; it must return floats as an array, a tensor or a list"
                raise ArgumentError(message, argument="reward") from error
        shape, dtype = tuple(getattr(values, "shape", ())), str(getattr(values, "dtype", type(values).__name__))
        wanted = tuple(self._rewards.shape)
        if shape not in (wanted, wanted[:2]) or "float" not in dtype:
            allowed = f"floats {list(wanted)} or {list(wanted[:2])}"
            message = f"reward returned {dtype} {list(shape)}; it must return {allowed}"
            raise ArgumentError(message, argument="reward")
        if hasattr(self._rewards, "new_tensor"):  # PyTorch's, which take no arrays, and would record a gradient
            values = values.detach() if hasattr(values, "detach") else self._rewards.new_tensor(values)
        self._rewards[...] = values.reshape(wanted)
        if not self._was_checked:
            if not bool(abs(self._rewards).max() < float("inf")):
                raise ArgumentError("reward returned numbers that are not finite", argument="reward")
            self._was_checked = True
        return self._rewards[..., 0]
