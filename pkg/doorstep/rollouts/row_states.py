"""What called policies remember of the agents of replicas."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native.rollouts import RowsToAct


@final
class RowStates:
    """The states of policies by their replicas and numbers, a row for each agent of each world."""

    def __init__(self) -> None:
        self._states: dict[tuple[int, int], NDArray[Any]] = {}

    def call(self, policy: Any, asked: RowsToAct) -> Any:
        """The actions that a policy returns for the rows that were asked for. If it returns a state too, it is called
        with that in the next step, and with 0 for agents whose episode begins."""
        key = asked.replica, asked.policy
        states = self._states.get(key)
        if states is None:
            returned = policy(asked.observations)
        else:
            state = states[asked.rows]
            state[asked.steps == 0] = 0
            returned = policy(asked.observations, state)
        if not isinstance(returned, tuple):
            return returned
        actions, state = returned
        state = on_host(state)
        if states is None:
            states = np.zeros((asked.num_replica_rows, *state.shape[1:]), state.dtype)
            self._states[key] = states
        states[asked.rows] = state
        return actions

    def forget(self, number: int) -> None:
        """The number passes to another policy."""
        for key in list(self._states):
            if key[1] == number:
                self._states.pop(key, None)


def on_host(array: Any) -> NDArray[Any]:
    """An array of any library, also with gradients or on a GPU, as one of numpy."""
    return np.asarray(array.detach().cpu() if hasattr(array, "detach") else array)
