"""The outputs of an engine on their way to its callers and futures."""

from __future__ import annotations

import functools
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native.rollouts import OUTPUT_DTYPE, EngineHandle, TakeCall
from doorstep.errors import ClosedError, OutOfMemoryError
from doorstep.rollouts.batch import Episodes
from doorstep.rollouts.changes import SLICE_SECONDS, Changes, TimeLimit
from doorstep.rollouts.failures import FailureTexts
from doorstep.rollouts.outbox import Delivery, Outbox, Reading
from doorstep.rollouts.outputs import AnyOutput, Incoming, OutputBatch
from doorstep.rollouts.own_threads import OwnThreads
from doorstep.rollouts.request import EpisodeRequest
from doorstep.rollouts.result import EpisodeResult
from doorstep.rollouts.submissions import AwaitedResult, Promise, Submission, Submissions

Returned = TypeVar("Returned")

_MOST_OUTPUTS = 4096  # that are taken from the library at a time, or more if a call wants more
_NO_RECORDS = np.empty(0, OUTPUT_DTYPE)


@final
class Answers:
    """Gives outputs to those who asked for them. Any thread may use it.

    A call that waits takes outputs from the library, for itself and others. Once there are futures, a thread takes all
    of them, and calls wait for what it leaves. What was taken stays in the outbox until a call returns it. Ctrl-C may
    end calls anywhere; the next call does what is left to do.

    Args:
        threads: the engine's, in which nothing waits.
        tend: called in waits, and when requests have been answered.
        lock: guards policies and submissions.
        raises: whether reading the result of an episode that failed raises, and does not return it.
    """

    def __init__(
        self,
        engine: EngineHandle,
        failures: FailureTexts,
        threads: OwnThreads,
        tend: Callable[[], None],
        lock: threading.RLock,
        submissions: Submissions,
        *,
        raises: bool,
    ) -> None:
        self._threads, self._tend, self._raises = threads, tend, raises
        self._engine, self._failures, self._lock, self._submissions = engine, failures, lock, submissions
        self._outbox: Outbox[OutputBatch] = Outbox(OutputBatch.join, lambda batch: batch.num_results)
        self._taking = threading.Lock()  # held by the only thread that takes, so that outputs stay in order
        self._wake = Changes()  # of the thread, when there are futures or the end
        self._has_futures = self._ending = self._is_over = False  # over: the thread has nothing left to do
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        thread = threading.Thread(target=self._run, name="doorstep-futures", daemon=True)
        thread.start()
        self._thread = thread

    # ---- Submissions

    def new_submission(self, episodes: Episodes, futures: Sequence[Promise]) -> Submission:
        return self._submissions.make(episodes, futures)

    def open(self, submission: Submission) -> None:
        """To be called before the requests are submitted: their outputs may come at once."""
        if submission.has_futures:
            self._has_futures = True
            self._wake.tell()
        with self._lock:
            self._submissions.open(submission)

    def settle(self) -> None:
        """To be called when a submission is over."""
        with self._lock:
            self._submissions.settle()
        self._outbox.changes.tell()

    def request_of(self, tag: int) -> EpisodeRequest:
        """The request that is not answered and has this tag in the library."""
        with self._lock:
            submission, index = self._submissions.find(tag)
            return submission.request(index)

    @property
    def num_outputs(self) -> int:
        """That no call has returned."""
        return self._engine.info().outputs + len(self._outbox)

    @property
    def outstanding(self) -> int:
        """Requests whose result no call has returned, and no future has got."""
        with self._lock:
            self._submissions.settle()
            self._outbox.take_back()
            of_futures = self._submissions.tally_of_futures.unanswered
            return self._submissions.tally.expected - self._outbox.num_taken + of_futures

    # ---- Returning

    def outputs(self, most: int, timeout: float | None) -> list[AnyOutput]:
        """At least one, unless none is to come, or the time is over."""
        return self._hand_out(lambda batch: batch.outputs(self._failures), most, timeout) or []

    def records(self, most: int, timeout: float | None) -> NDArray[Any]:
        """As outputs(), as records of results; what comes with them is dropped."""
        records = self._hand_out(OutputBatch.results, most, timeout)
        return _NO_RECORDS if records is None else records

    def result(self) -> EpisodeResult | None:
        """The next one; None if none is to come."""
        return self._hand_out(self._first_result, 1, None)

    def _first_result(self, batch: OutputBatch) -> EpisodeResult | None:
        return cast(EpisodeResult, batch.outputs(self._failures)[0]) if batch.num_results else None

    def _hand_out(
        self, read: Callable[[OutputBatch], Returned | None], most: int, timeout: float | None
    ) -> Returned | None:
        fill, wait = functools.partial(self._fill, most), functools.partial(self._receive, most)
        limit = 0.0 if self._threads.calls else timeout
        value = self._outbox.hand_out(fill, wait, functools.partial(self._read, read), limit)
        if value is None and self._threads.calls and self._is_one_to_come():
            self._threads.check_wait(timeout)
        return value

    def _read(
        self, read: Callable[[OutputBatch], Returned | None], batch: OutputBatch
    ) -> Reading[Returned, OutputBatch]:
        """Up to the first episode that failed; or its error, if it is the first output."""
        end = batch.num_before_failure if self._raises else len(batch)
        if end == len(batch):
            return read(batch), None, None
        if end == 0:
            return None, batch.error(self._failures), batch[1:] if len(batch) > 1 else None
        return read(batch[:end]), None, batch[end:]

    def _fill(self, most: int, delivery: Delivery[OutputBatch]) -> bool:
        """Raises ClosedError if none is to come ever."""
        with self._lock:
            self._submissions.settle()
            self._outbox.fill(delivery, most)
            if delivery.part is not None:
                return True
            if self._is_one_to_come():
                return False
        if self._has_ended():
            raise ClosedError("this engine was closed, and all outputs have been taken", hint="make a new one")
        return True

    def _has_ended(self) -> bool:
        return self._engine.info().num_playing == 0

    def _is_one_to_come(self) -> bool:
        """An output for a call."""
        return self._submissions.tally.unanswered > 0 or self._outbox.is_coming

    # ---- Taking

    def _receive(self, most: int, before: int, timeout: float) -> None:
        """Waits for outputs, which another thread may take."""
        self._tend()
        if self._has_futures or self._taking.locked():
            self._wait(before, timeout)
            return
        with self._taking:
            incoming = self._take(max(most, _MOST_OUTPUTS), timeout)
            if incoming is not None and not self._has_futures:
                self._answer(incoming)
        self._outbox.changes.tell()

    def _wait(self, before: int, timeout: float) -> None:
        """Waits for other threads."""
        self._tend()
        if self._has_futures:
            self._wake.tell()  # which Ctrl-C may have prevented
        self._outbox.changes.wait(before, timeout)

    def _take(self, most: int, timeout: float) -> Incoming | None:
        """Some outputs, first those that were taken already and are not in the outbox."""
        incoming = self._outbox.incoming
        if incoming is None or not len(incoming):
            incoming = self._outbox.incoming = Incoming(TakeCall(self._engine, most))
        incoming.call.run(timeout)
        return incoming if len(incoming) else None

    def _answer(self, incoming: Incoming) -> None:
        """Puts outputs into the outbox, but for those of futures, which get them."""
        incoming.copy_rows()
        with self._lock:
            incoming.identify(self._submissions)
        assert incoming.batch is not None
        if incoming.of_futures is not None:
            self._give_to_futures(incoming.of_futures)
        with self._lock:
            for submission, answered in incoming.answers:
                self._submissions.answer(submission, answered)
            self._outbox.put(incoming.batch)
        self._tend()

    # ---- Futures

    def wait_for(self, awaited: Sequence[AwaitedResult]) -> list[EpisodeResult]:
        """The results of all, in order. Raises the error of the first that has one, once those before it are there."""
        results: list[EpisodeResult] = []

        def are_there() -> bool:
            while len(results) < len(awaited) and awaited[len(results)].done():
                results.append(awaited[len(results)].result())
            return len(results) == len(awaited)

        self._outbox.changes.wait_until(are_there, TimeLimit(None), wait=self._wait)
        return results

    def _run(self) -> None:
        self._threads.enter("a callback of a future")
        self._serve_futures()
        self._is_over = True
        self._outbox.changes.tell()

    def _serve_futures(self) -> None:
        while not self._has_futures:
            before, ending = self._wake.count, self._ending
            if ending and self._has_ended():
                return
            if not self._has_futures:
                self._wake.wait(before, SLICE_SECONDS if ending else -1)
        while True:
            self._tend()
            try:
                with self._taking:
                    incoming = self._take(_MOST_OUTPUTS, SLICE_SECONDS)
                    if incoming is not None:
                        self._answer(incoming)
            except ClosedError:
                return  # the engine has ended: all futures have their results
            except (MemoryError, OutOfMemoryError):
                time.sleep(SLICE_SECONDS)  # nothing is lost
            self._outbox.changes.tell()

    def _give_to_futures(self, batch: OutputBatch) -> None:
        for place, (future, output) in enumerate(zip(batch.futures(), batch.outputs(self._failures), strict=True)):
            error = batch[place : place + 1].error(self._failures) if self._raises else None
            _resolve(future, output, error)

    def drain(self, limit: TimeLimit) -> bool:
        """Waits until the thread, if there are futures, has seen all results; whether that is so."""
        return self._outbox.changes.wait_until(self._is_drained, limit, wait=self._wait)

    def _is_drained(self) -> bool:
        with self._lock:
            self._submissions.settle()
            return not self._has_futures or not self._submissions.unanswered

    # ---- The end

    def end(self) -> None:
        """To be called when the engine ends. Takes no lock, and does not wait."""
        self._ending = True
        self._wake.tell()
        self._outbox.changes.tell()

    def join(self, timeout: float | None) -> None:
        if self._thread is None:
            return
        # If Ctrl-C comes within its join(), Python takes a thread that is running for one that has ended
        if self._outbox.changes.wait_until(lambda: self._is_over, TimeLimit(timeout)):
            self._thread.join(timeout)


def _resolve(future: Promise, output: Any, error: Exception | None) -> None:
    if future.done() and not future.cancelled():
        return  # its user has set a result
    try:
        if not future.set_running_or_notify_cancel():
            return
        if error is None:
            future.set_result(output)
        else:
            future.set_exception(error)
    except BaseException:  # whatever it is, the other futures get their results
        traceback.print_exc()
