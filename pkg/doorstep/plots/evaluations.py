"""Plots of an evaluation, with matplotlib."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from doorstep._files import check_ending
from doorstep.evaluation.comparison import Improvement
from doorstep.evaluation.evaluation import Evaluation
from doorstep.evaluation.scores import ROOMS, Score
from doorstep.evaluation.statistics import Estimate
from doorstep.plots.figures import ENDINGS, colours, load_matplotlib, save_figure

_BAR_INCHES, _MARGIN_INCHES, _PANEL_INCHES = 0.3, 2.5, 3.2
_SMALLEST_WIDTH, _LARGEST_WIDTH = 6.0, 40.0  # inches
_ROW_INCHES = 0.35  # of a comparison
_GROUP_WIDTH = 0.8  # of the distance between two groups of bars
_MOST_LEVEL_LABELS = 4  # that stand side by side; more are turned


class _Panel(NamedTuple):
    """A group of bars per label, a bar per policy; None: no bar."""

    title: str
    is_share: bool
    labels: list[str]
    bars: dict[str, list[Estimate | None]]


def plot_evaluation(evaluation: Evaluation, path: str | os.PathLike[str]) -> None:
    """Draws success, rooms and mean returns of each policy, and how likely one is to do better than another, with
    their 95% intervals.

    Args:
        evaluation: what is drawn.
        path: a file that ends in .png, .svg or .pdf; it is replaced whole or not at all.

    Raises:
        ArgumentError: another ending.
        LibraryError: matplotlib is missing: pip install "doorstep[plot]".
        OSError: the file cannot be written.
    """
    check_ending(path, ENDINGS)
    save_figure(_figure(_panels(evaluation), evaluation.improvements, load_matplotlib()), path)


# ---- What is drawn


def _panels(evaluation: Evaluation) -> list[_Panel]:
    with_goal = [arena.name for arena in evaluation.levels if arena.has_goal]
    reached = _by_level(evaluation, with_goal, "share of episodes that reached the goal", _success)
    panels = [reached] if with_goal else []
    panels += [_of_rooms(evaluation, arena.name) for arena in evaluation.levels if arena.has_three_rooms]
    names = [arena.name for arena in evaluation.levels]
    returns = _by_level(evaluation, names, "mean return of an episode", lambda score: score.mean_return)
    means: dict[str, list[Estimate | None]] = {
        one.policy: [one.interquartile_mean] for one in evaluation.aggregates
    }
    over_all = _Panel("interquartile mean of the returns of all episodes", False, ["all levels"], means)
    compared = [over_all] if evaluation.improvements else []
    return [*panels, returns._replace(is_share=False), *compared]


def _by_level(
    evaluation: Evaluation, levels: Sequence[str], title: str, choose: Callable[[Score], Estimate | None]
) -> _Panel:
    bars = {
        policy: [choose(evaluation.score(policy, level)) for level in levels] for policy in evaluation.policies
    }
    return _Panel(title, True, list(levels), bars)


def _success(score: Score) -> Estimate | None:
    return score.success


def _of_rooms(evaluation: Evaluation, level: str) -> _Panel:
    bars: dict[str, list[Estimate | None]] = {}
    for policy in evaluation.policies:
        rooms = evaluation.score(policy, level).rooms
        bars[policy] = [estimate for room in rooms for estimate in (room.one, room.all)]
    labels = [f"{who}:\n{room}" for room in ROOMS for who in ("one", "all")]
    return _Panel(f"share of episodes in which one agent, or all, got into a room: {level}", True, labels, bars)


# ---- Drawing


def _figure(panels: Sequence[_Panel], improvements: Sequence[Improvement], matplotlib: Any) -> Any:
    bars = max(len(panel.labels) * (len(panel.bars) + 1) for panel in panels)
    width = min(max(_MARGIN_INCHES + _BAR_INCHES * bars, _SMALLEST_WIDTH), _LARGEST_WIDTH)
    heights = [_PANEL_INCHES] * len(panels)
    heights += [1 + _ROW_INCHES * len(improvements)] * bool(improvements)
    figure = matplotlib.Figure(figsize=(width, 0.5 + sum(heights)), layout="constrained")
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for panel, axis in zip(panels, axes, strict=False):
        _draw(panel, axis)
    if improvements:
        _draw_improvements(improvements, axes[-1])
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=min(len(names), 5), frameon=False)
    return figure


def _draw(panel: _Panel, axis: Any) -> None:
    width = _GROUP_WIDTH / len(panel.bars)
    colour_of = dict(zip(panel.bars, colours(len(panel.bars)), strict=True))
    for number, (policy, estimates) in enumerate(panel.bars.items()):
        drawn = [(group, estimate) for group, estimate in enumerate(estimates) if estimate is not None]
        places = [group + (number + 0.5) * width - _GROUP_WIDTH / 2 for group, _ in drawn]
        values = [estimate.value for _, estimate in drawn]
        below = [estimate.value - estimate.low for _, estimate in drawn]
        above = [estimate.high - estimate.value for _, estimate in drawn]
        style = {"elinewidth": 1, "capsize": 2}
        axis.bar(places, values, width, yerr=(below, above), color=colour_of[policy], label=policy, error_kw=style)
    turned = len(panel.labels) > _MOST_LEVEL_LABELS and "\n" not in panel.labels[0]
    axis.set_xticks(range(len(panel.labels)), panel.labels, rotation=40 * turned, ha="right" if turned else "center")
    axis.set_xlim(-0.6, len(panel.labels) - 0.4)
    axis.set_title(panel.title, fontsize="medium")
    axis.axhline(0, color="black", linewidth=0.8)
    axis.spines[["top", "right"]].set_visible(False)
    if panel.is_share:
        axis.set_ylim(0, 1)
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")


def _draw_improvements(improvements: Sequence[Improvement], axis: Any) -> None:
    """A point with its interval for each pair, the first one on top."""
    for row, improvement in enumerate(improvements):
        estimate = improvement.probability
        below, above = estimate.value - estimate.low, estimate.high - estimate.value
        axis.errorbar(estimate.value, row, xerr=([below], [above]), fmt="o", color="black", capsize=3)
    axis.set_yticks(range(len(improvements)), [f"{one.policy} over {one.over}" for one in improvements])
    axis.set_ylim(len(improvements) - 0.5, -0.5)
    axis.axvline(0.5, color="grey", linewidth=0.8, linestyle=":")
    axis.set_xlim(-0.02, 1.02)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axis.set_title("probability that an episode of one policy has a larger return", fontsize="medium")
    axis.spines[["top", "right"]].set_visible(False)
