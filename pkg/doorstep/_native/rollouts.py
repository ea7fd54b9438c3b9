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
from doorstep.errors import DoorstepError, Status

# The structs of arrays of requests and outputs.
REQUEST_DTYPE = np.dtype(native.EpisodeRequest)
OUTPUT_DTYPE = np.dtype(native.EpisodeOutput)

MOST_REQUESTS = 16384  # of one call of the library


def monotonic_ns() -> int:
    """The clock of deadlines and times of rollouts."""
    return int(load().ds_monotonic_ns())


def create_shared_level(level: native.Level, num_agents: int) -> Handle:
    made = new_handle(load().ds_shared_level_create, ctypes.byref(level), num_agents)
    return Handle(made, load().ds_shared_level_release)


def check_requests(config: int, requests: NDArray[Any]) -> None:
    """Raises ArgumentError if an engine of a config refuses one of them, an array of REQUEST_DTYPE."""
    check(load().ds_episode_requests_check(config, _records(requests, native.EpisodeRequest), len(requests)))


def _records(array: NDArray[Any], struct: Any) -> Any:
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(struct))


class _Made(Owner):
    """Owns what a function of the library makes, also if Ctrl-C comes right after the call."""

    def __init__(self, release: Any, make: Callable[..., int], *arguments: Any) -> None:
        self._made = ctypes.c_uint64()
        self._finalizer = Finalizer(self, _release_made, release, self._made)
        check(make(*arguments, ctypes.byref(self._made)))

    @property
    def value(self) -> int:
        return self._made.value

    def release(self) -> None:
        self._finalizer()


def _release_made(release: Any, made: ctypes.c_uint64) -> None:
    if made.value:
        release(made.value)


# ---- Engines ----


@final
class EngineHandle(_Made):
    """An engine, which ends when this is collected."""

    def __init__(self, config: int, rewards: native.LevelRewards | None, metrics: int) -> None:
        of_all = None if rewards is None else ctypes.byref(rewards)
        super().__init__(load().ds_engine_release, load().ds_engine_create, config, of_all, metrics)

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

    def failure_of(self, number: int) -> DoorstepError | None:
        """What a replica has failed with last, also if it was restarted."""
        try:
            check(load().ds_engine_get_replica(self.value, number, ctypes.byref(sized(native.ReplicaInfo))))
        except DoorstepError as error:
            return error
        return None

    def set_policy(
        self, index: int, kind: int, policy: int = 0, cause: int = 0, version: int = 0, series: int = 0
    ) -> None:
        """cause: of FAILING; series: of the policy's times in metrics."""
        check(load().ds_engine_set_policy(self.value, index, kind, policy, cause, version, series))

    def replace_policy(self, index: int, by: int) -> None:
        """For requests that begin from now on; by itself: no longer."""
        check(load().ds_engine_replace_policy(self.value, index, by))

    def cancel(self, request_id: int) -> bool:
        """False if it has ended. ArgumentError if another engine gave the id."""
        return bool(read_value(load().ds_engine_cancel, ctypes.c_int32, self.value, request_id))

    def tags(self) -> NDArray[np.uint64]:
        """Of the requests with a result that has not been received."""
        most, count = 0, 1024
        while count > most:  # there may be more by now
            most = 2 * count
            tags = np.empty(most, np.uint64)
            count = read_value(load().ds_engine_get_tags, ctypes.c_uint64, self.value, most, tags.ctypes.data)
        return tags[:count]

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


@final
class RowsToAct:
    """R rows that await actions of a policy. The arrays have memory of their own.

    Attributes:
        num_replica_rows: of all worlds of the replica.
        rows: int32 [R]: world * num_agents + agent.
        observations: float32 [R, F].
        steps: int64 [R]: that their episodes have made.
    """

    def __init__(self, told: native.Rows) -> None:
        owner = Handle(told.data, load().ds_memory_release)
        self.id, self.replica, self.policy = told.id, told.replica, told.policy
        self.num_replica_rows: int = told.num_replica_rows
        self.rows: NDArray[np.int32] = array_at(told.rows, np.int32, (told.num_rows,), owner)
        self.steps: NDArray[np.int64] = array_at(told.steps, np.int64, (told.num_rows,), owner)
        self.observations: NDArray[np.float32] = array_at(
            told.observations, np.float32, (told.num_rows, told.num_inputs), owner
        )


# ---- Requests and outputs ----


@final
class OutputsHandle(_Made):
    """A queue of outputs. limited: whether what waits there to be read is bounded, as the config says."""

    def __init__(self, engine: EngineHandle, *, limited: bool) -> None:
        super().__init__(load().ds_outputs_release, load().ds_engine_open_outputs, engine.value, limited)


