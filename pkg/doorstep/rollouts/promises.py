"""The results of an engine on their way to futures, and to what `run()` waits for."""

from __future__ import annotations

import contextlib
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Any, final

from doorstep._native.rollouts import EngineHandle, TakeCall
from doorstep.errors import ClosedError, OutOfMemoryError
from doorstep.rollouts.changes import SLICE_SECONDS, Changes, TimeLimit
from doorstep.rollouts.outputs import Incoming, Receiver
from doorstep.rollouts.readers import PROMISES, OwnThreads
from doorstep.rollouts.result import EpisodeResult
from doorstep.rollouts.submissions import AwaitedResult, Promise

_MOST_OUTPUTS = 4096  # that are taken from the library at a time


@final
class Signals:
    """Tells the thread that keeps promises what to do. Promises refer to requests and policies, and these may refer to
    the engine. The thread therefore refers to promises only while a result is awaited: an engine without other
    references is collected.

    Attributes:
        promises: that are to be kept; None: no result is awaited.
        wake: of the thread, when there are promises or the end.
        changes: told by the thread.
        is_over: the thread has nothing left to do.
    """

    def __init__(self) -> None:
        self.promises: Promises | None = None
        self.wake, self.changes = Changes(), Changes()
        self.is_ending = self.is_over = False

    def end(self) -> None:
        """To be called when the engine ends. Takes no lock, and does not wait."""
        self.is_ending = True
        self.wake.tell()
        self.changes.tell()


@final
class Promises(Receiver):
    """A thread that takes the results of all requests with promises, and keeps these. Ctrl-C may end calls anywhere."""

    def __post_init__(self) -> None:
        self.signals = Signals()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        given = self._engine, self._threads, self.signals
        thread = threading.Thread(target=_run, args=given, name="doorstep-futures", daemon=True)
        thread.start()
        self._thread = thread

    def begin(self) -> None:
        """Some are awaited from now on."""
        self.signals.promises = self
        self.signals.wake.tell()

    # ---- Waiting

    def wait_for(self, awaited: Sequence[AwaitedResult]) -> list[EpisodeResult]:
        """The results of all, in order. Raises the error of the first that has one, once those before it are there."""
        results: list[EpisodeResult] = []

        def are_there() -> bool:
            while len(results) < len(awaited) and awaited[len(results)].done():
                results.append(awaited[len(results)].result())
            return len(results) == len(awaited)

        self.signals.changes.wait_until(are_there, TimeLimit(None), wait=self._wait_without_limit)
        return results

    def drain(self, limit: TimeLimit) -> bool:
        """Waits until the thread, if there are promises, has seen all results; whether that is so."""
        return self.signals.changes.wait_until(self._is_drained, limit, wait=self._wait)

    def _is_drained(self) -> bool:
        with self._lock:
            self._submissions.settle()
            return not self._submissions.tally_of_futures.unanswered

    def _wait(self, before: int, timeout: float) -> None:
        self._tend()
        self.signals.wake.tell()  # which Ctrl-C may have prevented
        self.signals.changes.wait(before, timeout)

    def _wait_without_limit(self, before: int, timeout: float) -> None:
        self._wait(before, timeout)
        if self.signals.changes.count == before:
            self._readers.check_wait()

    # ---- The thread

    @property
    def are_awaited(self) -> bool:
        return self._submissions.tally_of_futures.unanswered > 0

    def keep(self) -> None:
        """Keeps promises until no result is awaited.

        Raises:
            ClosedError: the engine has ended: all have their results.
        """
        incoming: Incoming | None = None
        while True:
            self._tend()
            if not self.are_awaited:
                return
            try:
                incoming = incoming or Incoming(TakeCall(self._engine, PROMISES, _MOST_OUTPUTS))
                incoming.call.run(SLICE_SECONDS)
                if len(incoming):
                    self._keep(incoming)
                    incoming = None
            except (MemoryError, OutOfMemoryError):
                time.sleep(SLICE_SECONDS)  # nothing is lost
            self.signals.changes.tell()

    def _keep(self, incoming: Incoming) -> None:
        incoming.view_rows()
        with self._lock:
            incoming.identify(self._submissions)
        batch = incoming.batch
        assert batch is not None
        errors = batch.errors(self._failures) if self._raises else {}
        for place, (promise, result) in enumerate(zip(batch.promises(), batch.outputs(self._failures), strict=True)):
            _resolve(promise, result, errors.get(place))
        with self._lock:
            for submission, answered in incoming.answers:
                self._submissions.answer(submission, answered)

    # ---- The end

    def join(self, limit: TimeLimit) -> None:
        # If Ctrl-C comes within its join(), Python takes a thread that is running for one that has ended
        if self._thread is not None and self.signals.changes.wait_until(lambda: self.signals.is_over, limit):
            self._thread.join(limit.left())


def _run(engine: EngineHandle, threads: OwnThreads, signals: Signals) -> None:
    """The thread."""
    threads.enter("a callback of a future")
    with contextlib.suppress(ClosedError):
        while True:
            before, is_ending = signals.wake.count, signals.is_ending
            has_ended = is_ending and engine.join(0.0)  # seen first: until then requests may be submitted
            _keep_all(signals)
            if has_ended:
                break
            signals.wake.wait(before, SLICE_SECONDS if is_ending else -1)
    signals.promises = None
    signals.is_over = True
    signals.changes.tell()


def _keep_all(signals: Signals) -> None:
    promises = signals.promises
    if promises is not None:
        promises.keep()
        signals.promises = None
        if promises.are_awaited:  # again, and another thread may have said so before the assignment
            signals.promises = promises
            signals.wake.tell()


def _resolve(promise: Promise, result: Any, error: Exception | None) -> None:
    if promise.done() and not promise.cancelled():
        return  # its user has set a result
    try:
        if not promise.set_running_or_notify_cancel():
            return
        if error is None:
            promise.set_result(result)
        else:
            promise.set_exception(error)
    except BaseException:  # whatever it is, the other futures get their results
        traceback.print_exc()
