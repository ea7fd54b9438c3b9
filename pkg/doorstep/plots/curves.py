"""Learning curves: what training runs reached, by steps or time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from doorstep._arguments import check_choice, refuse
from doorstep._files import check_ending
from doorstep.levels.generated import ROOM_ENDS
from doorstep.plots import figures
from doorstep.plots.figures import ENDINGS, Floats, in_percent, in_short, save_figure
from doorstep.plots.level_maps import Groups, by_levels, draw_level_maps, level_map_inches
from doorstep.plots.runs import Run, grouped, read_run

_POINTS = 400  # of a curve over several runs
_SMOOTHED = 20  # a point is a mean over this part of the longest run's updates
_ROW_INCHES = 2.0
_BAND = 0.2  # opacity
_DASHES = (0, (3, 1.5))

_SPEED = "world-steps per second"

ValueOf: TypeAlias = Callable[[Run], Floats]


class _Panel(NamedTuple):
    """Curves of a value, and dashed ones of another."""

    title: str
    value_of: ValueOf
    dashed: ValueOf | None = None
    is_share: bool = True


class _Curve(NamedTuple):
    """The mean over runs, and the least and the largest of them, along x."""

    x: Floats
    mean: Floats
    low: Floats
    high: Floats


def plot_runs(
    runs: Sequence[str | os.PathLike[str]], path: str | os.PathLike[str], *, x: str = "steps"
) -> None:
    """Draws learning curves of training runs: the return, the speed, the share of episodes in which agents passed each
    door, and the success of runs with a table of levels, over all levels and in each one.

    Runs whose configs differ only in seeds and `num_updates` are one curve: their mean, in a band from the least to the
    largest of them. A curve goes on as long as one of its runs does. Each point is a mean over the episodes of the last
    5% of the updates of the longest run, which the picture says.

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
    check_choice("x", x, tuple(figures.AXES))
    if not isinstance(runs, Sequence) or isinstance(runs, (str, bytes)) or not runs:
        refuse("runs", "a sequence of folders of runs, at least one", runs)
    save_figure(_figure(grouped([read_run(folder) for folder in runs]), x), path)


@figures.styled()
def _figure(groups: Groups, x: str) -> Any:
    rows, maps = _rows(groups), by_levels(groups)
    heights = [_ROW_INCHES] * len(rows) + [level_map_inches(part) for part in maps]
    figure = figures.new_figure(0.7 + sum(heights))
    parts = np.atleast_1d(figure.subfigures(len(heights), 1, height_ratios=heights))
    window = max(max(len(run.updates) for run in _all(groups)) // _SMOOTHED, 1)
    last = max(run.along(x)[-1] for run in _all(groups))
    for part, panels in zip(parts, rows, strict=False):
        axes = part.subplots(1, len(panels), squeeze=False, sharey=panels[0].is_share)[0]
        for panel, axis in zip(panels, axes, strict=True):
            _draw_panel(axis, panel, groups, x, window)
            _describe(axis, panel, x, last)
            axis.set_xlabel(figures.AXES[x] if panels is rows[-1] else "")
    colour_of = dict(zip(groups, figures.colours(len(groups)), strict=True))
    for part, members in zip(parts[len(rows) :], maps, strict=True):
        draw_level_maps(part, members, colour_of, x, last)
    figures.add_legend(figure, list(groups))
    figures.add_caption(figure, _notes(groups, window, bool(maps)))
    return figure


def _rows(groups: Groups) -> list[list[_Panel]]:
    """Panels side by side. None of a value that no run has, but for the return."""
    panels = [_Panel("return of an episode", lambda run: run.returns, is_share=False)]
    panels += [_Panel("success, mean over levels", lambda run: run.success)] * _have(groups, lambda run: run.success)
    panels += [_Panel(_SPEED, lambda run: run.speed, is_share=False)]
    doors = [
        _Panel(f"episodes past door {door + 1}", _of_door("rooms_all", door), _of_door("rooms_one", door))
        for door in range(len(ROOM_ENDS))
    ]
    return [panels] + [doors] * _have(groups, lambda run: run.rooms_all)


def _all(groups: Groups) -> list[Run]:
    return [run for runs in groups.values() for run in runs]


def _have(groups: Groups, value_of: ValueOf) -> bool:
    return any(bool(np.isfinite(value_of(run)).any()) for run in _all(groups))


def _of_door(name: str, door: int) -> ValueOf:
    def values(run: Run) -> Floats:
        return getattr(run, name)[door]  # type: ignore[no-any-return]

    return values


# ---- Curves


def _draw_panel(axis: Any, panel: _Panel, groups: Groups, x: str, window: int) -> None:
    for runs, colour in zip(groups.values(), figures.colours(len(groups)), strict=True):
        if panel.dashed is not None:
            dashed = _curve_of(runs, x, window, panel.dashed)
            axis.plot(dashed.x, dashed.mean, color=colour, linestyle=_DASHES, linewidth=0.9)
        curve = _curve_of(runs, x, window, panel.value_of)
        is_point = len(curve.x) == 1  # which a line would not show
        axis.plot(curve.x, curve.mean, color=colour, marker="o" if is_point else None)
        if len(runs) > 1:
            axis.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=_BAND, linewidth=0)


def _curve_of(runs: Sequence[Run], x: str, window: int, value_of: ValueOf) -> _Curve:
    return _curve([(run.along(x), _smoothed(value_of(run), run.episodes, window)) for run in runs])


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


# ---- What is written with them


def _describe(axis: Any, panel: _Panel, x: str, last: float) -> None:
    axis.set_title(panel.title)
    axis.locator_params(nbins=5)
    axis.set_xlim(0, 1.02 * last)
    axis.xaxis.set_major_formatter(in_short)
    axis.yaxis.set_major_formatter(in_percent if panel.is_share else in_short)
    if panel.is_share:
        axis.set_ylim(-0.02, 1.02)
    elif panel.title == _SPEED:
        axis.set_ylim(bottom=0)
    if not any(len(line.get_xdata()) for line in axis.lines):
        axis.text(0.5, 0.5, "no episode has ended", transform=axis.transAxes, ha="center", color=figures.GREY)


def _notes(groups: Groups, window: int, has_levels: bool) -> list[str]:
    updates = "the last update" if window == 1 else f"the last {window} updates"
    notes = [f"Points: means over the episodes of {updates}."]
    if any(len(runs) > 1 for runs in groups.values()):
        notes.append("Lines: means over runs; bands: from the least to the largest run.")
    if _have(groups, lambda run: run.rooms_all):
        notes.append("Doors: all agents passed (solid), at least one did (dashed).")
    if has_levels:
        notes.append("Levels: success from pale (0%) to dark (100%), and over the last tenth of the updates.")
    return notes
