"""Learning curves: what training runs reached, by steps or time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from doorstep._arguments import check_choice, refuse
from doorstep._files import check_ending
from doorstep.levels.generated import ROOM_ENDS
from doorstep.plots.figures import ENDINGS, colours, load_matplotlib, save_figure
from doorstep.plots.runs import X_AXES, Floats, Run, grouped, read_run

_POINTS = 400  # of a curve over several runs
_SMOOTHED = 50  # a point is a mean over this part of the longest run's updates
_LABELS = {"steps": "steps of worlds", "seconds": "time, s", "updates": "updates"}
_INCHES = (12.0, 7.0)
_LEGEND_INCHES, _MOST_COLUMNS, _LETTERS_OF_A_ROW = 0.22, 5, 110
_BAND = 0.2  # opacity

# Titles of panels.
_RETURNS, _SPEED, _NOTES = "mean return of an episode", "world-steps per second", "notes"
_DOORS = tuple(f"episodes past door {door}" for door in range(1, len(ROOM_ENDS) + 1))
_SUCCESS, _LEVELS = "success, mean over all levels", "success in each level at the end"


class _Curve(NamedTuple):
    """The mean over runs, and the least and the largest of them, along x."""

    x: Floats
    mean: Floats
    low: Floats
    high: Floats


def plot_runs(
    runs: Sequence[str | os.PathLike[str]], path: str | os.PathLike[str], *, x: str = "steps"
) -> None:
    """Draws learning curves of training runs: the return, the speed, and the share of episodes in which agents passed
    each door, or the success of runs with a table of levels, in each level.

    Runs whose configs differ only in seeds and `num_updates` are one curve: their mean, in a band from the least to the
    largest of them. A curve goes on as long as one of its runs does. Each point is a mean over the episodes of the last
    2% of the updates of the longest run, which the picture says.

    >>> import os, tempfile
    >>> from doorstep.plots import plot_runs
    >>> from doorstep.training import preset, train
    >>> folder = tempfile.mkdtemp()
    >>> small = preset("default").changed("simulator.num_worlds=8", "ppo.num_minibatches=1", "num_updates=2")
    >>> for seed in (0, 1):
    ...     _ = train(f"{folder}/seed{seed}", config=small, seed=seed)
    >>> plot_runs([f"{folder}/seed0", f"{folder}/seed1"], f"{folder}/curves.png")
    >>> os.path.exists(f"{folder}/curves.png")
    True

    Args:
        runs: folders of `doorstep.training.train()` or of `doorstep train`. A last line of a log that was cut off is
            left out.
        path: a file that ends in .png, .svg or .pdf; it is replaced whole or not at all.
        x: "steps" of worlds, "seconds" or "updates".

    Raises:
        ArgumentError: a folder has no log or an empty one, no run is given, another ending, or another axis.
        LibraryError: matplotlib is missing: pip install "doorstep[plot]".
        OSError: a log cannot be read, or the file cannot be written.
    """
    check_ending(path, ENDINGS)
    check_choice("x", x, tuple(X_AXES))
    if not isinstance(runs, Sequence) or isinstance(runs, (str, bytes)) or not runs:
        refuse("runs", "a sequence of folders of runs, at least one", runs)
    curves = grouped([read_run(folder) for folder in runs])
    save_figure(_figure(curves, x, load_matplotlib()), path)


def _figure(groups: dict[str, list[Run]], x: str, matplotlib: Any) -> Any:
    columns = max(min(_LETTERS_OF_A_ROW // (max(map(len, groups)) + 6), _MOST_COLUMNS, len(groups)), 1)
    height = _INCHES[1] + _LEGEND_INCHES * -(-len(groups) // columns)
    figure = matplotlib.Figure(figsize=(_INCHES[0], height), layout="constrained")
    axes = figure.subplot_mosaic(_panels(groups))
    window = max(max(len(run.updates) for run in _all(groups)) // _SMOOTHED, 1)
    for (label, runs), colour in zip(groups.items(), colours(len(groups)), strict=True):
        _draw(axes[_RETURNS], runs, x, window, lambda run: run.returns, colour, label=label)
        _draw(axes[_SPEED], runs, x, window, lambda run: run.speed, colour)
        if _DOORS[0] in axes:
            for door, title in enumerate(_DOORS):
                _draw(axes[title], runs, x, window, _of_door("rooms_all", door), colour)
                _draw(axes[title], runs, x, window, _of_door("rooms_one", door), colour, linestyle="--", band=False)
        if _SUCCESS in axes:
            _draw(axes[_SUCCESS], runs, x, window, lambda run: run.success, colour)
    if _LEVELS in axes:
        _draw_levels(axes[_LEVELS], groups, window)
    last = max(run.along(x)[-1] for run in _all(groups))
    _describe({title: axis for title, axis in axes.items() if title not in (_NOTES, _LEVELS)}, x, last)
    has_bands = any(len(runs) > 1 for runs in groups.values())
    _explain(axes[_NOTES], window, has_bands, has_doors=_DOORS[0] in axes)
    handles, labels = axes[_RETURNS].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)
    return figure


def _panels(groups: dict[str, list[Run]]) -> list[list[str]]:
    """Titles by row. Runs with a table of levels have success in place of doors."""
    has_levels = [np.isfinite(run.success).any() for run in _all(groups)]
    rows = [[_RETURNS, _SPEED, _NOTES]]
    rows += [list(_DOORS)] * (not all(has_levels))
    rows += [[_SUCCESS, _LEVELS, _LEVELS]] * any(has_levels)
    return rows


def _all(groups: dict[str, list[Run]]) -> list[Run]:
    return [run for runs in groups.values() for run in runs]


def _of_door(name: str, door: int) -> Callable[[Run], Floats]:
    def values(run: Run) -> Floats:
        return getattr(run, name)[door]  # type: ignore[no-any-return]

    return values


# ---- Curves


def _draw(
    axis: Any,
    runs: Sequence[Run],
    x: str,
    window: int,
    value_of: Callable[[Run], Floats],
    colour: Any,
    *,
    label: str | None = None,
    linestyle: str = "-",
    band: bool = True,
) -> None:
    curve = _curve([(run.along(x), _smoothed(value_of(run), run.episodes, window)) for run in runs])
    is_point = np.isfinite(curve.mean).sum() == 1  # which a line would not show
    style = {"color": colour, "linestyle": linestyle, "linewidth": 1.5, "marker": "o" if is_point else None}
    axis.plot(curve.x, curve.mean, label=label, **style)
    if band and len(runs) > 1:
        axis.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=_BAND, linewidth=0)


def _smoothed(values: Floats, weights: Floats, window: int) -> Floats:
    """Means over the last `window` updates, weighted by their episodes; NaN where there were none."""
    known = np.isfinite(values)
    weights = np.where(known, np.where(weights > 0, weights, 1), 0)
    sums = _trailing_sums(np.where(known, values, 0) * weights, window)
    totals = _trailing_sums(weights, window)
    return np.divide(sums, totals, out=np.full(len(values), np.nan), where=totals > 0)  # type: ignore[no-any-return]


def _trailing_sums(values: Floats, window: int) -> Floats:
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(sums))
    return sums[ends] - sums[np.maximum(ends - window, 0)]  # type: ignore[no-any-return]


def _curve(runs: Sequence[tuple[Floats, Floats]]) -> _Curve:
    """Over runs of any lengths, each (x, values); values that are NaN are left out."""
    known = [(x[np.isfinite(values)], values[np.isfinite(values)]) for x, values in runs]
    known = [(x, values) for x, values in known if len(x)]
    if not known:
        return _Curve(*(np.zeros(0) for _ in range(4)))
    if len(known) == 1:
        x, values = known[0]
        return _Curve(x, values, values, values)
    ends = np.array([x[-1] for x, _ in known])
    x = np.unique(np.concatenate([np.linspace(min(x[0] for x, _ in known), ends.max(), _POINTS), ends]))
    table = np.stack([np.interp(x, *run, left=np.nan, right=np.nan) for run in known])
    some = np.isfinite(table).any(axis=0)  # runs may have gaps between them
    x, table = x[some], table[:, some]
    return _Curve(x, np.nanmean(table, axis=0), np.nanmin(table, axis=0), np.nanmax(table, axis=0))


def _draw_levels(axis: Any, groups: dict[str, list[Run]], window: int) -> None:
    """A row of points per level, a point per curve: the share of successful episodes in the last `window` updates."""
    names = list(dict.fromkeys(name for run in _all(groups) for name in run.levels))
    for runs, colour in zip(groups.values(), colours(len(groups)), strict=True):
        axis.plot([_last_success(runs, name, window) for name in names], range(len(names)), "o", color=colour)
    axis.set_yticks(range(len(names)), names, fontsize="small")
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set_xlim(-0.02, 1.02)
    axis.xaxis.set_major_formatter(_in_percent)
    axis.set_title(_LEVELS, fontsize="medium")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", linewidth=0.3)


def _last_success(runs: Sequence[Run], name: str, window: int) -> float:
    """Over all runs; NaN if no episode has ended in the level."""
    ended = sum(run.levels[name][:, -window:].sum(axis=1) for run in runs if name in run.levels)
    episodes, successes = np.broadcast_to(ended, 2)
    return float(successes / episodes) if episodes else float("nan")


# ---- What is written with them


def _describe(axes: dict[str, Any], x: str, last: float) -> None:
    for title, axis in axes.items():
        axis.set_title(title, fontsize="medium")
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_xlabel(_LABELS[x])
        axis.locator_params(axis="x", nbins=5)
        axis.set_xlim(0, 1.02 * last)
        if x == "steps":
            axis.xaxis.set_major_formatter(_in_short)
        if not any(len(line.get_xdata()) for line in axis.lines):
            axis.text(0.5, 0.5, "no episode has ended", transform=axis.transAxes, ha="center", color="grey")
    axes[_SPEED].set_ylim(bottom=0)
    axes[_SPEED].yaxis.set_major_formatter(_in_short)
    for title in axes.keys() - {_RETURNS, _SPEED}:
        axes[title].set_ylim(-0.02, 1.02)
        axes[title].yaxis.set_major_formatter(_in_percent)


def _in_percent(value: float, _: object = None) -> str:
    return f"{value:.0%}"


def _explain(axis: Any, window: int, has_bands: bool, has_doors: bool) -> None:
    """What lines and bands are, in the place of a panel."""
    axis.set_axis_off()
    texts = [("-", "all agents passed the door"), ("--", "at least one agent did")] if has_doors else []
    for linestyle, text in texts:
        axis.plot([], [], color="black", linestyle=linestyle, label=text)
    notes = ["lines: means over runs; bands: from the least to the largest run"] if has_bands else []
    updates = "the last update" if window == 1 else f"the last {window} updates"
    notes.append(f"each point: mean over the episodes of {updates}")
    if texts:
        axis.legend(loc="upper left", frameon=False, fontsize="small")
    axis.text(0, 0.72, "\n".join(notes), transform=axis.transAxes, va="top", fontsize="small")


def _in_short(value: float, _: object = None) -> str:
    """1,200,000 as 1.2M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
