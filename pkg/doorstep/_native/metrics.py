"""Stores of metrics and their series in the C API, each owned by a Python object with its handle."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native import _generated as native
from doorstep._native.calls import check, read_struct, read_value
from doorstep._native.handle import Handle, new_handle
from doorstep._native.library import load

POINT_DTYPE = np.dtype(native.SeriesPoint)
TRACE_EVENT_DTYPE = np.dtype(native.TraceEvent)


@final
class SeriesHandle(Handle):
    """One series of a store."""

    def __init__(self, value: int) -> None:
        super().__init__(value, load().ds_series_release)

    def info(self) -> native.SeriesInfo:
        return read_struct(load().ds_series_get_info, native.SeriesInfo, self.value)

    def totals(self) -> native.SeriesTotals:
        return read_struct(load().ds_series_get_totals, native.SeriesTotals, self.value)

    def record(self, value: float, time_ns: int) -> None:
        check(load().ds_series_record(self.value, value, time_ns))

    def quantiles(self, fractions: NDArray[np.float64], window_ns: int) -> NDArray[np.float64]:
        values = np.empty_like(fractions)
        function = load().ds_series_get_quantiles
        check(function(self.value, window_ns, fractions.ctypes.data, len(fractions), values.ctypes.data))
        return values

    def points(self) -> NDArray[Any]:
        points = np.empty(native.TIME_SERIES_POINTS, POINT_DTYPE)
        address = ctypes.cast(points.ctypes.data, ctypes.POINTER(native.SeriesPoint))
        count = read_value(load().ds_series_get_points, ctypes.c_uint64, self.value, len(points), address)
        found: NDArray[Any] = points[:count].copy()
        return found


@final
class MetricsHandle(Handle):
    """A store."""

    def __init__(self, value: int) -> None:
        super().__init__(value, load().ds_metrics_release)

    @classmethod
    def create(cls, trace_capacity: int) -> MetricsHandle:
        return cls(new_handle(load().ds_metrics_create, trace_capacity))

    def labelled(self, labels: str) -> MetricsHandle:
        """A part of the store."""
        return MetricsHandle(new_handle(load().ds_metrics_label, self.value, labels.encode()))

    def open_series(self, kind: native.SeriesKind, name: str, labels: str, description: str) -> SeriesHandle:
        texts = (text.encode() for text in (name, labels, description))
        return SeriesHandle(new_handle(load().ds_metrics_open_series, self.value, kind, *texts))

    def all_series(self) -> list[SeriesHandle]:
        count = read_value(load().ds_metrics_num_series, ctypes.c_uint64, self.value)
        get = load().ds_metrics_get_series
        return [SeriesHandle(new_handle(get, self.value, index)) for index in range(count)]

    def merge(self, source: int, without: Sequence[str]) -> None:
        check(load().ds_metrics_merge(self.value, source, ",".join(without).encode()))

    def trace(self) -> NDArray[Any]:
        """The events of all tracks, of TRACE_EVENT_DTYPE."""
        function = load().ds_metrics_get_trace
        events = np.empty(read_value(function, ctypes.c_uint64, self.value, 0, None), TRACE_EVENT_DTYPE)
        address = ctypes.cast(events.ctypes.data, ctypes.POINTER(native.TraceEvent))
        return events[: read_value(function, ctypes.c_uint64, self.value, len(events), address)]
