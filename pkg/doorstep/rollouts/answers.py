"""The outputs of an engine on their way to the calls that return them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native.rollouts import TakeCall
from doorstep.rollouts.outbox import Delivery, Outbox, Reading
from doorstep.rollouts.outputs import AnyOutput, Incoming, OutputBatch, Receiver
from doorstep.rollouts.readers import CALLS
from doorstep.rollouts.result import EpisodeResult

Returned = TypeVar("Returned")

_MOST_OUTPUTS = 4096  # that are taken from the library at a time, or more if a call wants more


@final
class Answers(Receiver):
    """Gives outputs to the calls of any thread.

    A call that waits takes outputs from the library, for itself and others. What was taken stays in the outbox until a
    call returns it. Ctrl-C may end calls anywhere; the next call does what is left to do.
    """

    def __post_init__(self) -> None:
        self._outbox: Outbox[OutputBatch] = Outbox(OutputBatch.join, lambda batch: batch.num_results)
        self._taking = threading.Lock()  # held by the only thread that takes, so that outputs stay in order
        self.changes = self._outbox.changes

    @property
    def num_outputs(self) -> int:
        """That no call has returned."""
        return self._engine.info().outputs[CALLS] + len(self._outbox)

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

    def records(self, columns: np.dtype[Any], most: int, timeout: float | None) -> NDArray[Any]:
        """As outputs(), as records of results; what comes with them is dropped. columns: see `columns_of()`."""
        records = self._hand_out(lambda batch: batch.results(columns), most, timeout)
        return np.empty(0, columns) if records is None else records

    def result(self) -> EpisodeResult | None:
        """The next one; None if none is to come."""
        return self._hand_out(self._first_result, 1, None)

    def _first_result(self, batch: OutputBatch) -> EpisodeResult | None:
        return cast(EpisodeResult, batch.outputs(self._failures)[0]) if batch.num_results else None

    def _hand_out(
        self, read: Callable[[OutputBatch], Returned | None], most: int, timeout: float | None
    ) -> Returned | None:
        self._readers.enter()
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
        """Whether there is one, or none is to come. Requests may be submitted after they were counted here: only the
        library knows whether an engine without replicas has more outputs, so that one is waited for."""
        with self._lock:
            self._submissions.settle()
            self._outbox.fill(delivery, most)
            if delivery.part is not None:
                return True
            if self._is_one_to_come():
                return False
        return self._engine.info().num_playing > 0

    def _is_one_to_come(self) -> bool:
        return self._submissions.tally.unanswered > 0 or self._outbox.is_coming

    # ---- Taking

    def _receive(self, most: int, before: int, timeout: float) -> None:
        """Waits for outputs, which another thread may take. ClosedError if there will be none."""
        self._tend()
        if self._taking.locked():
            self.changes.wait(before, timeout)
            return
        with self._taking:
            incoming = self._take(max(most, _MOST_OUTPUTS), timeout)
            if incoming is not None:
                self._put(incoming)
        self.changes.tell()

    def _take(self, most: int, timeout: float) -> Incoming | None:
        """Some outputs, first those that were taken already and are not in the outbox."""
        incoming = self._outbox.incoming
        if incoming is None or not len(incoming):
            incoming = self._outbox.incoming = Incoming(TakeCall(self._engine, CALLS, most))
        incoming.call.run(timeout)
        return incoming if len(incoming) else None

    def _put(self, incoming: Incoming) -> None:
        """Into the outbox."""
        incoming.view_rows()
        with self._lock:
            incoming.identify(self._submissions)
            assert incoming.batch is not None
            for submission, answered in incoming.answers:
                self._submissions.answer(submission, answered)
            self._outbox.put(incoming.batch)
        self._tend()
