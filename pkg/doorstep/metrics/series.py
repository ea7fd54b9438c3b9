"""What a store has recorded of one thing: a counter, a time series, or a sketch of quantiles."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_integer, check_text, is_number, refuse
from doorstep._copies import Owner
from doorstep._native import _generated as native
from doorstep._native._generated import SeriesKind
from doorstep._native.metrics import ROW_DTYPES, MetricsHandle
from doorstep._native.rollouts import monotonic_ns

# Held by who changes series or stores; a fork waits for it.
lock = threading.RLock()
os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_MOST_PENDING = 1000
_FIRST_LOG2 = 26  # of the nanoseconds of a time series' first spans
_BINS = native.SKETCH_OCTAVES * native.SKETCH_BINS_PER_OCTAVE

# As in doorstep.h: the edges of the bins, and what their values count as.
_octaves, _places = np.divmod(np.arange(_BINS + 1), native.SKETCH_BINS_PER_OCTAVE)
_factors = 3 - np.sqrt(4 - 3 * _places / native.SKETCH_BINS_PER_OCTAVE)
_EDGES = np.ldexp(_factors, _octaves + native.SKETCH_LOWEST_EXPONENT)
_VALUES = np.concatenate([[0], 2 * _EDGES[1:] * _EDGES[:-1] / (_EDGES[1:] + _EDGES[:-1])])


def labels_text(labels: Mapping[str, object]) -> str:
    """As Prometheus writes them, in the order of their names.

    Raises:
        ArgumentError: UTF-8 cannot hold one.
    """
    checked = {check_text("labels", name): check_text(name, str(value)) for name, value in labels.items()}
    return ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in sorted(checked.items()))


class Samples(NamedTuple):
    """Totals of values, as in ds_series_info, and the rows of a series, those of the library."""

    rows: NDArray[Any]
    number: int = 0
    sum: float = 0.0
    minimum: float = 0.0
    maximum: float = 0.0
    last: float = 0.0
    last_ns: int = 0


class _Series(Owner, remedy="copy its numbers"):
    """Any thread may use it. It outlives its store.

    Attributes:
        name: of the series.
        labels: by their names.
        description: a sentence, or "".
    """

    kind: ClassVar[SeriesKind]

    def __init__(self, name: str, labels: Mapping[str, str], description: str) -> None:
        self.name, self.labels, self.description = name, dict(sorted(labels.items())), description
        self._own = Samples(np.empty(0, ROW_DTYPES[self.kind]))  # of users, and of stores that were merged
        self._pending: list[tuple[float, int]] = []  # values of users to be added to it, and their times
        self._sources: frozenset[tuple[MetricsHandle, int]] = frozenset()  # of engines

    @property
    def count(self) -> int:
        """How many values were recorded; of a counter its number."""
        return self._samples().number

    def __repr__(self) -> str:
        labels = "".join(f", {name}={value!r}" for name, value in self.labels.items())
        return f"{type(self).__name__}({self.name!r}{labels})"

    def _record(self, value: float, time_ns: int) -> None:
        self._pending.append((value, time_ns))
        if len(self._pending) >= _MOST_PENDING:
            self._merge()

    def _merge(self, *others: Samples) -> Samples:
        """Adds samples to those of users; returns these."""
        with lock:
            taken = self._pending[:]
            count = len(taken)
            own = self._add_up(self._own, *([self._of(taken)] if taken else []), *others)
            self._own = own  # one of both without the other would lose or repeat values
            del self._pending[:count]
            return own

    def _samples(self) -> Samples:
        """All that was recorded, as it is now."""
        read = []
        for handle, index in self._sources:
            info = handle.series(index)
            totals = (info.count, info.sum, info.minimum, info.maximum, info.last, info.last_ns)
            read.append(Samples(handle.rows(index, info).copy(), *totals))
        return self._add_up(self._merge(), *read)

    def _add_up(self, *parts: Samples) -> Samples:
        found = [part for part in parts if part.number]
        if len(found) < 2:
            return found[0] if found else parts[0]
        count, total = sum(part.number for part in found), math.fsum(part.sum for part in found)
        low, high = min(part.minimum for part in found), max(part.maximum for part in found)
        latest = max(found, key=lambda part: part.last_ns)
        rows = self._fold(np.concatenate([part.rows for part in found]))
        return Samples(rows, count, total, low, high, latest.last, latest.last_ns)

    def _of(self, taken: list[tuple[float, int]]) -> Samples:
        values, times = np.array(taken, object).T
        floats, times = values.astype(np.float64), times.astype(np.int64)
        last = len(times) - 1 - int(times[::-1].argmax())
        total, low, high, latest = map(float, (floats.sum(), floats.min(), floats.max(), floats[last]))
        rows = self._fold(self._rows_of(floats, times))
        return Samples(rows, len(taken), total, low, high, latest, int(times[last]))

    @staticmethod
    def _fold(rows: NDArray[Any]) -> NDArray[Any]:
        """Makes one of rows that add up."""
        return rows

    @staticmethod
    def _rows_of(values: NDArray[np.float64], times: NDArray[np.int64]) -> NDArray[Any]:
        raise NotImplementedError


@final
class Counter(_Series):
    """A number that grows."""

    kind = SeriesKind.COUNTER

    @property
    def value(self) -> int:
        return self.count

    def add(self, more: int = 1) -> None:
        """
        Raises:
            ArgumentError: `more` is no integer, 0 to 2**53.
        """
        self._record(check_integer("more", more, 0, 2**53), 0)

    def _of(self, taken: list[tuple[float, int]]) -> Samples:
        return Samples(self._own.rows, int(sum(more for more, _ in taken)))


class _Values(_Series):
    @property
    def sum(self) -> float:
        return self._samples().sum

    @property
    def mean(self) -> float:
        """0 without values, as `minimum` and `maximum`."""
        samples = self._samples()
        return samples.sum / samples.number if samples.number else 0.0

    @property
    def minimum(self) -> float:
        return self._samples().minimum

    @property
    def maximum(self) -> float:
        return self._samples().maximum


@final
class Sketch(_Values):
    """Quantiles of values within 1%, of all and of the last ones, in at most 440 KB however many there are. Values from
    2**-40 to 2**40 are told apart; smaller ones count as 0, larger ones as 2**40. Sketches of parts add up to that of
    the whole.

    >>> from doorstep.metrics import MetricsStore
    >>> waits = MetricsStore().sketch("wait_seconds")
    >>> for wait in (1, 2, 3):
    ...     waits.add(wait)
    >>> round(waits.quantile(0.5), 1), round(waits.quantile(0.5, seconds=10), 1)
    (2.0, 2.0)
    """

    kind = SeriesKind.SKETCH

    def add(self, value: float) -> None:
        """
        Raises:
            ArgumentError: `value` is not finite, or negative.
        """
        if not 0 <= (number := float(value)) < math.inf:
            refuse("value", "a finite number, at least 0", value)
        self._record(number, monotonic_ns())

    def quantile(self, fraction: float, seconds: float | None = None) -> float:
        """The value at place floor(fraction * (count - 1)) of all in ascending order, within 1%; 0 without values.

        Args:
            fraction: 0 to 1; 0.5 is the median.
            seconds: more than 0 and at most 60: of the values of the last so many seconds, and of up to 8.6 seconds
                before, as values are counted by spans of that length; None: of all.

        Raises:
            ArgumentError: `fraction` or `seconds` is out of range.
        """
        return float(self.quantiles([fraction], seconds)[0])

    def quantiles(
        self, fractions: Sequence[float] | NDArray[np.float64], seconds: float | None = None
    ) -> NDArray[np.float64]:
        """The quantiles of n fractions, float64 [n], at one moment; otherwise as `quantile()`."""
        asked = np.asarray(fractions, np.float64).reshape(-1)
        if not ((asked >= 0) & (asked <= 1)).all():
            refuse("fractions", "numbers, 0 to 1", fractions)
        if seconds is not None and (not is_number(seconds) or not 0 < seconds <= native.SKETCH_WINDOW_SECONDS):
            most = native.SKETCH_WINDOW_SECONDS
            refuse("seconds", f"None or a number of seconds, more than 0 and at most {most}", seconds)
        samples = self._samples()
        since = 0 if seconds is None else max(monotonic_ns() - int(seconds * 1e9), 0) >> native.SKETCH_SPAN_LOG2
        spans = samples.rows["span"]
        chosen = samples.rows[spans < 0 if seconds is None else spans >= since]
        below = np.bincount(chosen["bin"], chosen["number"], _BINS + 1).cumsum()
        if below[-1] == 0:
            return np.zeros_like(asked)
        bins = np.searchsorted(below, np.floor(asked * (below[-1] - 1)), "right")
        return np.where(bins == 0, 0.0, _VALUES[bins].clip(samples.minimum, samples.maximum))

    @staticmethod
    def _rows_of(values: NDArray[np.float64], times: NDArray[np.int64]) -> NDArray[Any]:
        rows: NDArray[Any] = np.ones((2, len(values)), ROW_DTYPES[SeriesKind.SKETCH])
        rows["bin"] = np.searchsorted(_EDGES[:-1], values, "right")
        rows["span"] = [np.full(len(times), -1), times >> native.SKETCH_SPAN_LOG2]
        return rows.reshape(-1)

    @staticmethod
    def _fold(rows: NDArray[Any]) -> NDArray[Any]:
        """Without the spans that have ended before the longest window."""
        rows = rows[(rows["span"] < 0) | (rows["span"] > rows["span"].max() - native.SKETCH_SPANS)]
        keys, group = np.unique(rows["span"].astype(np.int64) << 32 | rows["bin"], return_inverse=True)
        folded = np.zeros(len(keys), rows.dtype)
        folded["span"], folded["bin"] = keys >> 32, keys & 0xFFFFFFFF
        np.add.at(folded["number"], group, rows["number"])
        return folded


@final
class TimeSeries(_Values):
    """Values over time: totals of equal spans, at most 512. Spans last 67 ms at first; when there are too many, they
    become twice as long and neighbours one."""

    kind = SeriesKind.TIME_SERIES

    def add(self, value: float, time_ns: int | None = None) -> None:
        """
        Args:
            time_ns: when it was, on `time.monotonic_ns()`; None: now.

        Raises:
            ArgumentError: `value` is not finite, or `time_ns` no such time.
        """
        if not math.isfinite(number := float(value)):
            refuse("value", "a finite number", value)
        self._record(number, monotonic_ns() if time_ns is None else check_integer("time_ns", time_ns, 0, 2**63 - 1))

    @property
    def last(self) -> float:
        """The latest value; 0 without one."""
        return self._samples().last

    def points(self) -> NDArray[Any]:
        """Records of the spans with values, in the order of time: `start_ns` (on `time.monotonic_ns()`), `length_ns`,
        `count`, `sum`, `minimum` and `maximum`."""
        points: NDArray[Any] = self._samples().rows.copy()
        return points

    @staticmethod
    def _rows_of(values: NDArray[np.float64], times: NDArray[np.int64]) -> NDArray[Any]:
        rows = np.ones(len(values), ROW_DTYPES[SeriesKind.TIME_SERIES])
        rows["start_ns"], rows["length_ns"] = times >> _FIRST_LOG2 << _FIRST_LOG2, 1 << _FIRST_LOG2
        for name in ("sum", "minimum", "maximum"):
            rows[name] = values
        return rows

    @staticmethod
    def _fold(rows: NDArray[Any]) -> NDArray[Any]:
        starts, log2 = rows["start_ns"], int(rows["length_ns"].max()).bit_length() - 1
        while (starts.max() >> log2) - (starts.min() >> log2) >= native.TIME_SERIES_POINTS:
            log2 += 1
        spans, group = np.unique(starts >> log2, return_inverse=True)
        folded = np.zeros(len(spans), rows.dtype)
        folded["start_ns"], folded["length_ns"] = spans << log2, 1 << log2
        folded["minimum"], folded["maximum"] = math.inf, -math.inf
        folds = {"count": np.add, "sum": np.add, "minimum": np.minimum, "maximum": np.maximum}
        for name, fold in folds.items():
            fold.at(folded[name], group, rows[name])
        return folded


# Numbers of an engine, of any kind.
AnySeries: TypeAlias = Counter | Sketch | TimeSeries
