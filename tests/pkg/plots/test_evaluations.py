"""Evaluations are tables: a row for each level, a column for each policy."""

import dataclasses
import itertools

import pytest

import doorstep
from doorstep import Evaluation
from doorstep.evaluation.arenas import Arena
from doorstep.evaluation.comparison import Aggregate, Improvement
from doorstep.evaluation.evaluation import EvaluationRules
from doorstep.evaluation.scores import ROOMS, RoomScore, Score
from doorstep.evaluation.statistics import Estimate
from doorstep.plots.evaluations import _figure
from doorstep.plots.figures import COLOURS

pytest.importorskip("matplotlib")

LEVELS = doorstep.levels.curated()


def around(value):
    return Estimate(value, max(value - 0.1, 0), min(value + 0.1, 1))


def evaluation_of(policies, arenas):
    """In the level of row r policy p succeeds in (r + 10 p)% of its episodes, and returns p + r."""
    scores = []
    for (row, arena), (p, policy) in itertools.product(enumerate(arenas), enumerate(policies)):
        returns = Estimate(p + row, p + row - 0.5, p + row + 0.5)
        success = around((row + 10 * p) / 100) if arena.has_goal else None
        rooms = [RoomScore(room, around(0.9), around(0.4)) for room in ROOMS] if arena.has_three_rooms else []
        scores.append(Score(policy, arena.name, 100, returns, around(50), success=success, rooms=tuple(rooms)))
    rules = EvaluationRules(seed=7, episodes=100, num_agents=2, episode_length=200, doorstep="0")
    means = [Aggregate(policy, around(p)) for p, policy in enumerate(policies)]
    pairs = itertools.combinations(policies, 2)
    better = [Improvement(policy, over, Estimate(0.8, 0.7, 0.85)) for over, policy in pairs]
    return Evaluation(rules, *map(tuple, (policies, arenas, scores, means, better)))


def curated(count):
    return [Arena(f"{name} {copy}", level) for copy in range(2) for name, level in LEVELS.items()][:count]


def cells_of(axis):
    rows = axis.collections[0].get_array().tolist()
    return [[None if value is None else round(value, 6) for value in row] for row in rows]


def labels_of(axis):
    """Of rows and columns."""
    rows, columns = axis.get_yticklabels(), axis.get_xticklabels()
    return [label.get_text() for label in rows], [label.get_text() for label in columns]


def figures_in(axis):
    """What is written in cells."""
    return [text.get_text().strip() for text in axis.texts if text.get_text() != "●"]


def test_cells_are_the_success_of_a_policy_in_a_level_and_policies_are_compared_in_both_directions():
    success, returns = _figure(evaluation_of(["random"], curated(2))).axes
    assert labels_of(success) == (["one door 0", "two buttons 0"], ["random"])
    assert cells_of(success) == [[0.0], [0.01]]
    assert figures_in(success) == ["0%", "0-10", "1%", "0-11"]
    assert returns.lines[0].get_xdata().tolist() == [0, 1]
    assert [path.vertices[:, 0].tolist() for path in returns.collections[0].get_paths()] == [[-0.5, 0.5], [0.5, 1.5]]
    _, _, better, over_all = _figure(evaluation_of(["random", "trained"], curated(1))).axes
    assert labels_of(better) == (["random", "trained"], ["random", "trained"])
    assert cells_of(better) == [[None, 0.2], [0.8, None]]
    assert figures_in(better) == ["20%", "15-30", "80%", "70-85"]
    assert [line.get_xdata().tolist() for line in over_all.lines[:2]] == [[0], [1]]


def test_levels_have_a_row_for_each_of_three_rooms_success_with_a_goal_and_otherwise_returns_alone():
    success, returns = _figure(evaluation_of(["random"], [Arena("reference", None)])).axes
    assert labels_of(success)[0] == [
        "reference",
        *("one in second room", "all in second room", "one in third room", "all in third room", "one out", "all out"),
    ]
    assert cells_of(success) == [[None], *[[0.9], [0.4]] * 3]
    assert returns.lines[0].get_ydata().tolist() == [0]
    without = Arena("open", dataclasses.replace(LEVELS["one door"], goal=None))
    figure = _figure(evaluation_of(["random", "idle"], [without]))
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["return of an episode", "return over all levels"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["random", "idle"]


def test_the_points_of_a_policy_have_the_colour_of_its_column_and_names_are_short():
    success, returns, *_ = _figure(evaluation_of([f"policy {number}" for number in range(8)], curated(1))).axes
    assert [text.get_color() for text in success.texts if text.get_text() == "●"] == list(COLOURS[:8])
    assert [line.get_color() for line in returns.lines[:8]] == list(COLOURS[:8])
    assert len(figures_in(success)) == 8  # there is no room for intervals
    success, _ = _figure(evaluation_of(["runs/a$b$/checkpoint.safetensors"], curated(1))).axes
    assert labels_of(success)[1] == ["runs/a$b$"]
    assert not success.get_xticklabels()[0].get_parse_math()
