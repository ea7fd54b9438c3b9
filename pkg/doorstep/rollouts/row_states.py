"""What called policies remember of the agents of a replica."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native.rollouts import RowsToAct


@final
class RowStates:
    """The states of policies by their numbers, a row for each agent of each world."""

    def __init__(self) -> None:
        self._states: dict[int, NDArray[Any]] = {}

    def call(self, number: int, policy: Any, asked: RowsToAct) -> Any:
        """The actions that a policy returns for the rows that were asked for. If it returns a state too, it is called
        with that in the next step, and with 0 for agents whose episode begins."""
        observations, states = asked.observations[asked.rows], self._states.get(number)
        if states is None:
            returned = policy(observations)
        else:
            state = states[asked.rows]
            state[asked.steps == 0] = 0
            returned = policy(observations, state)
        if not isinstance(returned, tuple):
            return returned
        actions, state = returned
        state = on_host(state)
        if states is None:
            states = np.zeros((len(asked.observations), *state.shape[1:]), state.dtype)
            self._states[number] = states
        states[asked.rows] = state
        return actions

    def forget(self, number: int) -> None:
        """The number passes to another policy."""
        self._states.pop(number, None)


def on_host(array: Any) -> NDArray[Any]:
    """An array of any library, also with gradients or on a GPU, as one of numpy."""
    return np.asarray(array.detach().cpu() if hasattr(array, "detach") else array)
