"""Threads that call the policies of an engine that are callables, and what these policies remember."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native import ACTIONS
from doorstep._native.rollouts import EngineHandle, RowsToAct
from doorstep.config import SimulatorConfig
from doorstep.errors import ArgumentError, ClosedError, StateError
from doorstep.rollouts.failures import FailureTexts


@final
class Callers:
    """One thread waits for rows; when it has got some, another one waits, so that no policy waits for another. Threads
    that wait do not refer to policies, which may refer to the engine: it ends when nobody else does.

    Args:
        failures: gets what policies raise.
        tend: called before actions are returned.
        config: of the simulators.
        find_policy: the policy of a number of requests.
    """

    def __init__(
        self,
        engine: EngineHandle,
        failures: FailureTexts,
        tend: Callable[[], None],
        config: SimulatorConfig,
        find_policy: Callable[[int], Any],
        states: RowStates,
    ) -> None:
        self._engine, self._find_policy, self._failures, self._tend = engine, find_policy, failures, tend
        self._check_actions = config.action_check == "raise"  # those out of range are an error of their policy
        self._states = states
        self._waiting: list[None] = []  # an element for each thread that waits for rows
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Starts the first thread unless one is running.

        Raises:
            StateError: another library has put threads of its own in the place of Python's.
        """
        patched = threading.get_ident.__module__  # "gevent.thread", "eventlet.green.thread"
        if patched != "_thread":
            raise StateError(
                f"{patched.partition('.')[0]} has replaced Python's threads, in which functions are called: its own"
                " would wait for ever",
                argument="policy",
                hint="leave them as they are, by thread=False where it patches; or use a module of PyTorch",
            )
        if not any(thread.is_alive() for thread in self._threads):
            self._add()

    def join(self, left: Callable[[], float]) -> None:
        """Waits for their end, so many seconds."""
        for thread in self._threads:
            if thread.is_alive():
                thread.join(left())

    @property
    def calls_here(self) -> bool:
        """Whether the current thread is one of them."""
        return threading.current_thread() in self._threads

    def _add(self) -> None:
        name = f"doorstep-policies-{len(self._threads)}"
        given = weakref.ref(self), self._engine, self._waiting
        thread = threading.Thread(target=_run, args=given, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    # ---- In the threads

    def serve(self, asked: RowsToAct, *, is_last: bool) -> None:
        """Gives actions to rows. is_last: no other thread waits for rows."""
        if is_last:
            with contextlib.suppress(RuntimeError):  # no more threads can start: other rows wait
                self._add()
        actions: NDArray[np.int32] | None
        try:
            actions, cause = self._call(asked), 0
        except BaseException as error:  # of the user's: the policy's episodes fail, the others go on
            actions, cause = None, self._failures.number_of(error)
        self._tend()
        with contextlib.suppress(ClosedError):  # the replica has ended
            self._engine.return_rows(asked.id, actions, cause)

    def _call(self, asked: RowsToAct) -> NDArray[np.int32]:
        chosen = _read_actions(self._states.call(self._find_policy(asked.policy), asked), len(asked.rows))
        if self._check_actions:
            _refuse_out_of_range(chosen)
        return chosen


def _run(callers: weakref.ref[Callers], engine: EngineHandle, waiting: list[None]) -> None:
    """A thread."""
    with contextlib.suppress(ClosedError):  # the engine has ended
        while True:
            waiting.append(None)
            try:
                asked = engine.take_rows()
            finally:
                waiting.pop()
            its = callers()
            if its is None:
                return  # nobody refers to the engine, which ends
            its.serve(asked, is_last=not waiting)
            del asked, its


def _read_actions(returned: Any, rows: int) -> NDArray[np.int32]:
    array = on_host(returned)
    if array.dtype.kind not in "iu" or array.shape != (rows, len(ACTIONS)):
        raise ArgumentError(
            f"the policy returned {array.dtype} {list(array.shape)}; it must return integers [{rows}, {len(ACTIONS)}]",
            argument="policy",
        )
    limits = np.iinfo(np.int32)
    clipped = np.clip(array, limits.min, limits.max) if array.dtype.itemsize >= 4 else array
    return np.ascontiguousarray(clipped, np.int32)


def _refuse_out_of_range(actions: NDArray[Any]) -> None:
    outside = np.argwhere((actions < 0) | (actions >= ACTIONS))
    if len(outside):
        row, component = outside[0].tolist()
        raise ArgumentError(
            f"the policy returned actions[{row}, {component}] = {actions[row, component]}; it must be 0 to"
            f" {ACTIONS[component] - 1}",
            argument="policy",
        )


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
