"""Outputs that were taken from the library together: as they come, and when their requests are known."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native._generated import EpisodeReason, OutputKind
from doorstep._native.rollouts import OUTPUT_DTYPE, EngineHandle, TakeCall
from doorstep.errors import StateError
from doorstep.rollouts.failures import CLOSED, FailureTexts
from doorstep.rollouts.readers import OwnThreads, Readers
from doorstep.rollouts.result import NO_ROWS, EpisodeResult, EpisodeStep, Rows, make_result, make_step, view_rows
from doorstep.rollouts.submissions import Promise, Submission, Submissions, index_of, number_of

AnyOutput: TypeAlias = EpisodeResult | EpisodeStep

_TIMES = ("submitted_ns", "started_ns", "ended_ns")
_COLUMNS = ("id", "tag", "continuation", "reason", "length", "replica", "state_hash", *_TIMES)


@functools.lru_cache
def columns_of(num_agents: int) -> np.dtype[Any]:
    """Of records of results, in place: a number in each, as tables have them."""
    fields: Any = OUTPUT_DTYPE.fields
    columns = {name: fields[name] for name in _COLUMNS}
    for name in ("returns", "max_y"):
        row, start = fields[name]
        columns |= {f"{name}_{agent}": (row.base, start + agent * row.base.itemsize) for agent in range(num_agents)}
    formats, offsets = zip(*columns.values(), strict=True)
    told: Any = {"names": list(columns), "formats": formats, "offsets": offsets, "itemsize": OUTPUT_DTYPE.itemsize}
    columns_type: np.dtype[Any] = np.dtype(told)
    return columns_type


class _Arrays(NamedTuple):
    """Of outputs: their records, the tags of the caller, which are results, the places of those that failed, what they
    record, and their submissions by number."""

    records: NDArray[Any]
    tags: NDArray[np.uint64]
    is_result: NDArray[np.bool_]
    failed: NDArray[np.intp]
    rows: Sequence[Rows]
    submissions: dict[int, Submission]

    @staticmethod
    def of(
        records: NDArray[Any], tags: NDArray[np.uint64], rows: Sequence[Rows], submissions: dict[int, Submission]
    ) -> _Arrays:
        is_result = records["kind"] == OutputKind.RESULT
        has_failed = is_result & (records["reason"] == EpisodeReason.FAILED) & (records["cause"] != CLOSED)
        return _Arrays(records, tags, is_result, np.flatnonzero(has_failed), rows, submissions)

    def part(self, places: NDArray[np.intp]) -> _Arrays:
        rows = [self.rows[place] for place in places.tolist()]
        return _Arrays.of(self.records[places], self.tags[places], rows, self.submissions)


@final
class OutputBatch:
    """A sequence of outputs; its slices share their memory."""

    __slots__ = ("_arrays", "_start", "_stop")

    def __init__(self, arrays: _Arrays, start: int, stop: int) -> None:
        self._arrays, self._start, self._stop = arrays, start, stop

    def __len__(self) -> int:
        return self._stop - self._start

    def __getitem__(self, part: slice) -> OutputBatch:
        start, stop, _ = part.indices(len(self))
        return OutputBatch(self._arrays, self._start + start, self._start + stop)

    @staticmethod
    def join(batches: Sequence[OutputBatch]) -> OutputBatch:
        parts = [batch._arrays.part(np.arange(batch._start, batch._stop)) for batch in batches]
        records, tags, _, _, rows, submissions = zip(*parts, strict=True)
        arrays = _Arrays.of(
            np.concatenate(records),
            np.concatenate(tags),
            [one for part in rows for one in part],
            {number: one for part in submissions for number, one in part.items()},
        )
        return OutputBatch(arrays, 0, len(arrays.tags))

    @property
    def num_results(self) -> int:
        """The others are steps."""
        return int(np.count_nonzero(self._arrays.is_result[self._start : self._stop]))

    @property
    def num_before_failure(self) -> int:
        """The outputs before the first of an episode that failed; all, if none has."""
        failed = self._arrays.failed
        place = int(np.searchsorted(failed, self._start)) if len(failed) else 0
        return min(int(failed[place]), self._stop) - self._start if place < len(failed) else len(self)

    def error(self, failures: FailureTexts) -> StateError | None:
        """Of the first output, if its episode failed."""
        return None if self.num_before_failure else self._error(self._start, failures)

    def _error(self, place: int, failures: FailureTexts) -> StateError:
        return failures.error_of(self._output(place, failures), int(self._arrays.records[place]["cause"]))

    def errors(self, failures: FailureTexts) -> dict[int, StateError]:
        """Of episodes that failed, by their places."""
        failed = self._arrays.failed
        own = failed[(failed >= self._start) & (failed < self._stop)].tolist()
        return {place - self._start: self._error(place, failures) for place in own}

    def results(self, columns: np.dtype[Any]) -> NDArray[Any] | None:
        """The records of results; None if there are none. columns: see `columns_of()`."""
        is_result = self._arrays.is_result[self._start : self._stop]
        records: NDArray[Any] = self._arrays.records[self._start : self._stop][is_result]
        records["tag"] = self._arrays.tags[self._start : self._stop][is_result]
        return records.view(columns) if len(records) else None

    def outputs(self, failures: FailureTexts) -> list[AnyOutput]:
        return [self._output(place, failures) for place in range(self._start, self._stop)]

    def _output(self, place: int, failures: FailureTexts) -> AnyOutput:
        record, rows = self._arrays.records[place], self._arrays.rows[place]
        tag = int(record["tag"])
        request = self._arrays.submissions[number_of(tag)].request(index_of(tag))
        if not self._arrays.is_result[place]:
            return make_step(record, request, rows)
        error = failures.text_of(int(record["reason"]), int(record["cause"]))
        return make_result(record, request, rows, error)

    def promises(self) -> list[Promise]:
        """Those of all requests, where all have one."""
        tags = self._arrays.records["tag"][self._start : self._stop].tolist()
        return [self._arrays.submissions[number_of(tag)].future(index_of(tag)) for tag in tags]


@final
class Incoming:
    """Outputs that a call has taken. Each step on their way is done once, and goes on where it stopped if an exception
    has ended it.

    Attributes:
        answers: how many requests of each submission have been answered with these.
        batch: the outputs.
    """

    def __init__(self, call: TakeCall) -> None:
        self.call = call
        self.answers: list[tuple[Submission, int]] = []
        self.batch: OutputBatch | None = None
        self._rows: list[Rows] = []

    def __len__(self) -> int:
        return len(self.call.outputs)

    def view_rows(self) -> None:
        """Finds what is recorded, whose memory is then that of the views."""
        if not self._rows:
            outputs, rows = self.call.outputs, [NO_ROWS] * len(self)
            for place in np.flatnonzero(outputs["data"]).tolist():
                rows[place] = view_rows(outputs[place], self.call.data(place))
            self._rows = rows
        self.call.give_data()

    def identify(self, submissions: Submissions) -> None:
        """Finds the requests."""
        if self.batch is not None:
            return
        records = self.call.outputs
        is_result = records["kind"] == OutputKind.RESULT
        tags = np.empty(len(records), np.uint64)
        found, answers = {}, []
        for submission, places, indices in submissions.find_all(records["tag"]):
            found[submission.number] = submission
            answers.append((submission, submission.answered + int(np.count_nonzero(is_result[places]))))
            tags[places] = submission.tags(indices)
        batch = OutputBatch(_Arrays.of(records, tags, self._rows, found), 0, len(records))
        self.batch, self.answers = batch, answers


@dataclass(eq=False, repr=False)
class Receiver:
    """What takes outputs from the library: for calls, or for promises.

    Attributes:
        _threads: the engine's own, in which nothing waits.
        _tend: called in waits, and when requests have been answered.
        _lock: guards policies and submissions.
        _readers: refuse waits that would not end.
        _raises: whether a reader gets the error of an episode that failed, and not its result.
    """

    _engine: EngineHandle
    _failures: FailureTexts
    _threads: OwnThreads
    _tend: Callable[[], None]
    _lock: threading.RLock
    _submissions: Submissions
    _readers: Readers
    _raises: bool

    def __post_init__(self) -> None:
        """Makes what a class has of its own."""
