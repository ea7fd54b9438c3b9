"""`MetricsStore`: series by their names and labels, and a trace."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, final

import numpy as np

from doorstep._arguments import check_integer, check_text, refuse
from doorstep._copies import Owner
from doorstep._native._generated import MAX_TRACE_EVENTS, Metric, SeriesKind
from doorstep._native.metrics import ROW_DTYPES, MetricsHandle
from doorstep.errors import StateError
from doorstep.metrics import exposition
from doorstep.metrics.recorded import DESCRIPTIONS, KINDS, Recorded
from doorstep.metrics.series import AnySeries, Counter, Sketch, TimeSeries, labels_text, lock
from doorstep.metrics.trace import write_events

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _check_name(field: str, name: str) -> None:
    if not _NAME.fullmatch(check_text(field, name)):
        refuse(field, "letters, digits and underscores, no digit first", name)


class _Table:
    """The series of a store and of its parts, in the order in which they were made."""

    def __init__(self) -> None:
        self.recorded: list[Recorded] = []  # of the store, and of each part
        self._series: dict[tuple[str, str], AnySeries] = {}

    def open(self, kind: type[Any], name: str, description: str, labels: dict[str, str]) -> Any:
        """Finds or makes the series, which is of this kind."""
        _check_name("name", name)
        for label in labels:
            _check_name("labels", label)
        key = name, labels_text(labels)
        with lock:
            other = next((one for (known, _), one in self._series.items() if known == name), None)
            if other is not None and not isinstance(other, kind):
                refuse("name", f"another name, since {name} is a {type(other).__name__}", name)
            return self._series.setdefault(key, kind(name, labels, description))

    def all(self) -> list[AnySeries]:
        """With what engines have begun to record since."""
        with lock:
            for recorded in self.recorded:
                for index, info in recorded.new_series():
                    if info.kind != SeriesKind.TRACE:
                        metric, labels = Metric(info.metric), recorded.labels_of(info)
                        one = self.open(KINDS[info.kind], metric.name.lower(), DESCRIPTIONS[metric], labels)
                        one._sources |= {(recorded.handle, index)}
                    recorded.num_seen = index + 1
            return list(self._series.values())


@final
class MetricsStore(Owner, remedy="copy its numbers: to_json()"):
    """Series by their names and labels. Any thread may use it; engines record in it without locks.

    >>> import doorstep
    >>> from doorstep.metrics import MetricsStore
    >>> store = MetricsStore()
    >>> with doorstep.RolloutEngine(doorstep.SimulatorConfig(64), metrics=store) as engine:
    ...     results = engine.run(doorstep.EpisodeRequest(seed=seed, max_steps=20) for seed in range(100))
    >>> store.total("requests_answered").value, store.total("requests_answered", reason="time").value
    (100, 100)
    >>> 0 < store.total("queue_wait_seconds").quantile(0.5) < 10
    True

    Args:
        trace: as in `MetricsConfig`.

    Raises:
        ArgumentError: `trace` is out of range.
    """

    def __init__(self, trace: int = 0) -> None:
        events = check_integer("trace", trace, 0, MAX_TRACE_EVENTS)
        self._set(MetricsHandle.create(events), events, _Table(), {})

    def _set(self, handle: MetricsHandle, trace: int, table: _Table, labels: dict[str, str]) -> MetricsStore:
        self._handle, self._trace, self._table, self._labels = handle, trace, table, labels
        self._parts: dict[str, MetricsStore] = {}  # by their labels
        self._recorded = Recorded(handle, labels)
        table.recorded.append(self._recorded)
        return self

    @classmethod
    def _of(cls, handle: MetricsHandle, trace: int) -> MetricsStore:
        return cls.__new__(cls)._set(handle, trace, _Table(), {})

    def __repr__(self) -> str:
        return f"MetricsStore({len(list(self))} series)"

    @property
    def native_handle(self) -> int:
        """The ds_metrics, in which an engine records."""
        return self._handle.value

    def series_of_policy(self, name: str) -> int:
        """The number under which an engine records the times of policies of this name, see ds_engine_set_policy().
        1,023 names have one of their own; all others have one together, and are called "others"."""
        with lock:
            return self._recorded.series_of_policy(check_text("name", name))

    # ---- Series

    def counter(self, name: str, /, description: str = "", **labels: object) -> Counter:
        """Finds or makes the counter with this name and exactly these labels.

        Raises:
            ArgumentError: the name or a label is malformed, or series of this name are of another kind.
        """
        opened: Counter = self._open(Counter, name, description, labels)
        return opened

    def sketch(self, name: str, /, description: str = "", **labels: object) -> Sketch:
        """As `counter()`, a sketch."""
        opened: Sketch = self._open(Sketch, name, description, labels)
        return opened

    def time_series(self, name: str, /, description: str = "", **labels: object) -> TimeSeries:
        """As `counter()`, a time series."""
        opened: TimeSeries = self._open(TimeSeries, name, description, labels)
        return opened

    def _open(self, kind: type[Any], name: str, description: str, labels: dict[str, object]) -> Any:
        self._table.all()
        return self._table.open(kind, name, check_text("description", description), self._with_own(labels))

    def _with_own(self, labels: dict[str, object]) -> dict[str, str]:
        for label in labels.keys() & self._labels.keys():
            refuse(label, "left out, since it is a label of the store", labels[label])
        return {**self._labels, **{label: str(value) for label, value in labels.items()}}

    def __iter__(self) -> Iterator[AnySeries]:
        """All series, in the order in which they were made."""
        return (one for one in self._table.all() if self._labels.items() <= one.labels.items())

    def labelled(self, **labels: object) -> MetricsStore:
        """A part of this store: the series that have these labels. What is made in it has them too. It is the same one
        for the same labels. So that engines which share a store can be told apart:

        >>> import doorstep
        >>> from doorstep.metrics import MetricsStore
        >>> store = MetricsStore()
        >>> for name in ("train", "test"):
        ...     with doorstep.RolloutEngine(num_worlds=16, metrics=store.labelled(engine=name)) as engine:
        ...         results = engine.run(doorstep.EpisodeRequest(seed=seed, max_steps=5) for seed in range(10))
        >>> store.total("requests_answered").value, store.total("requests_answered", engine="test").value
        (20, 10)
        >>> engine.metrics.total("requests_answered").value
        10

        Args:
            labels: at least one; names that the series of an engine do not have.

        Raises:
            ArgumentError: there is no label, or a name is malformed, or it is taken.
        """
        text, reserved = labels_text(labels), ("scheduler", "replica", "reason", "cause", "policy", "kind")
        if not text:
            refuse("labels", "at least one label, such as engine='train'", labels)
        for label in labels:
            _check_name("labels", label)
            if label in reserved:
                refuse("labels", "no labels of engines: " + ", ".join(reserved), label)
        with lock:
            if text not in self._parts:
                handle, part = MetricsHandle.create(self._trace), MetricsStore.__new__(MetricsStore)
                self._parts[text] = part._set(handle, self._trace, self._table, self._with_own(labels))
            return self._parts[text]

    def total(self, name: str, /, **labels: object) -> Any:
        """What all series with this name and these labels have recorded together, whatever their other labels are: a
        `Counter`, `Sketch` or `TimeSeries`, as they are.

        Raises:
            ArgumentError: no series has this name.
        """
        check_text("name", name)
        named = [series for series in self if series.name == name]
        if not named:
            known = ", ".join(sorted({repr(series.name) for series in self}))
            refuse("name", f"one of {known[:1000]}", name)
        asked = {label: str(value) for label, value in labels.items()}
        summed = type(named[0])(name, asked, named[0].description)
        summed._merge(*(one._samples() for one in named if asked.items() <= one.labels.items()))
        return summed

    def merge(self, other: MetricsStore, without: tuple[str, ...] | list[str] = ()) -> None:
        """Adds what another store has recorded, as it is now; not its trace.

        Args:
            other: the store.
            without: labels that are left out: series that differ in nothing else become one.

        Raises:
            ArgumentError: `other` is no other store, or a part of the same one, see `labelled()`; or a series of it is
                of another kind here.
        """
        if not isinstance(other, MetricsStore):
            refuse("other", "a MetricsStore", other)
        if not isinstance(without, (tuple, list)):
            refuse("without", "a tuple or list of names of labels", without)
        if other._table is self._table:
            refuse("other", "another store, not the same store or a part of it", other)
        left_out = {check_text("without", name) for name in without}
        for one in other:
            labels: dict[str, object] = {label: one.labels[label] for label in one.labels.keys() - left_out}
            self._open(type(one), one.name, one.description, labels)._merge(one._samples())

    # ---- Texts

    def to_prometheus(self) -> str:
        """All series in the text format of Prometheus: sketches as summaries, time series as gauges with their latest
        values."""
        return exposition.to_prometheus(list(self))

    def to_json(self) -> str:
        """All series, with quantiles of sketches and points of time series, as JSON."""
        return exposition.to_json(list(self))

    # ---- Files

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes a table with a row for each series, whole or not at all: its name, type and labels, a column for each
        name of a label, then count, sum, mean, minimum, maximum, last, and the quantiles 0.5, 0.9 and 0.99; what a type
        does not have is empty.

        Raises:
            ArgumentError, OSError: the file cannot be written.
        """
        exposition.write_csv(path, list(self))

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws every time series over time, and the quantiles of every sketch: what differs in `replica` and
        `scheduler` is added up.

        Args:
            path: a file that ends in .png, .svg or .pdf; it is replaced whole or not at all.

        Raises:
            ArgumentError: another ending.
            StateError: no time series and no sketch has a value.
            LibraryError: matplotlib is missing: pip install "doorstep[plot]".
            OSError: the file cannot be written.
        """
        from doorstep.metrics.picture import plot_series  # here: plots import evaluations, and these metrics

        summed = MetricsStore()
        summed.merge(self, without=("replica", "scheduler"))
        plot_series(path, list(summed))

    # ---- Trace

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes what engines did last as Chrome and Perfetto (https://ui.perfetto.dev) read it, whole or not at all:
        their passes, and the way of requests that record "trace".

        Raises:
            StateError: the store was made without a trace.
            ArgumentError, OSError: the file cannot be written.
        """
        if not self._trace:
            raise StateError("there is no trace", hint="make the engine with MetricsConfig(trace=100_000)")
        tracks = [np.empty(0, ROW_DTYPES[SeriesKind.TRACE])]
        for recorded in self._table.recorded:
            tracks += recorded.tracks()
        for number, events in enumerate(tracks):
            events["track"] = number
        write_events(path, np.concatenate(tracks))
