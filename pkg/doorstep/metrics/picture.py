"""Series as a picture: time series over time, quantiles of sketches, in the style of all plots."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from doorstep._files import check_ending
from doorstep.errors import StateError
from doorstep.metrics.series import AnySeries, Counter, Sketch, TimeSeries
from doorstep.plots import figures

_COLUMNS = 2
_ROW_INCHES, _HEAD_INCHES = 2.0, 0.5
_FRACTIONS = np.linspace(0, 1, 201)
_MOST_NAMED = 6  # curves of a panel that a legend can name
_LETTERS = 24  # of a name in it
_WIDE = 30  # largest to least of the values in a panel, from which on its axis is logarithmic


def plot_series(path: str | os.PathLike[str], series: Sequence[AnySeries]) -> None:
    check_ending(path, figures.ENDINGS)
    panels: dict[str, list[Any]] = {}
    for one in series:
        if not isinstance(one, Counter) and one.count:
            panels.setdefault(one.name, []).append(one)
    if not panels:
        raise StateError("no time series and no sketch has a value", hint="let an engine play first")
    figures.save_figure(_figure(list(panels.values()), series), path)


@figures.styled()
def _figure(panels: list[list[Any]], series: Sequence[AnySeries]) -> Any:
    rows = -(-len(panels) // _COLUMNS)
    figure = figures.new_figure(_HEAD_INCHES + _ROW_INCHES * rows)
    axes = figure.subplots(rows, _COLUMNS, squeeze=False).flat
    begin = min((int(one.points()["start_ns"][0]) for panel in panels for one in panel if _is_timed(one)), default=0)
    for panel, axis in zip(panels, axes, strict=False):
        axis.set_title(panel[0].name)
        for one, name, colour in zip(panel, _names(panel), figures.colours(len(panel)), strict=True):
            _draw(axis, one, begin, color=colour, label=name)
        if _is_wide(panel):
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        if 1 < len(panel) <= _MOST_NAMED:
            axis.legend(fontsize=7)
    for axis in axes:  # those left over
        axis.set_visible(False)
    figures.add_caption(figure, _counts(series))
    return figure


def _is_timed(series: AnySeries) -> bool:
    return isinstance(series, TimeSeries)


def _is_wide(panel: list[Any]) -> bool:
    """Whether curves of quantiles need a logarithmic axis."""
    low, high = min(one.minimum for one in panel), max(one.maximum for one in panel)
    return not _is_timed(panel[0]) and 0 < low < high / _WIDE


def _names(panel: list[Any]) -> list[str]:
    """The labels in which the series of a panel differ."""
    labels = {label for one in panel for label in one.labels}
    differing = sorted(label for label in labels if len({one.labels.get(label, "") for one in panel}) > 1)
    return [figures.shortened(", ".join(one.labels.get(label, "") for label in differing), _LETTERS) for one in panel]


def _draw(axis: Any, series: Sketch | TimeSeries, begin_ns: int, **style: Any) -> None:
    if isinstance(series, Sketch):
        axis.plot(100 * _FRACTIONS, series.quantiles(_FRACTIONS), **style)
        axis.set_xlabel("quantile, %")
        return
    points = series.points()
    seconds = (points["start_ns"] + points["length_ns"] / 2 - begin_ns) / 1e9
    axis.plot(seconds, points["sum"] / points["count"], marker="o" if len(points) == 1 else None, **style)
    axis.set_xlabel(figures.AXES["seconds"])
    axis.set_ylim(bottom=0)


def _counts(series: Sequence[AnySeries]) -> list[str]:
    """A sentence with the sums of counters by their names."""
    sums: dict[str, int] = {}
    for one in series:
        if isinstance(one, Counter):
            sums[one.name] = sums.get(one.name, 0) + one.value
    return ["; ".join(f"{name} {value:,}" for name, value in sums.items())]
