"""`MetricsStore`: series by their names and labels, and a trace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, TypeVar, final

from doorstep._arguments import check_integer, check_text, refuse
from doorstep._copies import Owner
from doorstep._native._generated import MAX_TRACE_EVENTS, SeriesKind
from doorstep._native.metrics import MetricsHandle
from doorstep.errors import StateError
from doorstep.metrics import exposition
from doorstep.metrics.series import AnySeries, Counter, Sketch, TimeSeries, labels_text, wrap
from doorstep.metrics.trace import write_events

_Kind = TypeVar("_Kind", Counter, Sketch, TimeSeries)
_KINDS = {Counter: SeriesKind.COUNTER, Sketch: SeriesKind.SKETCH, TimeSeries: SeriesKind.TIME_SERIES}


@final
class MetricsStore(Owner, remedy="copy its numbers: to_json()"):
    """Series by their names and labels. Any thread may use it; engines record in it without locks.

    >>> import doorstep
    >>> from doorstep.metrics import MetricsStore
    >>> store = MetricsStore()
    >>> with doorstep.RolloutEngine(doorstep.SimulatorConfig(64), metrics=store) as engine:
    ...     ids = engine.submit_batch(range(100), max_steps=20)
    ...     assert engine.drain()
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
        self._trace = check_integer("trace", trace, 0, MAX_TRACE_EVENTS)
        self._handle = MetricsHandle.create(self._trace)
        self._parts: dict[str, MetricsStore] = {}  # by their labels

    @classmethod
    def _of(cls, handle: MetricsHandle, trace: int) -> MetricsStore:
        store = cls.__new__(cls)
        store._trace, store._handle, store._parts = trace, handle, {}
        return store

    def __repr__(self) -> str:
        return f"MetricsStore({len(list(self))} series)"

    @property
    def native_handle(self) -> int:
        """The ds_metrics."""
        return self._handle.value

    # ---- Series

    def counter(self, name: str, /, description: str = "", **labels: object) -> Counter:
        """The counter with this name and exactly these labels, which is made if there is none.

        Raises:
            ArgumentError: the name is malformed, the series is of another kind, or there are too many.
        """
        return self._open(Counter, name, description, labels)

    def sketch(self, name: str, /, description: str = "", **labels: object) -> Sketch:
        """As `counter()`, a sketch."""
        return self._open(Sketch, name, description, labels)

    def time_series(self, name: str, /, description: str = "", **labels: object) -> TimeSeries:
        """As `counter()`, a time series."""
        return self._open(TimeSeries, name, description, labels)

    def _open(self, kind: type[_Kind], name: str, description: str, labels: dict[str, object]) -> _Kind:
        for field, text in (("name", name), ("description", description)):
            if "\0" in check_text(field, text):
                refuse(field, "a text without NUL", text)
        return kind(self._handle.open_series(_KINDS[kind], name, labels_text(labels), description))

    def __iter__(self) -> Iterator[AnySeries]:
        """All series, in the order in which they were made."""
        return map(wrap, self._handle.all_series())

    def labelled(self, **labels: object) -> MetricsStore:
        """A part of this store: series that are made in it have these labels too, and are in both. It is the same one
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
            ArgumentError: there is no label, a name is malformed, or they are too long.
        """
        text = labels_text(labels)
        if not text:
            refuse("labels", "at least one label, such as engine='train'", labels)
        if text not in self._parts:
            made = MetricsStore._of(self._handle.labelled(text), self._trace)
            self._parts.setdefault(text, made)
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
            refuse("name", "one of " + ", ".join(sorted({repr(series.name) for series in self})), name)
        others = {label for series in named for label in series.labels} - labels.keys()
        summed = MetricsStore()
        summed.merge(self, without=sorted(others))
        kind: Any = type(named[0])
        return summed._open(kind, name, named[0].description, labels)

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
        self._handle.merge(other.native_handle, [check_text("without", name) for name in without])

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
        """Writes what an engine did last as Chrome and Perfetto (https://ui.perfetto.dev) read it, whole or not at all:
        its passes, and the way of requests that record "trace".

        Raises:
            StateError: the store was made without a trace.
            ArgumentError, OSError: the file cannot be written.
        """
        if not self._trace:
            raise StateError("there is no trace", hint="make the engine with MetricsConfig(trace=100_000)")
        write_events(path, self._handle.trace())
