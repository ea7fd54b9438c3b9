"""The parts of an engine. Its threads, while they wait, refer to few of them, none of which leads to policies or
requests, which may refer to the engine: it ends when nobody else does."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError  # another one before Python 3.11
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import refuse
from doorstep._copies import Owner
from doorstep._native import rollouts as native
from doorstep.config import SimulatorConfig
from doorstep.errors import ClosedError, DoorstepError, StateError
from doorstep.levels.files import AnyLevel
from doorstep.levels.native import to_native_rewards
from doorstep.metrics.store import MetricsStore
from doorstep.policy.loading import AnyPolicy
from doorstep.rollouts.answers import Answers
from doorstep.rollouts.batch import Episodes, RequestBatch, RequestWriter, with_levels
from doorstep.rollouts.callers import Callers, RowStates
from doorstep.rollouts.changes import SLICE_SECONDS, TimeLimit
from doorstep.rollouts.checks import check_single
from doorstep.rollouts.config import RolloutConfig
from doorstep.rollouts.controllers import make_controller
from doorstep.rollouts.failures import FailureTexts, describe
from doorstep.rollouts.native_policies import NativePolicies
from doorstep.rollouts.policies import NamedPolicy, PolicyTable, is_callable
from doorstep.rollouts.promises import Promises, Signals
from doorstep.rollouts.readers import PROMISES, OwnThreads, Readers, waits_for_itself
from doorstep.rollouts.request import EpisodeRequest, check_policy
from doorstep.rollouts.restarts import RestartLog
from doorstep.rollouts.result import EpisodeResult
from doorstep.rollouts.schedulers import make_scheduler
from doorstep.rollouts.submissions import AwaitedResult, Promise, Submissions
from doorstep.simulator import resolve_device


@final
class Core:
    """Plays requests until end() is called, or all replicas have failed.

    Args:
        levels: that requests without one play; none: the reference's.
        raises: whether reading the result of an episode that failed raises, and does not return it.
    """

    def __init__(
        self, config: RolloutConfig, metrics: MetricsStore | None, levels: Sequence[AnyLevel], *, raises: bool
    ) -> None:
        self.config, self._levels = config, levels
        key = make_scheduler(config.scheduler)
        resolved = config.replace(devices=tuple(map(resolve_device, config.replica_devices)))
        rewards = None if config.reward is None else to_native_rewards(config.reward)
        given = 0 if metrics is None else metrics.native_handle
        self.handle = native.EngineHandle(resolved.native_handle, rewards, given)
        info = self.handle.info
        replica = make_controller(config.controller, len(config.replica_devices), lambda: int(info().num_replicas))
        made = self.handle.metrics() if metrics is None else None
        self.metrics = metrics if made is None else MetricsStore._of(made, config.metrics.trace)
        self._lock = threading.RLock()
        self._submissions = submissions = Submissions()
        self._failures = FailureTexts(functools.partial(_failure_of, self.handle))
        self.threads = OwnThreads()
        in_use = functools.partial(_policies_in_use, self._lock, submissions)
        self._native, states = NativePolicies(self.handle, in_use, self._failures), RowStates()
        self._policies = PolicyTable(
            config.max_policies, config.simulator, in_use, functools.partial(_tell, self._native, states)
        )
        restarts = RestartLog(self.handle, config.max_restarts)
        tend = functools.partial(_tend, self._lock, submissions, self._native, self._policies, restarts)
        common = self.handle, self._failures, self.threads, tend
        self._readers = Readers(self.handle, self.threads)
        received = *common, self._lock, submissions, self._readers, raises
        self.answers, self.promises = Answers(*received), Promises(*received)
        self._callers = Callers(*common, config.simulator, self._policies.__getitem__, states)
        self._writer = RequestWriter(config.simulator.num_agents, self._policies, replica=replica, key=key)
        self._removed: set[int] = set()  # replicas
        self._told_ends = 0  # of others, by warnings
        self.ending = False
        self.is_copy = False  # in a forked child

    def start(self) -> None:
        """The caller ends the parts if it raises."""
        self.promises.start()

    # ---- Requests ----

    def submit(
        self,
        requests: Sequence[EpisodeRequest] | RequestBatch,
        timeout: float | None,
        futures: Sequence[Promise] = (),
    ) -> NDArray[np.uint64]:
        """The ids of the episodes that found room in time, which are the first ones."""
        return self._submit(Episodes(with_levels(requests, self._levels)), timeout, futures)

    def _submit(self, episodes: Episodes, timeout: float | None, futures: Sequence[Promise]) -> NDArray[np.uint64]:
        if not len(episodes):
            return np.empty(0, np.uint64)
        self._check_open([])
        self._warn_of_ends()
        submission = self._submissions.make(episodes, futures)
        try:
            with self._lock:
                written = self._writer.write(episodes)
                policies = {number: self._policies[number] for number in written.policies}
                self._native.renew(policies)
                if any(map(is_callable, policies.values())):
                    self._callers.start()
                submission.policies = written.policies
                self._submissions.open(submission)  # before they are submitted: outputs may come at once
            if futures:
                written.array["reader"] = PROMISES
                self.promises.begin()
            submission.progress = call = native.SubmitCall(self.handle)
            if len(episodes) > native.MOST_REQUESTS:  # else this is done where they are submitted
                native.check_requests(self.config.native_handle, written.array)
            part = functools.partial(written.part, first_tag=submission.first_tag)
            calls = self.threads.calls
            cannot_wait = calls == "a policy" and timeout != 0  # callbacks of futures hold no replica up
            try:
                call.run(part, len(episodes), 0.0 if cannot_wait else timeout, self._readers.check_wait)
            except (ClosedError, StateError) as error:
                if isinstance(error, ClosedError):
                    self._check_open(call.ids.tolist())
                error.ids = call.ids.tolist()  # type: ignore[union-attr]
                raise
            if cannot_wait and call.num_accepted < len(episodes):
                refusal = waits_for_itself(calls)
                refusal.ids = call.ids.tolist()  # type: ignore[attr-defined]
                raise refusal
        finally:
            submission.is_over = True  # first of all: a second Ctrl-C may end what follows
            with self._lock:
                self._submissions.settle()
            self.answers.changes.tell()
        return call.ids

    def awaited_requests(self, tags: Sequence[int]) -> list[EpisodeRequest | None]:
        """Those of futures, by their tags in the library; None: the future has its result."""
        with self._lock:
            return [self._submissions.awaited(tag) for tag in tags]

    def _check_open(self, ids: list[int]) -> None:
        """ids: of the requests that have found room before, which the error tells."""
        if self.ending:
            raise _closed("this engine was closed", ids)
        if not self.num_playing and (failure := _failure_of(self.handle)) is not None:
            raise _closed(f"the replicas of this engine have ended: {describe(failure)}", ids) from failure

    def _warn_of_ends(self) -> None:
        info = self.handle.info()
        ends = info.num_replicas - info.num_playing - len(self._removed)
        if ends > self._told_ends and info.num_playing and not self.ending:
            self._told_ends = ends
            if (failure := _failure_of(self.handle)) is not None:
                told = f"a replica has ended, others play on: {describe(failure)}"
                warnings.warn(told, RuntimeWarning, stacklevel=5)

    def run(self, requests: Sequence[EpisodeRequest]) -> list[EpisodeResult]:
        """Plays requests, and cancels them if one fails or Ctrl-C comes."""
        _check_have_no_steps(requests)
        episodes = Episodes(with_levels(requests, self._levels))
        awaited = [AwaitedResult() for _ in range(len(episodes))]
        ids: list[int] = []
        try:
            ids = self._submit(episodes, None, awaited).tolist()
            return self.promises.wait_for(awaited)
        except BaseException:
            for request_id in ids:
                self.handle.cancel(request_id)
            raise

    def submit_futures(
        self,
        requests: Sequence[EpisodeRequest] | RequestBatch,
        timeout: float | None,
        continuations: Sequence[int] | None = None,
    ) -> list[Future[EpisodeResult]]:
        """The futures of the episodes that found room in time, which are the first ones. continuations: see
        `Episodes`."""
        _check_have_no_steps([requests.template] if isinstance(requests, RequestBatch) else requests)
        episodes = Episodes(with_levels(requests, self._levels), continuations)
        futures = [_EpisodeFuture(self.handle, self.threads, self._readers) for _ in range(len(episodes))]
        ids = self._submit(episodes, timeout, futures).tolist()
        for future, request_id in zip(futures, ids, strict=False):
            future.request_id = request_id
        return list(futures[: len(ids)])

    @property
    def num_playing(self) -> int:
        """Replicas that have not ended."""
        return int(self.handle.info().num_playing)

    @property
    def has_ended(self) -> bool:
        """Or ends soon."""
        return self.ending or not self.num_playing

    # ---- Replicas ----

    @property
    def replicas(self) -> tuple[int, ...]:
        """The numbers of those that have not ended and were not removed."""
        numbers = range(self.handle.info().num_replicas)
        return tuple(one for one in numbers if one not in self._removed and not self.handle.replica(one).has_ended)

    def add_replica(self, simulator: SimulatorConfig) -> int:
        self._check_open([])
        self.config.replace(simulator=simulator)  # which checks it
        resolved = simulator.replace(device=resolve_device(simulator.device))
        return self.handle.add_replica(resolved.native_handle)

    def remove_replica(self, number: int) -> None:
        with self._lock:
            self._check_open([])
            others = set(self.replicas) - {number}
            if len(others) == len(self.replicas):
                refuse("number", f"that of a replica, {', '.join(map(str, others))}", number)
            if not others:
                raise StateError("the last replica cannot be removed", hint="add another one, or close the engine")
            self._removed.add(number)
            self.handle.end_replica(number)

    # ---- Named policies ----

    @property
    def named_policies(self) -> Mapping[str, NamedPolicy]:
        return self._policies.named

    def name_policy(self, name: str, policy: AnyPolicy) -> None:
        """The name stands for this policy, also in requests that wait."""
        check_policy(policy)
        named = NamedPolicy(name, policy, self._policies.load(policy))
        self._check_open([])
        with self._lock:
            if is_callable(named.loaded):
                self._callers.start()
            self._policies.set_name(named, self._replace_policy)

    def forget_name(self, name: str) -> None:
        """Requests that wait keep the policy."""
        with self._lock:
            self._policies.forget_name(name)

    def _replace_policy(self, number: int, by: int) -> None:
        self._submissions.use_too(number, by)
        self.handle.replace_policy(number, by)

    # ---- Waiting ----

    def drain(self, timeout: float | None) -> bool:
        limit = TimeLimit(timeout)
        self.threads.check_wait(timeout)
        return self.handle.drain(timeout, self._readers.check_wait) and self.promises.drain(limit)

    # ---- The end ----

    def end(self) -> None:
        """Ends soon. Takes no lock and does not wait."""
        self.ending = True
        end(self.handle, self.promises.signals)

    def join(self, limit: TimeLimit) -> None:
        """Waits for the end, unless one of its own threads calls."""
        if self.threads.calls:
            return
        self.handle.join(limit.left())
        self.promises.signals.end()  # whose thread can see now that all have been answered
        self._callers.join(limit)
        self.promises.join(limit)


# Functions of some parts, which no part refers to: the parts are no cycle, and go when the engine does.


def _policies_in_use(lock: threading.RLock, submissions: Submissions) -> frozenset[int]:
    with lock:
        return submissions.policies_in_use()


def _tell(natives: NativePolicies, states: RowStates, number: int, policy: Any, name: str) -> None:
    """The policy, which metrics call so, gets a number; None: that of the number has it no longer."""
    if policy is None:
        natives.take_back(number)
        states.forget(number)
    else:
        natives.give(number, policy, name)


def _tend(
    lock: threading.RLock,
    submissions: Submissions,
    natives: NativePolicies,
    policies: PolicyTable,
    restarts: RestartLog,
) -> None:
    """Looks after weights and replicas; policies of answered requests are kept alive no longer."""
    is_time = natives.renew_sometimes()
    if is_time:
        restarts.write()
    if is_time or not submissions.unanswered:
        with lock:
            policies.drop_unused()


def _failure_of(engine: native.EngineHandle) -> DoorstepError | None:
    """Of the first replica that has failed and is not restarted."""
    for number in range(engine.info().num_replicas):
        try:
            if engine.replica(number).has_ended:
                engine.check_replica(number)
        except DoorstepError as error:  # noqa: PERF203
            return error
    return None


def _closed(message: str, ids: list[int]) -> ClosedError:
    error = ClosedError(message, hint="make a new one")
    error.ids = ids  # type: ignore[attr-defined]
    return error


@final
class AwaitedEpisode:
    """A request that is submitted, and awaited as `run()` awaits many: Ctrl-C leaves no lock behind, as it may within
    a future."""

    def __init__(self, core: Core, request: EpisodeRequest) -> None:
        core.threads.check_wait(None)
        check_single([request], "each episode is awaited alone")
        self._core, self._awaited = core, AwaitedResult()
        (self._id,) = core.submit([request], None, [self._awaited]).tolist()

    def result(self) -> EpisodeResult:
        """Waits for it; raises where the episode failed."""
        self._core.threads.check_wait(None)
        return self._core.promises.wait_for([self._awaited])[0]

    def cancel(self) -> None:
        self._core.handle.cancel(self._id)


class _EpisodeFuture(Future[EpisodeResult], Owner, remedy="copy its result()"):
    """Cancelling it cancels its request. It needs no callback for that: adding one takes the lock of the future, which
    Ctrl-C may leave locked, and then the thread that gives all futures their results would wait for ever."""

    request_id: int | None = None

    # A future that is kept must not keep the engine's parts
    def __init__(self, engine: native.EngineHandle, threads: OwnThreads, readers: Readers) -> None:
        super().__init__()
        self._engine, self._threads, self._readers = engine, threads, readers
        self._waiters = _Waiters(self)

    def result(self, timeout: float | None = None) -> EpisodeResult:
        self._await(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._await(timeout)
        return super().exception(0)

    def _await(self, timeout: float | None) -> None:
        """Waits, unless it is done, in slices: Python waits without looking at the engine."""
        self.check_wait(timeout)
        limit = TimeLimit(timeout)
        while not self.done() and (left := limit.left(SLICE_SECONDS)):
            with contextlib.suppress(FutureTimeoutError, CancelledError):
                super().exception(left)
                return
            if timeout is None:
                self._readers.check_wait()

    def check_wait(self, timeout: float | None) -> None:
        if self._threads.calls and not self.done():
            self._threads.check_wait(timeout)

    def add_done_callback(self, callback: Callable[[Future[EpisodeResult]], object]) -> None:
        super().add_done_callback(functools.partial(_call_back, callback, self._threads))

    def cancel(self) -> bool:
        is_cancelled = super().cancel()
        if is_cancelled and self.request_id is not None:
            self._engine.cancel(self.request_id)
        return is_cancelled


class _Waiters(list[Any]):
    """To which `concurrent.futures.wait()` and `as_completed()` append before they wait; with which timeout, they do
    not say."""

    def __init__(self, future: _EpisodeFuture) -> None:
        super().__init__()
        self._future = weakref.ref(future)

    def append(self, waiter: Any) -> None:
        future = self._future()
        if future is not None:
            future.check_wait(None)
        super().append(waiter)


def _check_have_no_steps(requests: Sequence[EpisodeRequest]) -> None:
    for request in requests:
        if not isinstance(request, EpisodeRequest):
            refuse("request", "a doorstep.EpisodeRequest", request)
        if "stream" in request.record:
            refuse("request", "one that records no 'stream'", request, "get_outputs() gives steps")


def _call_back(
    callback: Callable[[Future[EpisodeResult]], object], threads: OwnThreads, future: Future[EpisodeResult]
) -> None:
    """In a thread of the engine no exception keeps the other callbacks from being called: Python cares for ordinary
    ones alone."""
    try:
        callback(future)
    except Exception:
        raise
    except BaseException:
        if not threads.calls:
            raise
        traceback.print_exc()


# ---- The end, exit and fork ----


def end(engine: native.EngineHandle, signals: Signals) -> None:
    """Ends an engine soon, of which nothing else may be left. The garbage collector may call it anywhere."""
    engine.close()
    signals.end()


_cores: list[weakref.ref[Core]] = []  # of this process; a WeakSet's callbacks would lose Ctrl-C
_EXIT_SECONDS = 5.0  # to wait for all threads: policies may never return


def watch_process(core: Core) -> None:
    """Ends it when the interpreter exits. Forked children have no threads, so that it has ended there."""
    _cores[:] = [*map(weakref.ref, _living()), weakref.ref(core)]


def _living() -> list[Core]:
    return [core for reference in _cores if (core := reference()) is not None]


def _end_all() -> None:
    limit, cores = TimeLimit(_EXIT_SECONDS), _living()
    for core in cores:
        core.end()
    for core in cores:
        core.join(limit)


def _forget_all() -> None:
    for core in _living():
        core.is_copy = True
    _cores.clear()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_forget_all)
