"""Engines and levels of rollouts in the C API, each owned by a Python object with its handle."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep._copies import Owner
from doorstep._native import _generated as native
from doorstep._native.calls import SLICE_NANOSECONDS, check, read_struct, read_value, sized, wait
from doorstep._native.configs import ConfigHandle
from doorstep._native.finalizer import Finalizer
from doorstep._native.handle import Handle, new_handle
from doorstep._native.library import load
from doorstep._native.memory import array_at
from doorstep._native.metrics import MetricsHandle
from doorstep.errors import Status

# The structs of arrays of requests and outputs.
REQUEST_DTYPE = np.dtype(native.EpisodeRequest)
OUTPUT_DTYPE = np.dtype(native.EpisodeOutput)


def monotonic_ns() -> int:
    """The clock of deadlines and times of rollouts."""
    return int(load().ds_monotonic_ns())


def create_shared_level(level: native.Level, num_agents: int) -> Handle:
    made = new_handle(load().ds_shared_level_create, ctypes.byref(level), num_agents)
    return Handle(made, load().ds_shared_level_release)


def _records(array: NDArray[Any], struct: Any) -> Any:
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(struct))


# ---- Requests ----

MOST_REQUESTS = 16384  # of one call of the library


def check_requests(config: int, requests: NDArray[Any]) -> None:
    """Raises ArgumentError if an engine of a config refuses one of them, an array of REQUEST_DTYPE."""
    check(load().ds_episode_requests_check(config, _records(requests, native.EpisodeRequest), len(requests)))


class SubmitCall:
    """One submission. What it has done is also known if Ctrl-C ends it."""

    def __init__(self, engine: EngineHandle) -> None:
        self._engine = engine
        self._ids = np.empty(0, np.uint64)
        self._progress = 0, ctypes.c_uint64()  # accepted before the latest call, and by it; changes at once

    @property
    def ids(self) -> NDArray[np.uint64]:
        """The ids of the requests that were submitted, which are the first ones."""
        return self._ids[: self.num_accepted]

    @property
    def num_accepted(self) -> int:
        before, latest = self._progress
        return before + latest.value

    def run(
        self, part: Callable[..., NDArray[Any]], count: int, timeout: float | None, check_wait: Callable[[], None]
    ) -> None:
        """Waits for room, at most `timeout` seconds.

        Args:
            part: makes a contiguous array of REQUEST_DTYPE of the requests from one place to another.
            count: of the requests.
            check_wait: called when no request has found room for a while, without limit; raises if none will.
        """
        function, end = load().ds_engine_submit, None if timeout is None else time.monotonic_ns() + int(timeout * 1e9)
        while (done := self.num_accepted) < count:
            requests = part(done, min(done + MOST_REQUESTS, count))
            if len(self._ids) < done + len(requests):
                self._ids = np.concatenate([self.ids, np.empty(max(done, len(requests)), np.uint64)])
            left = SLICE_NANOSECONDS if end is None else max(end - time.monotonic_ns(), 0)
            accepted = ctypes.c_uint64()
            self._progress = done, accepted
            status = function(
                self._engine.value,
                _records(requests, native.EpisodeRequest),
                len(requests),
                min(left, SLICE_NANOSECONDS),
                self._ids[done:].ctypes.data,
                ctypes.byref(accepted),
            )
            if status != Status.PENDING:
                check(status)
            elif end is None and not accepted.value:
                check_wait()
            elif left == 0:
                break


# ---- Outputs ----


class TakeCall(Owner):
    """One call that takes up to `most` outputs of a reader. It has them also if Ctrl-C ends it, and owns the memory
    that goes with them until `give_data()`."""

    def __init__(self, engine: EngineHandle, reader: int, most: int) -> None:
        self._engine, self._reader = engine, reader
        self._outputs, self._taken = np.empty(most, OUTPUT_DTYPE), ctypes.c_uint64()
        self._is_given = [False]
        self._finalizer = Finalizer(self, _release_all_data, self._outputs, self._taken, self._is_given)

    @property
    def outputs(self) -> NDArray[Any]:
        """Those that were taken, of OUTPUT_DTYPE."""
        return self._outputs[: self._taken.value]

    def data(self, place: int) -> NDArray[np.uint8]:
        """The bytes that go with an output, in place."""
        output = self._outputs[place]
        owner = _OutputData(int(output["data"]), self._is_given)
        return array_at(int(output["data_start"]), np.uint8, (int(output["data_bytes"]),), owner)

    def give_data(self) -> None:
        """The memory lives as long as what was made of `data()`, for all outputs that have some. The room for other
        outputs is given up if it is most of it."""
        self._is_given[0] = True  # at once for all: Ctrl-C may come before and after
        self._finalizer.detach()
        if 2 * len(self.outputs) < len(self._outputs):
            self._outputs = self.outputs.copy()

    def run(self, timeout: float | None) -> None:
        """Waits for outputs, at most `timeout` seconds, unless it has some. ClosedError if there will be none."""
        if self._taken.value:
            return
        function, taken = load().ds_engine_take, ctypes.byref(self._taken)
        most, records, engine = len(self._outputs), _records(self._outputs, native.EpisodeOutput), self._engine.value
        wait(
            lambda handle, nanoseconds: int(function(handle, self._reader, most, nanoseconds, records, taken)),
            engine,
            timeout,
        )


class _OutputData(Owner):
    """The memory of an output. It is its owner's once the call that took it has given it."""

    def __init__(self, handle: int, is_given: Sequence[bool]) -> None:
        Finalizer(self, _release_data, handle, is_given)


