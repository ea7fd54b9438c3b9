"""What a store has recorded of one thing: a counter, a time series, or a sketch of quantiles."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from doorstep._arguments import check_integer, check_text, is_number, refuse
from doorstep._copies import Owner
from doorstep._native._generated import SKETCH_WINDOW_SECONDS, SeriesKind
from doorstep._native.metrics import SeriesHandle
from doorstep._native.rollouts import monotonic_ns

_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"\\": r"\\", '"': r"\"", "\n": r"\n"}
_CHARACTERS = {escape: character for character, escape in _ESCAPES.items()}


class _Series(Owner, remedy="copy its numbers"):
    """Any thread may use it. It outlives its store.

    Attributes:
        name: of the series.
        labels: by their names.
        description: a sentence, or "".
    """

    def __init__(self, handle: SeriesHandle) -> None:
        self._handle = handle
        info = handle.info()
        self.name = info.name.decode()
        self.labels = parse_labels(info.labels.decode())
        self.description = info.description.decode()

    @property
    def native_handle(self) -> int:
        """The ds_series."""
        return self._handle.value

    @property
    def count(self) -> int:
        """How many values were recorded; of a counter its number."""
        return int(self._handle.totals().count)

    def __repr__(self) -> str:
        labels = "".join(f", {name}={value!r}" for name, value in self.labels.items())
        return f"{type(self).__name__}({self.name!r}{labels})"


@final
class Counter(_Series):
    """A number that grows."""

    @property
    def value(self) -> int:
        return self.count

    def add(self, more: int = 1) -> None:
        """
        Raises:
            ArgumentError: `more` is no integer, 0 to 2**53.
        """
        self._handle.record(check_integer("more", more, 0, 2**53), 0)


class _Values(_Series):
    @property
    def sum(self) -> float:
        return float(self._handle.totals().sum)

    @property
    def mean(self) -> float:
        """0 without values, as `minimum` and `maximum`."""
        totals = self._handle.totals()
        return float(totals.sum / totals.count) if totals.count else 0.0

    @property
    def minimum(self) -> float:
        return float(self._handle.totals().minimum)

    @property
    def maximum(self) -> float:
        return float(self._handle.totals().maximum)


@final
class Sketch(_Values):
    """Quantiles of values within 1%, of all and of the last ones, in at most 120 KB however many there are. Values from
    2**-40 to 2**40 are told apart; smaller ones count as 0, larger ones as 2**40. Sketches of parts add up to that of
    the whole.

    >>> from doorstep.metrics import MetricsStore
    >>> waits = MetricsStore().sketch("wait_seconds")
    >>> for wait in (1, 2, 3):
    ...     waits.add(wait)
    >>> round(waits.quantile(0.5), 1), round(waits.quantile(0.5, seconds=10), 1)
    (2.0, 2.0)
    """

    def add(self, value: float) -> None:
        """
        Raises:
            ArgumentError: `value` is not finite, or negative.
        """
        self._handle.record(float(value), monotonic_ns())

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
        return self._handle.quantiles(np.asarray(fractions, np.float64).reshape(-1), _window_ns(seconds))


def _window_ns(seconds: float | None) -> int:
    if seconds is None:
        return 0
    if not is_number(seconds) or not 0 < seconds <= SKETCH_WINDOW_SECONDS:
        refuse("seconds", f"None or a number of seconds, more than 0 and at most {SKETCH_WINDOW_SECONDS}", seconds)
    return max(int(seconds * 1e9), 1)


@final
class TimeSeries(_Values):
    """Values over time: totals of equal spans, at most 512. Spans last 67 ms at first; when there are too many, they
    become twice as long and neighbours one."""

    def add(self, value: float, time_ns: int | None = None) -> None:
        """
        Args:
            time_ns: when it was, on `time.monotonic_ns()`; None: now.

        Raises:
            ArgumentError: `value` is not finite.
        """
        self._handle.record(float(value), monotonic_ns() if time_ns is None else time_ns)

    @property
    def last(self) -> float:
        """The latest value; 0 without one."""
        return float(self._handle.totals().last)

    def points(self) -> NDArray[Any]:
        """Records of the spans with values, in the order of time: `start_ns` (on `time.monotonic_ns()`), `length_ns`,
        `count`, `sum`, `minimum` and `maximum`."""
        return self._handle.points()


# Numbers of an engine, of any kind.
AnySeries: TypeAlias = Counter | Sketch | TimeSeries

_CLASSES: dict[int, type[AnySeries]] = {
    SeriesKind.COUNTER: Counter,
    SeriesKind.SKETCH: Sketch,
    SeriesKind.TIME_SERIES: TimeSeries,
}


def wrap(handle: SeriesHandle) -> AnySeries:
    return _CLASSES[handle.info().kind](handle)


# ---- Labels, as Prometheus writes them ----

def labels_text(labels: Mapping[str, object]) -> str:
    """In the order of their names.

    Raises:
        ArgumentError: UTF-8 cannot hold one.
    """
    checked = {check_text("labels", name): check_text(name, str(value)) for name, value in labels.items()}
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(checked.items()))


def _escaped(value: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in value)


def parse_labels(text: str) -> dict[str, str]:
    """The labels of a text that the library gave."""
    return {
        name: re.sub(r"\\.", lambda escape: _CHARACTERS[escape[0]], value) for name, value in _LABEL.findall(text)
    }
