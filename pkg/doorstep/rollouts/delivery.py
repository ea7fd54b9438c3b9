"""What has been submitted to an engine, and how its outputs reach who waits for them: calls, and futures."""

from __future__ import annotations

import _thread
import itertools
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, final

import numpy as np

from doorstep._native._generated import EpisodeReason
from doorstep._native.rollouts import Delivery, EngineHandle, OutputsHandle, SubmitCall, TakenOutputs
from doorstep.errors import ClosedError, OutOfMemoryError
from doorstep.rollouts.failures import FailureTexts, ReplicaLog
from doorstep.rollouts.native_policies import NativePolicies
from doorstep.rollouts.policies import PolicyTable
from doorstep.rollouts.request import AnyRequests
from doorstep.rollouts.results import INDEX_BITS, EpisodeResult, EpisodeResults

_RENEWAL_SECONDS = 0.05
_SLICE_SECONDS = 0.05
_PAUSE_SECONDS = 0.002
_FEW = 16  # submissions, which are looked through when there are twice as many as after the last time
_MOST_OUTPUTS = 4096  # that futures get at a time


@final
class Submission:
    """Requests that are submitted together.

    Attributes:
        policies: the numbers of those that they have.
        is_over: no further request will be accepted. The submitter sets it, also after an exception.
    """

    _numbers = itertools.count()

    def __init__(self, requests: AnyRequests) -> None:
        self.number, self.requests = next(self._numbers), requests
        self.policies: frozenset[int] = frozenset()
        self.is_over = False

    @property
    def first_tag(self) -> int:
        """Of its requests for the library; the others follow."""
        return self.number << INDEX_BITS


@final
class Submissions:
    """Those with results that have not been received, of which the library knows the tags; and what the policies of
    their requests need. Any thread may use it.

    Args:
        policies, natives: are looked after.
        log: of failures of replicas, likewise.

    Attributes:
        lock: guards submissions and policies.
    """

    def __init__(
        self,
        engine: EngineHandle,
        policies: PolicyTable,
        natives: NativePolicies,
        failures: FailureTexts,
        log: ReplicaLog,
        num_agents: int,
    ) -> None:
        self._engine, self._policies, self._natives = engine, policies, natives
        self._failures, self._log, self._num_agents = failures, log, num_agents
        self.lock = threading.RLock()
        self._live: dict[int, Submission] = {}
        self._most, self._next_renewal = _FEW, 0.0

    # ---- Requests

    def open(self, submission: Submission) -> None:
        """Its outputs may come from now on. With the lock."""
        self._live[submission.number] = submission
        if len(self._live) > self._most:
            self._policies.drop_unused(self.policies_in_use())

    def policies_in_use(self) -> frozenset[int]:
        """The numbers of the policies of requests that have not been answered."""
        self._forget_answered()
        return self._policies_of_all()

    def _policies_of_all(self) -> frozenset[int]:
        return frozenset().union(*(submission.policies for submission in list(self._live.values())))

    def use_too(self, policy: int, other: int) -> None:
        """Requests that have a policy may get another one, by its number."""
        for submission in self._live.values():
            if policy in submission.policies:
                submission.policies |= {other}

    def _forget_answered(self) -> None:
        with self.lock:
            over = [number for number, submission in self._live.items() if submission.is_over]
            tagged = set((self._engine.tags() >> np.uint64(INDEX_BITS)).tolist())
            for number in over:
                if number not in tagged:
                    del self._live[number]
            self._most = 2 * len(self._live) + _FEW

    # ---- Looking after what is played

    def tend(self) -> None:
        """To be called in waits."""
        if time.monotonic() < self._next_renewal:
            return
        with self.lock:
            self._next_renewal = time.monotonic() + _RENEWAL_SECONDS
            self._natives.renew_or_fail(self._policies_of_all())
        self._log.write()

    def tidy(self) -> None:
        """To be called when results have been received: what was needed for their requests is kept no longer."""
        if len(self._live) > self._most or not self._engine.info().unanswered:
            with self.lock:
                self._policies.drop_unused(self.policies_in_use())

    # ---- Outputs

    def take(
        self, delivery: Delivery, most: int, timeout: float | None, *, alone: bool, least: int = 1
    ) -> EpisodeResults:
        """Outputs that have come, at least one unless none is to come, or the time is over. They are received when the
        caller says so, see `Delivery`.

        Args:
            least: how many to wait for while little time passes.
            alone: whether the result of an episode that failed comes alone, and not behind or before others.

        Raises:
            ClosedError: none is to come, and the engine has ended.
        """
        while True:
            taken = delivery.take(most, timeout, self.tend, least=least)
            outputs = self.read(taken)
            if not len(outputs) and not taken.is_late:
                self.tidy()
            if not alone or len(outputs) < 2 or not outputs.failed:
                return outputs
            least, most = 1, max(outputs.failed[0], 1)  # they are taken again, before all others

    def read(self, taken: TakenOutputs) -> EpisodeResults:
        """What was taken, with the requests."""
        outputs = taken.records
        data = {place: taken.data(place) for place in np.flatnonzero(outputs["data"]).tolist()}
        taken.give_data()
        failed = np.flatnonzero(outputs["reason"] == EpisodeReason.FAILED).tolist()
        failures = {place: self._failures.text_of(outputs[place]) for place in failed}
        # np.unique() ends the process where Python ends a thread in it, as a daemon's when the interpreter exits
        numbers = set((outputs["tag"] >> np.uint64(INDEX_BITS)).tolist())
        requests = {number: self._live[number].requests for number in numbers}
        return EpisodeResults(outputs, data, failures, requests, self._num_agents)