class SubmitCall:
    """One submission, whose outputs a queue gets. What it has done is also known if Ctrl-C ends it."""

    def __init__(self, engine: EngineHandle, outputs: OutputsHandle) -> None:
        self.engine, self._outputs = engine, outputs
        self._ids = np.empty(0, np.uint64)
        self._progress = 0, ctypes.c_uint64()  # accepted before the latest call, and by it; changes at once

    @property
    def ids(self) -> NDArray[np.uint64]:
        """The ids of the requests that were submitted, which are the first ones."""
        before, latest = self._progress
        return self._ids[: before + latest.value]

    def run(self, part: Callable[[int, int], NDArray[Any]], count: int, timeout: float | None) -> None:
        """Waits for room, at most `timeout` seconds.

        Args:
            part: makes a contiguous array of REQUEST_DTYPE of the requests from one place to another.
            count: of the requests.
        """
        end = None if timeout is None else time.monotonic_ns() + int(timeout * 1e9)
        self._ids, requests = np.empty(count, np.uint64), np.empty(0, REQUEST_DTYPE)
        while (done := len(self.ids)) < count:
            requests = requests[self._progress[1].value :]
            if not len(requests):
                requests = part(done, min(done + MOST_REQUESTS, count))
            left = SLICE_NANOSECONDS if end is None else max(end - time.monotonic_ns(), 0)
            accepted = ctypes.c_uint64()
            self._progress = done, accepted
            status = load().ds_engine_submit(
                self.engine.value,
                self._outputs.value,
                _records(requests, native.EpisodeRequest),
                len(requests),
                min(left, SLICE_NANOSECONDS),
                self._ids[done:].ctypes.data,
                ctypes.byref(accepted),
            )
            if status != Status.PENDING:
                check(status)
            elif left == 0:
                break


@final
class Delivery(Owner):
    """What one thread has taken from a queue. What it does not receive can be taken again when it takes the next, or
    this is collected.

    Attributes:
        state: the ds_delivery. `state.received` is written when outputs are where they are needed, as the last thing
            that is done with them: a store, between which and a return or a yield that follows no Ctrl-C comes.
    """

    def __init__(self, outputs: OutputsHandle) -> None:
        self.state, self._outputs = native.Delivery(), outputs
        Finalizer(self, _settle, outputs, self.state)

    def take(self, most: int, timeout: float | None, tend: Callable[[], None], *, least: int = 1) -> TakenOutputs:
        """Waits for up to `most` outputs, at most `timeout` seconds: for `least` of them, or in the end of a slice of
        the wait for the first. ClosedError if none is to come and the engine has ended. tend: called in waits."""
        taken = TakenOutputs(most)
        function, state, count = load().ds_outputs_take, ctypes.byref(self.state), ctypes.byref(taken.count)
        records = _records(taken.outputs, native.EpisodeOutput)

        def take(outputs: int, nanoseconds: int) -> int:
            tend()
            return int(function(outputs, least, most, nanoseconds, state, records, count))

        taken.is_late = not wait(take, self._outputs.value, timeout)
        return taken

    def settle(self) -> int:
        """Gives back what was not received. Returns the number of episodes whose result nobody has taken."""
        outstanding = ctypes.c_uint64()
        check(_settle(self._outputs, self.state, outstanding))
        return outstanding.value


def _settle(outputs: OutputsHandle, state: native.Delivery, outstanding: ctypes.c_uint64 | None = None) -> int:
    left = ctypes.c_uint64() if outstanding is None else outstanding
    return int(load().ds_outputs_settle(outputs.value, ctypes.byref(state), ctypes.byref(left)))


@final
class TakenOutputs(Owner):
    """Up to `most` outputs, and the memory that goes with them until `give_data()`.

    Attributes:
        is_late: none came in time; without outputs otherwise none is to come.
    """

    def __init__(self, most: int) -> None:
        self.outputs, self.count, self.is_late = np.empty(most, OUTPUT_DTYPE), ctypes.c_uint64(), False
        self._is_given = [False]
        self._finalizer = Finalizer(self, _release_all_data, self.outputs, self.count, self._is_given)

    @property
    def records(self) -> NDArray[Any]:
        """Those that were taken, of OUTPUT_DTYPE; without the room for others if it is most of it."""
        taken = self.outputs[: self.count.value]
        return taken if 2 * len(taken) >= len(self.outputs) else taken.copy()

    def data(self, place: int) -> NDArray[np.uint8]:
        """The bytes that go with an output, in place."""
        output = self.outputs[place]
        owner = _OutputData(int(output["data"]), self._is_given)
        return array_at(int(output["data_start"]), np.uint8, (int(output["data_bytes"]),), owner)

    def give_data(self) -> None:
        """The memory lives as long as what was made of `data()`, for all outputs that have some."""
        self._is_given[0] = True  # at once for all: Ctrl-C may come before and after
        self._finalizer.detach()


class _OutputData(Owner):
    """The memory of an output. It is its owner's once it was given."""

    def __init__(self, handle: int, is_given: Sequence[bool]) -> None:
        Finalizer(self, _release_data, handle, is_given)


def _release_data(handle: int, is_given: Sequence[bool]) -> None:
    if is_given[0]:
        load().ds_memory_release(handle)


def _release_all_data(outputs: NDArray[Any], count: ctypes.c_uint64, is_given: Sequence[bool]) -> None:
    if not is_given[0]:
        for handle in outputs["data"][: count.value].tolist():
            if handle:
                load().ds_memory_release(handle)
