"""Plots of an evaluation: tables whose rows are levels, with a column for each policy."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from doorstep._arguments import refuse
from doorstep._files import check_ending
from doorstep.evaluation.evaluation import Evaluation
from doorstep.evaluation.scores import ROOMS, Score
from doorstep.evaluation.statistics import Estimate
from doorstep.plots import figures
from doorstep.plots.figures import ENDINGS, LETTERS_PER_INCH, WIDTH, save_figure, shortened

_ROW_INCHES, _POINT_INCHES, _HEAD_INCHES = 0.24, 0.035, 0.7  # heights: of a row, of a policy's point in it, of a head
_NAME_LETTERS = 22
_CAPTION_INCHES = 0.5
_TURN, _TURNED_HEIGHT = 40, 0.65  # degrees, and the sine of them
_CELL_INCHES, _CELLS_INCHES, _RETURNS_INCHES = 1.2, 4.8, 2.2  # widths: of a cell, of all at most, of the returns
_INTERVAL_INCHES = 0.95  # the least width of a cell with an interval
_SPREAD = 0.6  # of a row's height, over which the policies' returns are spread

Estimates = Sequence[Estimate | None]  # by policy; None: not measured


class _Row(NamedTuple):
    label: str
    shares: Estimates
    returns: Estimates
    is_part: bool = False  # of the level above


class _Table(NamedTuple):
    title: str
    returns_title: str
    rows: list[_Row]
    shades: Sequence[str]


def plot_evaluation(evaluation: Evaluation, path: str | os.PathLike[str]) -> None:
    """Draws how often each policy succeeded in each level and what it returned, and how likely one policy is to do
    better than another, with their 95% intervals.

    Levels are rows, in the order of the evaluation. In the reference's levels shares are of episodes in which one
    agent, or all, got into a room.

    >>> import doorstep, os, tempfile
    >>> from doorstep.plots import plot_evaluation
    >>> level = doorstep.levels.curated()["one door"]
    >>> evaluation = doorstep.evaluate(["random", "idle"], levels=level, episodes=2, episode_length=10)
    >>> plot_evaluation(evaluation, f"{tempfile.mkdtemp()}/table.svg")

    Args:
        evaluation: what is drawn.
        path: a file that ends in .png, .svg or .pdf; it is replaced whole or not at all.

    Raises:
        ArgumentError: another ending, or it is no evaluation.
        LibraryError: matplotlib is missing: pip install "doorstep[plot]".
        OSError: the file cannot be written.
    """
    check_ending(path, ENDINGS)
    if not isinstance(evaluation, Evaluation):
        refuse("evaluation", "a doorstep.Evaluation", evaluation)
    save_figure(_figure(evaluation), path)


# ---- What is drawn


def _rows(evaluation: Evaluation) -> list[_Row]:
    rows = []
    for arena in evaluation.levels:
        scores = [evaluation.score(policy, arena.name) for policy in evaluation.policies]
        rows.append(_Row(arena.name, [score.success for score in scores], [score.mean_return for score in scores]))
        if arena.has_three_rooms:
            rows += _rows_of_rooms(scores)
    return rows


def _rows_of_rooms(scores: Sequence[Score]) -> list[_Row]:
    return [
        _Row(
            f"{who} {room if room == 'out' else f'in {room}'}",
            [getattr(score.rooms[number], who) for score in scores],
            [None] * len(scores),
            is_part=True,
        )
        for number, room in enumerate(ROOMS)
        for who in ("one", "all")
    ]


def _compared(evaluation: Evaluation) -> list[_Row]:
    """For each policy the probabilities that it does better than the others, and its return over all levels."""
    better: dict[tuple[str, str], Estimate] = {}
    for one in evaluation.improvements:
        chance = one.probability
        better[one.policy, one.over] = chance
        better[one.over, one.policy] = Estimate(1 - chance.value, 1 - chance.high, 1 - chance.low)
    return [
        _Row(
            one.policy,
            [better.get((one.policy, other)) for other in evaluation.policies],
            [one.interquartile_mean if other == one.policy else None for other in evaluation.policies],
        )
        for one in evaluation.aggregates
    ]


# ---- Drawing


@figures.styled()
def _figure(evaluation: Evaluation) -> Any:
    tables = [_Table("success", "return of an episode", _rows(evaluation), figures.SHADES)]
    if evaluation.improvements:
        tables.append(_Table("better than", "return over all levels", _compared(evaluation), figures.OPPOSITES))
    policies = evaluation.policies
    has_cells = any(share for row in tables[0].rows for share in row.shares)
    widths = [min(_CELL_INCHES * len(policies), _CELLS_INCHES)] * has_cells + [_RETURNS_INCHES]
    labels = _inches(row.label for table in tables for row in table.rows)
    cell = (WIDTH - labels) * widths[0] / sum(widths) / len(policies)
    is_turned = has_cells and _inches(policies) > cell
    head = _HEAD_INCHES + _TURNED_HEIGHT * _inches(policies) * is_turned
    heights = [max(_ROW_INCHES, _POINT_INCHES * len(policies)) * len(table.rows) for table in tables]
    figure = figures.new_figure(_CAPTION_INCHES + head * len(tables) + sum(heights))
    sizes = {"width_ratios": widths, "height_ratios": heights}
    axes = figure.subplots(len(tables), len(widths), squeeze=False, sharey="row", **sizes)
    for table, of_table in zip(tables, axes, strict=True):
        if has_cells:
            _draw_shares(of_table[0], table, has_intervals=cell >= _INTERVAL_INCHES)
            _name_columns(of_table[0], policies, is_turned=is_turned)
        _draw_returns(of_table[-1], table)
        _name_rows(of_table[0], table.rows)
    if not has_cells:
        figures.add_legend(figure, policies)
    figures.add_caption(figure, _notes(evaluation))
    return figure


def _inches(names: Iterable[str]) -> float:
    """Of the longest one."""
    return max(len(_shown(name)) for name in names) / LETTERS_PER_INCH


def _shown(name: str) -> str:
    """A level or a policy; a checkpoint is called by its folder."""
    return shortened(name.removesuffix("/checkpoint.safetensors"), _NAME_LETTERS)


def _draw_shares(axis: Any, table: _Table, *, has_intervals: bool) -> None:
    values = np.array([[share.value if share else np.nan for share in row.shares] for row in table.rows])
    mesh = figures.draw_cells(axis, values, shades=table.shades)
    axis.set_title(table.title)
    for place, row in enumerate(table.rows):
        for column, share in enumerate(row.shares):
            if share is None:
                continue
            ink, at = figures.ink_on(mesh, share.value), (column, place)
            text, interval = f"{share.value:.0%}", f" {100 * share.low:.0f}-{100 * share.high:.0f}"
            axis.annotate(text, at, color=ink, ha="right" if has_intervals else "center", va="center_baseline")
            if has_intervals:
                axis.annotate(interval, at, color=ink, ha="left", va="center_baseline", fontsize=6.5)


def _draw_returns(axis: Any, table: _Table) -> None:
    """A point with its interval for each policy, the first one on top."""
    rows = table.rows
    colours = figures.colours(len(rows[0].returns))
    spread = 0 if None in rows[0].returns else _SPREAD
    for number, colour in enumerate(colours):
        lower = spread * ((number + 0.5) / len(colours) - 0.5)
        known = [(place + lower, row.returns[number]) for place, row in enumerate(rows)]
        drawn = [(place, *dataclasses.astuple(estimate)) for place, estimate in known if estimate is not None]
        places, values, low, high = zip(*drawn, strict=True)
        axis.plot(values, places, "o", color=colour, markersize=4)
        axis.hlines(places, low, high, color=colour, linewidth=1.2)
    axis.set_title(table.returns_title)
    axis.axvline(0, color=figures.LINE, linewidth=0.8, zorder=0)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.locator_params(axis="x", nbins=5)
    axis.tick_params(axis="x", bottom=False, labelbottom=False, top=True, labeltop=True)
    axis.tick_params(axis="y", length=0)
    axis.spines[["left", "bottom"]].set_visible(False)
    axis.spines["top"].set_visible(True)


def _name_rows(axis: Any, rows: Sequence[_Row]) -> None:
    axis.set_yticks(range(len(rows)), [_shown(row.label) for row in rows])
    for label, row in zip(axis.get_yticklabels(), rows, strict=True):
        label.set_color(figures.GREY if row.is_part else figures.INK)


def _name_columns(axis: Any, policies: Sequence[str], *, is_turned: bool) -> None:
    """Above, with a point in the colour of the policy's returns."""
    turn = {"rotation": _TURN, "ha": "left", "rotation_mode": "anchor"} if is_turned else {}
    axis.tick_params(axis="x", bottom=False, labelbottom=False, labeltop=True, pad=11)
    axis.set_xticks(range(len(policies)), [_shown(policy) for policy in policies], **turn)
    for column, colour in enumerate(figures.colours(len(policies))):
        at = {"xytext": (0, 6), "textcoords": "offset points", "xycoords": axis.get_xaxis_transform()}
        axis.annotate("●", (column, 1), color=colour, ha="center", va="center", **at)


def _notes(evaluation: Evaluation) -> list[str]:
    rules = evaluation.rules
    notes = [f"{rules.episodes} episodes per policy and level; agents: {rules.num_agents}; seed: {rules.seed}."]
    notes.append("Small figures and lines: 95% intervals.")
    if any(arena.has_three_rooms for arena in evaluation.levels):
        notes.append("One in, all in: share of episodes in which at least one agent, or all, got into a room.")
    if evaluation.improvements:
        notes.append("Better than: how likely an episode of the row's policy returns more than one of the column's.")
        notes.append("Return over all levels: interquartile mean.")
    return notes
