"""A replica: a simulator that plays requests, in a thread of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native import ACTIONS
from doorstep._native._generated import PolicyKind, ReplicaInfo, ReplicaNeed
from doorstep._native.rollouts import ReplicaHandle, RowsToAct
from doorstep.config import SimulatorConfig
from doorstep.errors import ArgumentError, ClosedError
from doorstep.levels.native import to_native_rewards
from doorstep.levels.rules import Rewards
from doorstep.metrics.labels import labels_text
from doorstep.policy import Policy
from doorstep.rollouts.exchange import AskedRows, Exchange
from doorstep.rollouts.failures import FailureTexts
from doorstep.rollouts.native_policies import NativePolicies
from doorstep.rollouts.own_threads import OwnThreads
from doorstep.rollouts.policies import BUILT_IN, PolicyTable
from doorstep.rollouts.queues import OutputQueue, RequestQueue
from doorstep.rollouts.row_states import RowStates, on_host

Ended: TypeAlias = Callable[[int, "BaseException | None"], None]

_SLICE_SECONDS = 0.05  # of a run, after which the thread looks whether it shall end


@final
class Replica:
    """Plays requests of a queue until it is closed.

    Args:
        config: of its simulator.
        failures: gets what policies raise.
        threads: gets this one's.
        reward: what agents are rewarded for; None: as the levels say.
    """

    def __init__(
        self,
        number: int,
        config: SimulatorConfig,
        requests: RequestQueue,
        outputs: OutputQueue,
        failures: FailureTexts,
        threads: OwnThreads,
        reward: Rewards | None,
    ) -> None:
        self.number = number
        self._requests, self._outputs = requests, outputs
        self._handle = ReplicaHandle(config.native_handle, requests.native_handle, outputs.native_handle, number)
        if reward is not None:
            self._handle.set_rewards(to_native_rewards(reward))
        self._failures, self._threads = failures, threads
        self._states = RowStates()
        self._labelled: set[int] = set()  # policies whose series have their names
        self._check_actions = config.action_check == "raise"  # those out of range are an error of their policy
        self._last_info = self._handle.info()
        self._thread: threading.Thread | None = None

    def start(self, policies: PolicyTable, native: NativePolicies, renew: Callable[[], None], ended: Ended) -> None:
        """Only the thread refers to these, so that the parts of an engine are no cycle, and go when it does.

        Args:
            policies: those of the requests' numbers.
            native: what it reads of native policies.
            renew: called between passes.
            ended: told the replica's number, and what ended it, or None.
        """
        name = f"doorstep-replica-{self.number}"
        arguments = policies, native, renew, ended
        self._thread = threading.Thread(target=self._run, args=arguments, name=name, daemon=True)
        self._thread.start()

    def info(self) -> ReplicaInfo:
        """What it has done so far."""
        with contextlib.suppress(ClosedError):
            self._last_info = self._handle.info()
        return self._last_info

    def forget_policy(self, number: int) -> None:
        """It asks for the policy again: the number belongs to another one, or the weights have changed."""
        self._states.forget(number)
        self._labelled.discard(number)
        with contextlib.suppress(ClosedError):
            self._handle.set_policy(number, PolicyKind.CALLER)

    def close(self) -> None:
        """Ends soon; its episodes wait in the queue again. Takes no lock, and does not wait."""
        with contextlib.suppress(ClosedError):
            self._handle.close()

    def discard(self) -> None:
        """Ends one that was not started."""
        self._handle.release()

    def join(self, timeout: float | None) -> None:
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(timeout)

    # ---- The thread

    def _run(self, policies: PolicyTable, native: NativePolicies, renew: Callable[[], None], ended: Ended) -> None:
        self._threads.enter("a policy")
        cause: BaseException | None = None
        try:
            while (need := self._handle.run(_SLICE_SECONDS)) != ReplicaNeed.END:
                if need == ReplicaNeed.ACTIONS:
                    self._act(policies, native)
                renew()
        except BaseException as error:  # whatever it is, the engine must know that this replica plays no more
            cause = error
        self.info()
        self._handle.release()
        ended(self.number, cause)

    def _act(self, policies: PolicyTable, native: NativePolicies) -> None:
        number = self._handle.work.policy
        policy = policies[number]
        try:
            self._label(number, policies)
            if type(policy) in BUILT_IN:
                self._handle.set_policy(number, BUILT_IN[type(policy)])
            elif isinstance(policy, Policy):
                native.give(number, policy, lambda handle: self._handle.set_policy(number, PolicyKind.NATIVE, handle))
            else:
                self._call(number, policy)
        except BaseException as error:  # of the user's: the policy's episodes fail, the others go on
            self._handle.fail(self._failures.number_of(error))

    def _label(self, number: int, policies: PolicyTable) -> None:
        """The policy's series in metrics get its name."""
        if number not in self._labelled:
            self._handle.label_policy(number, labels_text({"policy": policies.name_of(number)}))
            self._labelled.add(number)

    def _call(self, number: int, policy: Callable[..., Any]) -> None:
        asked = self._handle.rows_to_act()
        if isinstance(policy, Exchange):
            asked.actions[asked.rows] = policy(self._for_exchange(asked))
            return
        chosen = _read_actions(self._states.call(number, policy, asked), len(asked.rows))
        if self._check_actions:
            _refuse_out_of_range(chosen)
        asked.actions[asked.rows] = chosen

    def _for_exchange(self, asked: RowsToAct) -> AskedRows:
        num_agents = len(asked.actions) // self._handle.info().num_worlds
        return AskedRows(
            replica=self.number,
            worlds=asked.rows // num_agents,
            steps=asked.steps,
            tags=asked.tags,
            observations=asked.observations[asked.rows],
            rewards=asked.rewards[asked.rows],
        )


def _read_actions(returned: Any, rows: int) -> NDArray[np.int32]:
    array = on_host(returned)
    if array.dtype.kind not in "iu" or array.shape != (rows, len(ACTIONS)):
        raise ArgumentError(
            f"the policy returned {array.dtype} {list(array.shape)}; it must return integers [{rows}, {len(ACTIONS)}]",
            argument="policy",
        )
    limits = np.iinfo(np.int32)
    return np.clip(array, limits.min, limits.max).astype(np.int32) if array.dtype.itemsize >= 4 else array


def _refuse_out_of_range(actions: NDArray[Any]) -> None:
    outside = np.argwhere((actions < 0) | (actions >= ACTIONS))
    if len(outside):
        row, component = outside[0].tolist()
        raise ArgumentError(
            f"the policy returned actions[{row}, {component}] = {actions[row, component]}; it must be 0 to"
            f" {ACTIONS[component] - 1}",
            argument="policy",
        )
