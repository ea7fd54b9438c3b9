"""Heat maps of the success in each level while runs train: a row for each level, from pale to dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from doorstep.plots import figures
from doorstep.plots.figures import WIDTH, Floats, in_short, shortened
from doorstep.plots.runs import Run

Groups: TypeAlias = dict[str, list[Run]]  # by label

_MOST_CELLS = 48  # side by side
_MOST_MAPS = 5  # side by side
_ROW_INCHES, _HEAD_INCHES = 0.16, 0.85
_LAST = 10  # figures are over this part of the updates
_NAME_LETTERS, _TITLE_LETTERS = 22, 8  # of a level; per inch of a title


def by_levels(groups: Groups) -> list[Groups]:
    """Groups of runs with tables of levels, those together that have a level in common."""
    parts: list[Groups] = []
    for label, runs in groups.items():
        names = _names({label: runs})
        part = next((part for part in parts if names & _names(part)), None)
        if part is not None:
            part[label] = runs
        elif names:
            parts.append({label: runs})
    return parts


def level_names(groups: Groups) -> list[str]:
    """All levels of runs' tables, those first that are solved most often at the end."""
    ends = {name: [last_success(runs, name) for runs in groups.values()] for name in _names(groups)}
    return sorted(ends, key=lambda name: (-np.nansum(ends[name]), name))


def _names(groups: Groups) -> set[str]:
    return {name for runs in groups.values() for run in runs for name in run.levels}


def last_success(runs: Sequence[Run], name: str) -> float:
    """The share of a level's episodes that succeeded in the last tenth of the updates of runs; NaN if none ended."""
    counts = [run.levels[name][:, -max(len(run.updates) // _LAST, 1) :] for run in runs if name in run.levels]
    episodes, successes = sum((count.sum(axis=1) for count in counts), np.zeros(2))
    return float(successes / episodes) if episodes else float("nan")


def level_map_inches(groups: Groups) -> float:
    """The height of what `draw_level_maps()` draws."""
    return -(-len(groups) // _MOST_MAPS) * (_HEAD_INCHES + _ROW_INCHES * len(_names(groups)))


def draw_level_maps(figure: Any, groups: Groups, colour_of: Mapping[str, Any], x: str, last: float) -> None:
    """A map for each group of runs, with the same levels and the same x up to `last`."""
    names = level_names(groups)
    rows = -(-len(groups) // _MOST_MAPS)
    columns = -(-len(groups) // rows)
    figure.suptitle("success in each level", x=0.01, ha="left", fontsize=9.5, fontweight="bold")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).reshape(-1)
    updates = max(len(run.updates) for runs in groups.values() for run in runs)
    edges = np.linspace(0, last, min(_MOST_CELLS // max(columns, 2), updates) + 1)
    for axis, (label, runs) in zip(axes, groups.items(), strict=False):
        figures.draw_cells(axis, np.stack([_successes(runs, name, x, edges) for name in names]), columns=edges)
        if len(colour_of) > 1:
            title = shortened(label, int(WIDTH / columns * _TITLE_LETTERS))
            axis.set_title(title, color=colour_of[label], fontweight="normal")
        axis.set_yticks(range(len(names)), [shortened(name, _NAME_LETTERS) for name in names], fontsize=8)
        axis.xaxis.set_major_formatter(in_short)
        axis.locator_params(axis="x", nbins=4)
        axis.set_xlabel(figures.AXES[x])
        for row, name in enumerate(names):
            _write(axis, row, last_success(runs, name))
    for axis in axes[len(groups) :]:
        axis.set_axis_off()


def _successes(runs: Sequence[Run], name: str, x: str, edges: Floats) -> Floats:
    """Shares of the episodes that ended between two edges; NaN where none did."""
    counts = np.zeros((2, len(edges) - 1))
    for run in runs:
        if name in run.levels:
            place = np.clip(np.searchsorted(edges, run.along(x)) - 1, 0, len(edges) - 2)
            counts += [np.bincount(place, ended, len(edges) - 1) for ended in run.levels[name]]
    episodes, successes = counts
    return np.divide(successes, episodes, out=np.full(len(episodes), np.nan), where=episodes > 0)  # type: ignore[no-any-return]


def _write(axis: Any, row: int, success: float) -> None:
    text = f"{success:.0%}" if np.isfinite(success) else ""
    at = {"xycoords": axis.get_yaxis_transform(), "va": "center_baseline", "ha": "right", "fontsize": 8}
    axis.annotate(text, (1, row), xytext=(27, 0), textcoords="offset points", **at)
