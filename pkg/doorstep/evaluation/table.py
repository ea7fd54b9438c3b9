"""The table of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from doorstep.evaluation.comparison import METHOD, Aggregate, Improvement
from doorstep.evaluation.scores import ROOMS, Score
from doorstep.evaluation.statistics import MEAN_METHOD, SHARE_METHOD, Estimate

_GAP = "  "


def table_of(
    scores: Sequence[Score], aggregates: Sequence[Aggregate], improvements: Sequence[Improvement]
) -> str:
    """Levels with a goal, then those with rooms and those with neither, each kind with its columns; if there are
    several policies, these compared."""
    with_goal = [score for score in scores if score.success is not None]
    without_goal = [score for score in scores if score.success is None]
    with_rooms = [score for score in scores if score.rooms]
    parts = [_of_goals(with_goal)] if with_goal else []
    parts += [_of_returns(without_goal)] if without_goal else []
    parts += [_of_rooms(with_rooms)] if with_rooms else []
    note = f"[95% confidence intervals] shares: {SHARE_METHOD}; means: {MEAN_METHOD}"
    if improvements:
        parts += [_of_aggregates(aggregates), _of_improvements(improvements)]
        note += f";\nall levels: {METHOD}"
    return "\n\n".join([*parts, note]) + "\n"


def _of_goals(scores: Sequence[Score]) -> str:
    rows = [
        (score.level, score.policy, _share(score.success), _mean(score.mean_return), _steps(score.mean_length))
        for score in scores
        if score.success is not None
    ]
    return _aligned([("level", "policy", "success", "mean return", "mean length"), *rows])


def _of_returns(scores: Sequence[Score]) -> str:
    rows = [(score.level, score.policy, _mean(score.mean_return), _steps(score.mean_length)) for score in scores]
    return _aligned([("level", "policy", "mean return", "mean length"), *rows])


def _of_rooms(scores: Sequence[Score]) -> str:
    columns = [f"{who} {_place(room)}" for room in ROOMS for who in ("one", "all")]
    rows = [
        (
            *(score.level, score.policy),
            *(_share(estimate) for room in score.rooms for estimate in (room.one, room.all)),
        )
        for score in scores
    ]
    return "Share of episodes in which one agent, or all, got:\n" + _aligned([("level", "policy", *columns), *rows])


def _of_aggregates(aggregates: Sequence[Aggregate]) -> str:
    rows = [("all levels", aggregate.policy, _mean(aggregate.interquartile_mean)) for aggregate in aggregates]
    return _aligned([("level", "policy", "interquartile mean return"), *rows])


def _of_improvements(improvements: Sequence[Improvement]) -> str:
    rows = [(one.policy, one.over, _share(one.probability)) for one in improvements]
    head = ("policy", "over", "probability")
    return "Probability that an episode of one policy has a larger return:\n" + _aligned([head, *rows])


def _place(room: str) -> str:
    return room if room == "out" else f"into {room.removesuffix(' room')}"


# ---- Cells


def _share(estimate: Estimate) -> str:
    return f"{estimate.value:4.0%} [{estimate.low:4.0%}, {estimate.high:4.0%}]"


def _mean(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _steps(estimate: Estimate) -> str:
    return f"{estimate.value:.1f}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Names to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        _GAP.join(
            cell.ljust(width) if index < 2 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)
