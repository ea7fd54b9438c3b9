"""Queues, replicas and levels of rollouts in the C API, each owned by a Python object with its handle."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native import _generated as native
from doorstep._native.calls import SLICE_NANOSECONDS, check, wait
from doorstep._native.configs import ConfigHandle
from doorstep._native.handle import Handle, new_handle
from doorstep._native.library import load
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


class _Memory:
    """Memory of the library, for numpy."""

    def __init__(self, address: int | None, dtype: Any, shape: tuple[int, ...]) -> None:
        data = (address or 0, False)
        self.__array_interface__ = {"data": data, "shape": shape, "typestr": np.dtype(dtype).str, "version": 3}


def _array(address: int | None, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.asarray(_Memory(address, dtype, shape))


# ---- Requests ----


def branch_request_queue(source: int, capacity: int) -> Handle:
    """A queue to which requests of another one may be moved."""
    made = new_handle(load().ds_request_queue_branch, source, capacity)
    return Handle(made, load().ds_request_queue_release)


class SubmitCall:
    """One submission of a contiguous array of REQUEST_DTYPE. What it has done is also known if Ctrl-C ends it."""

    def __init__(self, queue: int, requests: NDArray[Any]) -> None:
        self._queue, self._requests = queue, requests
        self._ids = np.empty(len(requests), np.uint64)
        self._progress = 0, ctypes.c_uint64()  # accepted before the latest call, and by it; changes at once

    @property
    def ids(self) -> NDArray[np.uint64]:
        """The ids of the requests that were submitted, which are the first ones."""
        return self._ids[: self.num_accepted]

    @property
    def num_accepted(self) -> int:
        before, latest = self._progress
        return before + latest.value

    def run(self, timeout: float | None) -> None:
        """Waits for room, at most `timeout` seconds."""
        function = load().ds_request_queue_submit
        remaining = None if timeout is None else int(timeout * 1e9)
        while (done := self.num_accepted) < len(self._requests):
            nanoseconds = SLICE_NANOSECONDS if remaining is None else min(remaining, SLICE_NANOSECONDS)
            accepted = ctypes.c_uint64()
            self._progress = done, accepted
            status = function(
                self._queue,
                _records(self._requests[done:], native.EpisodeRequest),
                len(self._requests) - done,
                nanoseconds,
                self._ids[done:].ctypes.data,
                ctypes.byref(accepted),
            )
            if status != Status.PENDING:
                check(status)
            elif remaining is not None:
                remaining -= nanoseconds
                if remaining <= 0:
                    break


def move_requests(queue: int, targets: Sequence[int], first: int, most: int, timeout: float | None) -> int:
    """Moves requests in turn; returns how many."""
    moved, handles = ctypes.c_uint64(), (ctypes.c_uint64 * len(targets))(*targets)
    function = load().ds_request_queue_move

    def move(handle: int, nanoseconds: int) -> int:
        return int(function(handle, handles, len(targets), first, most, nanoseconds, ctypes.byref(moved)))

    wait(move, queue, timeout)
    return moved.value


def cancel_request(queue: int, request_id: int) -> bool:
    """False if it has ended. ArgumentError if another engine gave the id."""
    found = ctypes.c_int32()
    check(load().ds_request_queue_cancel(queue, request_id, ctypes.byref(found)))
    return bool(found.value)


def request_queue_info(queue: int) -> native.RequestQueueInfo:
    info = native.RequestQueueInfo(struct_size=ctypes.sizeof(native.RequestQueueInfo))
    check(load().ds_request_queue_get_info(queue, ctypes.byref(info)))
    return info


def close_request_queue(queue: int) -> None:
    check(load().ds_request_queue_close(queue))


def answer_requests(queue: int, outputs: int, reason: int, cause: int) -> None:
    check(load().ds_request_queue_answer(queue, outputs, reason, cause))


def drain_requests(queue: int, timeout: float | None) -> bool:
    """Waits until no request is unanswered; False after the timeout."""
    return wait(load().ds_request_queue_drain, queue, timeout)


# ---- Outputs ----


class TakeCall:
    """One call that takes up to `most` outputs. It has them also if Ctrl-C ends it, and owns what goes with them."""

    def __init__(self, queue: int, most: int) -> None:
        self._queue = queue
        self._outputs, self._taken = np.empty(most, OUTPUT_DTYPE), ctypes.c_uint64()
        self._finalizer = weakref.finalize(self, _release_all_data, self._outputs, self._taken)
        self._finalizer.atexit = False

    @property
    def outputs(self) -> NDArray[Any]:
        """Those that were taken, of OUTPUT_DTYPE."""
        return self._outputs[: self._taken.value]

    def give_up_data(self) -> None:
        """All that goes with the outputs has been released; and the room for others is given up if it is most of it."""
        self._finalizer.detach()
        if 2 * len(self.outputs) < len(self._outputs):
            self._outputs = self.outputs.copy()

    def run(self, timeout: float | None) -> None:
        """Waits for outputs, at most `timeout` seconds, unless it has some. ClosedError if there will be none."""
        if self._taken.value:
            return
        function, taken = load().ds_output_queue_take, ctypes.byref(self._taken)
        most, records = len(self._outputs), _records(self._outputs, native.EpisodeOutput)
        wait(lambda queue, nanoseconds: int(function(queue, most, nanoseconds, records, taken)), self._queue, timeout)


def output_data(output: Any) -> NDArray[np.uint8]:
    """The bytes that go with an output, in place."""
    return _array(int(output["data_start"]), np.uint8, (int(output["data_bytes"]),))


def release_output_data(output: Any) -> None:
    """Ends these bytes; once they have ended it does nothing."""
    load().ds_memory_release(int(output["data"]))


def _release_all_data(outputs: NDArray[Any], taken: ctypes.c_uint64) -> None:
    some = outputs[: taken.value]
    for output in some[some["data"] != 0]:
        release_output_data(output)


def output_count(queue: int) -> int:
    size = ctypes.c_uint64()
    check(load().ds_output_queue_size(queue, ctypes.byref(size)))
    return size.value


def close_output_queue(queue: int) -> None:
    check(load().ds_output_queue_close(queue))


# ---- Engines and replicas ----


@final
class EngineHandle(Handle):
    """A configuration, and the queues and the store of metrics that are made from it."""

    def __init__(self, config: int, metrics: int) -> None:
        super().__init__(new_handle(load().ds_engine_create, config, metrics), load().ds_engine_release)

    def config(self) -> ConfigHandle:
        return ConfigHandle(new_handle(load().ds_engine_get_config, self.value))

    def waiting_queue(self) -> Handle:
        return Handle(new_handle(load().ds_engine_get_waiting_queue, self.value), load().ds_request_queue_release)

    def output_queue(self) -> Handle:
        return Handle(new_handle(load().ds_engine_get_output_queue, self.value), load().ds_output_queue_release)

    def metrics(self) -> MetricsHandle | None:
        """None if nothing is measured."""
        handle = new_handle(load().ds_engine_get_metrics, self.value)
        return MetricsHandle(handle) if handle else None


class RowsToAct(NamedTuple):
    """What a replica that needs actions tells, valid until it runs on: arrays of the rows that act; from the
    observations on, of all agents."""

    rows: NDArray[np.int32]
    steps: NDArray[np.int64]
    tags: NDArray[np.uint64]
    observations: NDArray[np.float32]
    rewards: NDArray[np.float32]
    actions: NDArray[np.int32]


@final
class ReplicaHandle(Handle):
    """A replica, and what it needs of its caller."""

    def __init__(self, simulator: int, requests: int, outputs: int, number: int) -> None:
        made = new_handle(load().ds_replica_create, simulator, requests, outputs, number)
        super().__init__(made, load().ds_replica_release)
        self.work = native.ReplicaWork(struct_size=ctypes.sizeof(native.ReplicaWork))

    def set_rewards(self, rewards: native.LevelRewards) -> None:
        check(load().ds_replica_set_rewards(self.value, ctypes.byref(rewards)))

    def set_policy(self, index: int, kind: int, policy: int = 0) -> None:
        check(load().ds_replica_set_policy(self.value, index, kind, policy))

    def label_policy(self, index: int, labels: str) -> None:
        """Labels of the policy's series in metrics, as the library writes them."""
        check(load().ds_replica_label_policy(self.value, index, labels.encode()))

    def run(self, timeout: float) -> int:
        """Plays for some seconds, or until the caller is needed: a ReplicaNeed, with the details in `work`."""
        check(load().ds_replica_run(self.value, int(timeout * 1e9), ctypes.byref(self.work)))
        return self.work.need

    def rows_to_act(self) -> RowsToAct:
        """When actions are needed."""
        work = self.work
        return RowsToAct(
            rows=_array(work.rows, np.int32, (work.num_rows,)),
            steps=_array(work.steps, np.int64, (work.num_rows,)),
            tags=_array(work.tags, np.uint64, (work.num_rows,)),
            observations=_array(work.observations, np.float32, (work.num_agent_rows, work.num_inputs)),
            rewards=_array(work.rewards, np.float32, (work.num_agent_rows,)),
            actions=_array(work.actions, np.int32, (work.num_agent_rows, len(native.ACTIONS))),
        )

    def fail(self, cause: int) -> None:
        check(load().ds_replica_fail(self.value, cause))

    def info(self) -> native.ReplicaInfo:
        info = native.ReplicaInfo(struct_size=ctypes.sizeof(native.ReplicaInfo))
        check(load().ds_replica_get_info(self.value, ctypes.byref(info)))
        return info

    def close(self) -> None:
        check(load().ds_replica_close(self.value))