@final
class Futures:
    """The futures of an engine, which a thread gives their results. It runs while results are awaited: then alone it
    refers to requests and policies, which may refer to the engine.

    Args:
        outputs: a queue of their own.
        raises: whether an episode that failed is an exception.
    """

    def __init__(self, outputs: OutputsHandle, submissions: Submissions, *, raises: bool) -> None:
        self.outputs, self._submissions, self._raises = outputs, submissions, raises
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._awaited: dict[int, Future[EpisodeResult]] = {}  # by the tags of their requests
        self._open: list[Submission] = []  # which may get further requests
        self._count = 0  # of submissions
        self._is_running = False
        self._ended = [True]  # of the latest thread
        self._thread = 0

    def make(self, call: SubmitCall, count: int) -> list[Future[EpisodeResult]]:
        """Of the requests of a call. Nothing awaits them yet: Ctrl-C may leave locks of theirs locked."""
        futures: list[Future[EpisodeResult]] = []
        for place in range(count):
            future: Future[EpisodeResult] = Future()
            future.add_done_callback(_CancelsRequest(call, place))
            futures.append(future)
        return futures

    def begin(self, submission: Submission, futures: Mapping[int, Future[EpisodeResult]]) -> None:
        """These, by their tags, get results from now on."""
        before = self._ended
        try:
            with self._lock:
                self._awaited.update(futures)
                self._open.append(submission)
                self._count += 1
                if not self._is_running:
                    self._is_running, self._ended = True, [False]
                    # Ctrl-C may leave locks of a `Thread` locked
                    _thread.start_new_thread(_serve, ([self], self._ended))
        except BaseException:  # it may run: then the next one waits for its turn
            self._is_running, self._ended = False, before
            raise

    def forget(self, tags: Iterable[int]) -> None:
        """Their requests were not accepted."""
        for tag in tags:
            self._awaited.pop(tag, None)

    def serve(self) -> None:
        """In the thread: gives results to futures until none is awaited."""
        with self._turn:
            self._thread = threading.get_ident()
            delivery = Delivery(self.outputs)
            while True:
                with self._lock:
                    self._open = [submission for submission in self._open if not submission.is_over]
                    is_quiet, count = not self._open, self._count
                try:
                    if self._resolve_some(delivery):
                        continue
                except ClosedError:  # none is to come, as well
                    pass
                except (MemoryError, OutOfMemoryError):
                    time.sleep(_SLICE_SECONDS)  # nothing is lost
                    continue
                with self._lock:
                    if is_quiet and count == self._count:
                        self._awaited.clear()  # of requests that were not accepted
                        self._is_running = False
                        break
                time.sleep(_PAUSE_SECONDS)
            self._thread = 0
        self._submissions.tidy()

    @property
    def calls_here(self) -> bool:
        """Whether the current thread is the one."""
        return threading.get_ident() == self._thread

    def join(self, left: Callable[[], float]) -> None:
        """Waits until the thread has ended, so many seconds."""
        while not self._ended[0] and left():
            time.sleep(_PAUSE_SECONDS)

    def _resolve_some(self, delivery: Delivery) -> bool:
        """Whether more may come."""
        taken = delivery.take(_MOST_OUTPUTS, _SLICE_SECONDS, self._submissions.tend)
        if taken.is_late:
            return True
        outputs = self._submissions.read(taken)
        failed = set(outputs.failed if self._raises else ())
        for place, tag in enumerate(outputs.native_tags):
            if tag in self._awaited:
                _resolve(self._awaited[tag], outputs[place], outputs.error(place) if place in failed else None)
                del self._awaited[tag]
        delivery.state.received = len(outputs)
        return len(outputs) > 0


def _serve(given: list[Futures], ended: list[bool]) -> None:
    """The thread, which refers to the engine's parts no longer when it has ended."""
    try:
        given.pop().serve()
    finally:
        ended[0] = True


def _resolve(future: Future[EpisodeResult], result: Any, error: Exception | None) -> None:
    if future.done() and not future.cancelled():
        return  # its user has set a result
    try:
        if not future.set_running_or_notify_cancel():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
    except BaseException:  # whatever it is, the other futures get their results
        traceback.print_exc()


@final
class _CancelsRequest:
    """Called when a future is done: cancels its request if the future was cancelled."""

    __slots__ = ("_call", "_place")  # there may be many

    def __init__(self, call: SubmitCall, place: int) -> None:
        self._call, self._place = call, place

    def __call__(self, future: Future[EpisodeResult]) -> None:
        if future.cancelled() and self._place < len(self._call.ids):
            self._call.engine.cancel(int(self._call.ids[self._place]))
