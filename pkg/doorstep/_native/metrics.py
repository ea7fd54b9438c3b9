"""Stores of metrics in the C API, each owned by a Python object with its handle."""

from __future__ import annotations

import ctypes
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from doorstep._native import _generated as native
from doorstep._native.calls import read_struct, read_value
from doorstep._native.handle import Handle, new_handle
from doorstep._native.library import load

ROW_DTYPES = {
    native.SeriesKind.COUNTER: np.dtype(np.uint8),
    native.SeriesKind.SKETCH: np.dtype(native.SketchCount),
    native.SeriesKind.TIME_SERIES: np.dtype(native.SeriesPoint),
    native.SeriesKind.TRACE: np.dtype(native.TraceEvent),
}


@final
class MetricsHandle(Handle):
    """A store."""

    def __init__(self, value: int) -> None:
        super().__init__(value, load().ds_metrics_release)

    @classmethod
    def create(cls, trace_capacity: int) -> MetricsHandle:
        return cls(new_handle(load().ds_metrics_create, trace_capacity))

    def num_series(self) -> int:
        count: int = read_value(load().ds_metrics_num_series, ctypes.c_uint64, self.value)
        return count

    def series(self, index: int) -> native.SeriesInfo:
        return read_struct(load().ds_metrics_get_series, native.SeriesInfo, self.value, index)

    def rows(self, index: int, info: native.SeriesInfo) -> NDArray[Any]:
        """What a series has recorded, of the dtype of its kind."""
        rows = np.empty(info.most_rows, ROW_DTYPES[native.SeriesKind(info.kind)])
        function, address = load().ds_metrics_get_rows, rows.ctypes.data
        return rows[: read_value(function, ctypes.c_uint64, self.value, index, len(rows), address)]