def _release_data(handle: int, is_given: Sequence[bool]) -> None:
    if is_given[0]:
        load().ds_memory_release(handle)


def _release_all_data(outputs: NDArray[Any], taken: ctypes.c_uint64, is_given: list[bool]) -> None:
    if not is_given[0]:
        for handle in outputs["data"][: taken.value].tolist():
            if handle:
                load().ds_memory_release(handle)


# ---- Engines ----


@final
class RowsToAct:
    """R rows that await actions of a policy. The arrays have memory of their own.

    Attributes:
        num_replica_rows: of all worlds of the replica.
        rows: int32 [R]: world * num_agents + agent.
        observations: float32 [R, F].
    """

    def __init__(self, told: native.Rows) -> None:
        self._told, self._owner = told, Handle(told.data, load().ds_memory_release)
        self.id: int = told.id
        self.replica: int = told.replica
        self.policy: int = told.policy
        self.num_replica_rows: int = told.num_replica_rows
        self.rows: NDArray[np.int32] = self._array(told.rows, np.int32)
        self.observations: NDArray[np.float32] = self._array(told.observations, np.float32, told.num_inputs)

    @property
    def steps(self) -> NDArray[np.int64]:
        """[R]: that their episodes have made."""
        return self._array(self._told.steps, np.int64)

    @property
    def tags(self) -> NDArray[np.uint64]:
        """[R]: the library's, of their requests."""
        return self._array(self._told.tags, np.uint64)

    @property
    def rewards(self) -> NDArray[np.float32]:
        """[R]: of the step before."""
        return self._array(self._told.rewards, np.float32)

    def _array(self, address: int | None, dtype: Any, *of_row: int) -> NDArray[Any]:
        return array_at(address, dtype, (self._told.num_rows, *of_row), self._owner)


@final
class EngineHandle(Owner):
    """An engine, which ends when this is collected."""

    def __init__(self, config: int, rewards: native.LevelRewards | None, metrics: int) -> None:
        self._made = ctypes.c_uint64()  # before the engine: Ctrl-C may come right after the call
        self._finalizer = Finalizer(self, _release_engine, self._made)
        of_all = None if rewards is None else ctypes.byref(rewards)
        check(load().ds_engine_create(config, of_all, metrics, ctypes.byref(self._made)))

    @property
    def value(self) -> int:
        return self._made.value

    def config(self) -> ConfigHandle:
        return ConfigHandle(new_handle(load().ds_engine_get_config, self.value))

    def metrics(self) -> MetricsHandle | None:
        """None if nothing is measured."""
        handle = new_handle(load().ds_engine_get_metrics, self.value)
        return MetricsHandle(handle) if handle else None

    def info(self) -> native.EngineInfo:
        return read_struct(load().ds_engine_get_info, native.EngineInfo, self.value)

    def replica(self, number: int) -> native.ReplicaInfo:
        """What it has done so far, also if it has failed."""
        info = sized(native.ReplicaInfo)
        load().ds_engine_get_replica(self.value, number, ctypes.byref(info))
        return info

    def check_replica(self, number: int) -> None:
        """Raises what it has failed with last, also if it was restarted."""
        read_struct(load().ds_engine_get_replica, native.ReplicaInfo, self.value, number)

    def set_policy(self, index: int, kind: int, policy: int = 0, version: int = 0) -> None:
        check(load().ds_engine_set_policy(self.value, index, kind, policy, version))

    def replace_policy(self, index: int, by: int) -> None:
        """For requests that begin from now on; by itself: no longer."""
        check(load().ds_engine_replace_policy(self.value, index, by))

    def label_policy(self, index: int, labels: str) -> None:
        """Labels of the policy's series in metrics, as the library writes them."""
        check(load().ds_engine_label_policy(self.value, index, labels.encode()))

    def cancel(self, request_id: int) -> bool:
        """False if it has ended. ArgumentError if another engine gave the id."""
        return bool(read_value(load().ds_engine_cancel, ctypes.c_int32, self.value, request_id))

    def drain(self, timeout: float | None, check_wait: Callable[[], None]) -> bool:
        """Waits until no request is unanswered; False after the timeout. `check_wait` as of `wait()`."""
        return wait(load().ds_engine_drain, self.value, timeout, check_wait)

    def take_rows(self) -> RowsToAct:
        """Waits for rows, not in the main thread. ClosedError if there will be none."""
        return RowsToAct(read_struct(load().ds_engine_take_rows, native.Rows, self.value, -1))

    def return_rows(self, rows_id: int, actions: NDArray[np.int32] | None, cause: int = 0) -> None:
        """actions: contiguous [R, 4]; None: the episodes fail with the cause."""
        address = None if actions is None else actions.ctypes.data
        check(load().ds_engine_return_rows(self.value, rows_id, address, cause))

    def add_replica(self, simulator: int) -> int:
        """The number of a replica with this configuration. ArgumentError if results would depend on it."""
        number: int = read_value(load().ds_engine_add_replica, ctypes.c_int64, self.value, simulator)
        return number

    def end_replica(self, number: int) -> None:
        check(load().ds_engine_end_replica(self.value, number))

    def close(self) -> None:
        """Does not wait."""
        check(load().ds_engine_close(self.value))

    def join(self, timeout: float | None) -> bool:
        """Waits for the end; False after the timeout."""
        return wait(load().ds_engine_join, self.value, timeout)


def _release_engine(made: ctypes.c_uint64) -> None:
    if made.value:
        load().ds_engine_release(made.value)
