"""The outputs of an engine on their way to its callers and futures."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias, final

from numpy.typing import NDArray

from doorstep._native._generated import OutputKind
from doorstep._native.rollouts import OutputData
from doorstep.errors import ClosedError, StateError
from doorstep.rollouts.batch import RequestBatch
from doorstep.rollouts.failures import FailureTexts
from doorstep.rollouts.policies import PolicyTable
from doorstep.rollouts.queues import OutputQueue
from doorstep.rollouts.request import EpisodeRequest
from doorstep.rollouts.result import EpisodeResult, EpisodeStep, make_result, make_step
from doorstep.rollouts.submissions import Submission, Submissions

AnyOutput: TypeAlias = EpisodeResult | EpisodeStep

_MOST_OUTPUTS = 4096  # that the thread of futures takes at a time
_SLICE_SECONDS = 0.05  # of a wait, after which it is seen that the thread of futures takes the outputs


@final
class Answers:
    """Gives outputs to those who asked for them. Any thread may use it.

    Args:
        outputs: what replicas have pushed.
        policies: the engine's, which are released with the last answer of a submission.
        lock: guards policies and submissions.
    """

    def __init__(
        self, outputs: OutputQueue, policies: PolicyTable, failures: FailureTexts, lock: threading.RLock
    ) -> None:
        self._outputs, self._policies, self._failures = outputs, policies, failures
        self._changed = threading.Condition(lock)
        self._taking = threading.Lock()  # held from taking to handing out, so that outputs are handed out in order
        self._submissions = Submissions()
        self._passed_on: collections.deque[AnyOutput] = collections.deque()  # by the thread of futures
        self._thread: threading.Thread | None = None

    # ---- Submissions

    @property
    def unanswered(self) -> int:
        return self._submissions.unanswered

    def open(
        self,
        requests: Sequence[EpisodeRequest] | RequestBatch,
        policies: frozenset[int],
        futures: Sequence[Future[EpisodeResult]],
    ) -> Submission:
        """To be called before the requests are submitted: their outputs may come at once."""
        with self._changed:
            if futures and self._thread is None:
                self._thread = threading.Thread(target=self._serve_futures, name="doorstep-futures", daemon=True)
                self._thread.start()
            self._policies.use(policies)
            return self._submissions.open(requests, policies, futures)

    def request_of(self, tag: int) -> EpisodeRequest:
        """The request that is not answered and has this tag in the library."""
        with self._changed:
            submission, index = self._submissions.find(tag)
            return submission.request(index)

    def withdraw(self, submission: Submission, count: int) -> None:
        """That many of the submission's last requests have not been submitted after all."""
        if count:
            with self._changed:
                self._answer(submission, count)

    def _answer(self, submission: Submission, count: int) -> None:
        if self._submissions.answer(submission, count):
            self._policies.release(submission.policies)
        self._changed.notify_all()

    # ---- Taking

    def take(self, most: int, timeout: float | None) -> list[AnyOutput]:
        """At least one output, unless none is to come, or the time is over."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._changed:
                if self._passed_on:
                    return [self._passed_on.popleft() for _ in range(min(most, len(self._passed_on)))]
                if self._nothing_comes():
                    return []
            left = _SLICE_SECONDS if deadline is None else min(_SLICE_SECONDS, deadline - time.monotonic())
            if outputs := self._take_some(most, max(left, 0.0)):
                return outputs
            if left < _SLICE_SECONDS:
                return []

    def _take_some(self, most: int, timeout: float) -> list[AnyOutput]:
        if self._thread is None:
            return self._take_and_hand_out(most, timeout)
        with self._changed:
            self._changed.wait_for(lambda: self._passed_on or self._nothing_comes(), timeout)
        return []

    def _take_and_hand_out(self, most: int, timeout: float) -> list[AnyOutput]:
        if not self._taking.acquire(timeout=timeout):
            return []
        try:
            return self._hand_out(self._outputs.take(most, timeout), passes_on=False)
        finally:
            self._taking.release()

    def _nothing_comes(self) -> bool:
        """To those who take; raises ClosedError if that stays so."""
        if self._submissions.unanswered > self._submissions.unanswered_futures or len(self._outputs):
            return False
        if self._outputs.closed:
            raise ClosedError("this engine was closed, and all outputs have been taken", hint="make a new one")
        return True

    def take_records(self, most: int, timeout: float | None) -> NDArray[Any]:
        """As take(), as records of results; what comes with them is dropped."""
        if self._thread is not None:
            raise StateError("results go to futures", hint="use an engine of its own for futures")
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._changed:
                nothing_comes = self._nothing_comes()
            left = _SLICE_SECONDS if deadline is None else min(_SLICE_SECONDS, deadline - time.monotonic())
            records = self._take_some_records(most, 0.0 if nothing_comes else max(left, 0.0))
            if len(records) or nothing_comes or left < _SLICE_SECONDS:
                return records

    def _take_some_records(self, most: int, timeout: float) -> NDArray[Any]:
        with self._taking:
            records = self._outputs.take(most, timeout)
            for record in records[records["data"] != 0]:
                OutputData(record).release()
            results: NDArray[Any] = records[records["kind"] == OutputKind.RESULT]
            with self._changed:
                self._answer_records(results)
        return results

    def _answer_records(self, results: NDArray[Any]) -> None:
        """Puts the caller's tags into them."""
        for submission, places, indices in self._submissions.find_all(results["tag"].copy()):
            results["tag"][places] = submission.tags(indices)
            self._answer(submission, len(places))

    # ---- Handing out

    def _hand_out(self, records: NDArray[Any], *, passes_on: bool) -> list[AnyOutput]:
        """The outputs, less those that belong to futures, which get them."""
        with self._changed:
            answered = [self._answer_output(record) for record in records]
            others = [output for output, future in answered if future is None]
            if passes_on:  # with the lock: who takes sees neither less nor more than has been answered
                self._passed_on.extend(others)
        for output, future in answered:
            if future is not None and isinstance(output, EpisodeResult) and future.set_running_or_notify_cancel():
                future.set_result(output)
        return others

    def _answer_output(self, record: Any) -> tuple[AnyOutput, Future[EpisodeResult] | None]:
        submission, index = self._submissions.find(int(record["tag"]))
        request = submission.request(index)
        if record["kind"] == OutputKind.STEP:
            return make_step(record, request), None
        self._answer(submission, 1)
        error = self._failures.text_of(int(record["reason"]), int(record["cause"]))
        return make_result(record, request, error), submission.future(index)

    # ---- Futures: a thread takes all outputs, and passes on those that belong to none

    def _serve_futures(self) -> None:
        try:
            while True:
                with self._taking:
                    self._hand_out(self._outputs.take(_MOST_OUTPUTS, _SLICE_SECONDS), passes_on=True)
        except ClosedError:
            pass  # the engine has ended: all futures have their results

    def wait_for_futures(self, timeout: float | None) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._submissions.unanswered_futures, timeout)

    def join(self, timeout: float | None) -> None:
        """Once the outputs are closed."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)
