"""Learning curves, tables of evaluations and heat maps of recordings; and the style of all."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
from tests.pkg.plots.run_folders import level_record_of, record_of, write_run
from tests.refuses import refuses

import doorstep
from doorstep import Evaluation
from doorstep._native import EntityKind
from doorstep.evaluation.arenas import Arena
from doorstep.evaluation.comparison import Aggregate, Improvement
from doorstep.evaluation.evaluation import EvaluationRules
from doorstep.evaluation.scores import ROOMS, RoomScore, Score
from doorstep.evaluation.statistics import Estimate
from doorstep.plots import curves, evaluations, figures, heat_maps, plot_positions, plot_runs
from doorstep.plots.heat_maps import Visits, count_visits
from doorstep.plots.level_maps import by_levels, last_success
from doorstep.plots.runs import grouped, read_run
from doorstep.recording import RecordingWriter

matplotlib = pytest.importorskip("matplotlib")

# ---- Learning curves: which runs are one curve, what is smoothed, and logs as crashes leave them


def run_of(folder, *records, seed=0, learning_rate=0.001):
    return read_run(write_run(folder, records, seed, learning_rate))


def test_runs_that_differ_only_in_seeds_and_length_are_one_curve(tmp_path):
    kinds = (("slow-1", 1, 1, 0.1), ("fast-1", 1, 1, 0.5), ("slow-2", 3, 2, 0.1))
    runs = [
        run_of(tmp_path / name, *[record_of(1)] * length, seed=seed, learning_rate=x) for name, length, seed, x in kinds
    ]
    names = {label: [run.folder.name for run in members] for label, members in grouped(runs).items()}
    assert names == {"slow (2 runs)": ["slow-1", "slow-2"], "fast-1": ["fast-1"]}
    folders = [write_run(tmp_path / name, [record_of(1)]) for name in ("one", "two")]
    (folders[0] / "config.json").unlink()
    (folders[1] / "config.json").write_text("{")
    assert list(grouped([read_run(folder) for folder in folders])) == ["one", "two"]


WRONG = [
    *({"seconds": float("nan")}, {"world_steps": 10**400}, {"episodes": True}, {"mean_return": "1"}),
    *({"rooms_one": [1, 0.5, "x"]}, {"rooms_all": [1, None, 0]}, {"levels": {"one": {"episodes": 10**400}}}),
    *({"levels": 3}, {"levels": {"a": 3}}, {"levels": {"a": {"episodes": 1}}}),
    *({"levels": {"a": {"episodes": 1, "successes": "1"}}}, {"levels": {"\ud800": {"episodes": 1, "successes": 1}}}),
]


def test_records_become_arrays_and_cut_lines_and_wrong_records_are_left_out(tmp_path):
    records = [record_of(1, returns=None), *({**record_of(2), **change} for change in WRONG), record_of(3, returns=1.5)]
    folder = write_run(tmp_path / "run", records)
    with open(folder / "log.jsonl", "a") as log:
        log.write(json.dumps(record_of(4))[:60])
    run = read_run(folder)
    assert run.updates.tolist() == [1, 3]
    assert run.world_steps.tolist() == [1000, 3000]
    assert run.returns.tolist() == pytest.approx([float("nan"), 1.5], nan_ok=True)
    assert run.rooms_one[:, 1].tolist() == [1.0, 0.5, 0.0]
    assert run.rooms_all[:, 1].tolist() == [0.5, 0.25, 0.0]


def test_points_are_means_over_the_episodes_of_the_last_updates_and_go_on_as_long_as_one_run():
    values, episodes = np.array([1.0, np.nan, 4.0, 10.0]), np.array([1.0, 0.0, 3.0, 1.0])
    assert curves._smoothed(values, episodes, 1).tolist() == pytest.approx([1, float("nan"), 4, 10], nan_ok=True)
    assert curves._smoothed(values, episodes, 2).tolist() == pytest.approx([1, 1, 4, (3 * 4 + 10) / 4])
    ahead = (np.array([0.0, 10.0, 20.0]), np.array([0.0, 10.0, 20.0]))
    curve = curves._curve([ahead, (np.array([0.0, 10.0]), np.array([4.0, 4.0]))])
    assert curve.x[-1] == 20
    at_ten = int(np.flatnonzero(curve.x == 10)[0])
    assert (curve.low[at_ten], curve.mean[at_ten], curve.high[at_ten]) == pytest.approx((4, 7, 10))
    assert (curve.low[-1], curve.mean[-1], curve.high[-1]) == pytest.approx((20, 20, 20))


def test_folders_without_a_run_and_empty_logs_are_named(tmp_path):
    (tmp_path / "none").mkdir()
    empty = write_run(tmp_path / "empty", [])
    for runs, name, x, message in (
        ([tmp_path / "none"], "curves.png", "steps", r"none has no log\.jsonl; it must be the folder of a run"),
        ([empty], "curves.png", "steps", r"empty/log\.jsonl has no complete record \(wait"),
        ([empty], "curves.png", "days", "x is 'days'"),
        ([empty], "curves.txt", "steps", r"\.png or \.svg or \.pdf"),
        *((refused, "curves.png", "steps", "a sequence of folders of runs") for refused in ((), "empty", True, 3)),
    ):
        refuses(message, plot_runs, runs, tmp_path / name, x=x)
    assert not list(tmp_path.glob("curves*"))


def panels_of(runs, x="steps"):
    """The axes of a figure by title; maps of levels have the titles of their runs."""
    return {axis.get_title(loc="left"): axis for axis in curves._figure(runs, x).axes}


def rows_of(axis):
    """The cells of a map by level; None: no episode ended."""
    (mesh,) = axis.collections
    names = [label.get_text() for label in axis.get_yticklabels()]
    return dict(zip(names, mesh.get_array().tolist(), strict=True))


def test_panels_are_of_what_runs_have_over_the_axis_that_is_asked_for(tmp_path):
    with_levels = run_of(tmp_path / "levels", level_record_of(1, 0.25, {"relay": (2, 1)}))
    with_doors = run_of(tmp_path / "rooms", record_of(2))
    neither = run_of(tmp_path / "none", record_of(1, returns=None))
    always = {"return of an episode", "world-steps per second"}
    doors = {f"episodes past door {door}" for door in (1, 2, 3)}
    both = always | doors | {"success, mean over levels", "a"}
    assert set(panels_of({"run": [neither]})) == always
    assert set(panels_of({"run": [with_doors]})) == always | doors
    assert set(panels_of({"run": [with_levels]})) == always | {"success, mean over levels", ""}
    assert set(panels_of({"a": [with_levels], "b": [with_doors]})) == both
    for x, label, at in (("steps", "steps of worlds", 2e3), ("seconds", "time, s", 1), ("updates", "updates", 2)):
        panel = panels_of({"run": [with_doors]}, x)["episodes past door 1"]
        assert panel.get_xlabel() == label
        assert panel.lines[1].get_xdata().tolist() == [at]


def test_curves_are_means_in_a_band_and_doors_have_two(tmp_path):
    records = [[record_of(update, returns=value) for update in (1, 2)] for value in (1.0, 2.0)]
    runs = [run_of(tmp_path / f"run{seed}", *records[seed], seed=seed) for seed in (0, 1)]
    panels = panels_of({"run (2 runs)": runs})
    (line,) = panels["return of an episode"].lines
    assert set(line.get_ydata()) == {1.5}
    (band,) = panels["return of an episode"].collections
    assert {y for _, y in band.get_paths()[0].vertices.tolist()} == {1.0, 2.0}
    dashed, solid = panels["episodes past door 2"].lines
    assert (set(dashed.get_ydata()), set(solid.get_ydata())) == ({0.5}, {0.25})
    assert solid.get_linestyle() == "-" != dashed.get_linestyle()


def test_runs_with_levels_show_their_success_in_each_level_where_they_have_one_in_common(tmp_path):
    second = level_record_of(2, 0.5, {"spiral": (2, 0), "relay": (8, 2)})
    panels = panels_of({"run": [run_of(tmp_path / "x", level_record_of(1, 0.25, {"spiral": (4, 1)}), second)]})
    (mean,) = panels["success, mean over levels"].lines
    assert (mean.get_xdata().tolist(), mean.get_ydata().tolist()) == ([1000, 2000], [0.25, 0.5])
    assert rows_of(panels[""]) == {"relay": [None, 0.25], "spiral": [0.25, 0.0]}  # which is solved more often at last
    assert [text.get_text() for text in panels[""].texts] == ["25%", "0%"]
    names = {"a": ["spiral"], "b": ["relay"], "c": ["spiral", "apart"], "d": []}
    records = {name: level_record_of(1, 0, dict.fromkeys(levels, (1, 0))) for name, levels in names.items()}
    groups = {name: [run_of(tmp_path / name, record)] for name, record in records.items()}
    assert [list(part) for part in by_levels(groups)] == [["a", "c"], ["b"]]
    panels = panels_of(groups)
    assert rows_of(panels["a"]) == {"apart": [None], "spiral": [0.0]}
    assert rows_of(panels["b"]) == {"relay": [0.0]}
    assert np.isnan(last_success(groups["b"], "spiral"))


def test_curves_and_their_names_have_one_colour(tmp_path):
    runs = [run_of(tmp_path / f"run{rate}", record_of(1), learning_rate=rate) for rate in range(10)]
    figure = curves._figure(grouped(runs), "steps")
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"run{rate}" for rate in range(10)]
    for lines in (legend.get_lines(), figure.axes[0].lines):
        assert [line.get_color() for line in lines] == list(figures.COLOURS)
    assert len(set(figures.colours(40))) == 40


# ---- Evaluations are tables: a row for each level, a column for each policy

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
    success, returns = evaluations._figure(evaluation_of(["random"], curated(2))).axes
    assert labels_of(success) == (["one door 0", "two buttons 0"], ["random"])
    assert cells_of(success) == [[0.0], [0.01]]
    assert figures_in(success) == ["0%", "0-10", "1%", "0-11"]
    assert returns.lines[0].get_xdata().tolist() == [0, 1]
    assert [path.vertices[:, 0].tolist() for path in returns.collections[0].get_paths()] == [[-0.5, 0.5], [0.5, 1.5]]
    _, _, better, over_all = evaluations._figure(evaluation_of(["random", "trained"], curated(1))).axes
    assert labels_of(better) == (["random", "trained"], ["random", "trained"])
    assert cells_of(better) == [[None, 0.2], [0.8, None]]
    assert figures_in(better) == ["20%", "15-30", "80%", "70-85"]
    assert [line.get_xdata().tolist() for line in over_all.lines[:2]] == [[0], [1]]


def test_levels_have_a_row_for_each_of_three_rooms_success_with_a_goal_and_otherwise_returns_alone():
    success, returns = evaluations._figure(evaluation_of(["random"], [Arena("reference", None)])).axes
    assert labels_of(success)[0] == [
        "reference",
        *("one in second room", "all in second room", "one in third room", "all in third room", "one out", "all out"),
    ]
    assert cells_of(success) == [[None], *[[0.9], [0.4]] * 3]
    assert returns.lines[0].get_ydata().tolist() == [0]
    without = Arena("open", dataclasses.replace(LEVELS["one door"], goal=None))
    figure = evaluations._figure(evaluation_of(["random", "idle"], [without]))
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["return of an episode", "return over all levels"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["random", "idle"]


def test_the_points_of_a_policy_have_the_colour_of_its_column_and_names_are_short():
    policies = [f"policy {number}" for number in range(8)]
    success, returns, *_ = evaluations._figure(evaluation_of(policies, curated(1))).axes
    assert [text.get_color() for text in success.texts if text.get_text() == "●"] == list(figures.COLOURS[:8])
    assert [line.get_color() for line in returns.lines[:8]] == list(figures.COLOURS[:8])
    assert len(figures_in(success)) == 8  # there is no room for intervals
    success, _ = evaluations._figure(evaluation_of(["runs/a$b$/checkpoint.safetensors"], curated(1))).axes
    assert labels_of(success)[1] == ["runs/a$b$"]
    assert not success.get_xticklabels()[0].get_parse_math()


# ---- Heat maps count where the agents of a recording were


def test_every_agent_is_counted_once_a_step_where_it_is(tmp_path):
    expected, positions = {}, []
    with doorstep.Simulator(3, seed=4) as sim, RecordingWriter(tmp_path / "walk.rec", sim) as writer:
        for step in range(25):
            sim.actions[:] = (2, step % 8, 2, 0)
            writer.step()
            positions.append(sim.state.body_positions.copy_to_host()[:, :2, :2].reshape(-1, 2))
    visits = count_visits(tmp_path / "walk.rec")
    for x, y in np.concatenate(positions).tolist():
        cell = (int((x - visits.low[0]) // 0.5), int((y - visits.low[1]) // 0.5))
        expected[cell] = expected.get(cell, 0) + 1
    assert visits.counts.sum() == 25 * 3 * 2
    assert {cell: int(visits.counts[cell]) for cell in expected} == expected
    assert set(visits.statics[:, 0]) == {EntityKind.WALL, EntityKind.DOOR}
    assert visits.shares.max() == 1  # walls that all worlds have are whole
    doors = visits.statics[:, 0] == EntityKind.DOOR
    assert visits.shares[doors].sum() == pytest.approx(3)  # a world has three, at places of its own


def test_steps_beyond_the_picture_are_counted_by_side():
    positions = np.array([[0, 5], [0, -1], [0, 11], [9, 12], [-6, 5], [6, 5], [7, 5.0]])
    assert heat_maps._count_beyond(positions, np.array([-5.0, 0]), np.array([5.0, 10])).tolist() == [1, 2, 1, 2]


def test_maps_say_where_agents_beyond_them_were():
    low, high, statics = np.array([-5.0, 0]), np.array([5.0, 10]), np.array([[EntityKind.WALL, 0, 0.5, 10, 1]])
    counts = np.zeros((20, 20))
    counts[3, 4] = 96
    seen = Visits("all.rec", low, high, counts, np.zeros(4), statics, np.ones(1))
    left = dataclasses.replace(seen, title="left.rec", beyond=np.array([0.0, 3, 0.5, 0.5]))
    first, second, bar = heat_maps._figure([seen, left]).axes
    assert first.get_xlabel() == "x, m\n"
    assert second.get_xlabel().splitlines() == [
        *("x, m", "3% of steps beyond y = 10 m"),
        *("below 1% of steps beyond x = -5 m", "below 1% of steps beyond x = 5 m"),
    ]
    assert second.images[0].get_array().max() == pytest.approx(0.96)
    filled, outline = second.patches
    assert (filled.get_bbox().bounds, outline.get_bbox().bounds) == ((-5, 0, 10, 1), (-5, 0, 10, 1))
    assert filled.zorder < second.images[0].zorder < outline.zorder
    assert bar.get_xlabel() == "share of the agents' steps in a cell of 0.5 m x 0.5 m"


def test_pictures_and_mistakes(tmp_path):
    with doorstep.Simulator(2) as sim, RecordingWriter(tmp_path / "a.rec", sim) as writer:
        writer.step()
    with doorstep.Simulator(2) as sim, RecordingWriter(tmp_path / "none.rec", sim):
        pass
    plot_positions([tmp_path / "a.rec"] * 2, tmp_path / "map.svg")
    assert (tmp_path / "map.svg").read_bytes().startswith(b"<?xml")
    refuses(r"none\.rec has no steps", plot_positions, [tmp_path / "none.rec"], tmp_path / "map.png")
    for refused in ([], "a.rec", True, 3):
        refuses("a sequence of files of recordings", plot_positions, refused, tmp_path / "map.png")
    assert not (tmp_path / "map.png").exists()


# ---- The style of all plots


def test_the_style_does_not_depend_on_the_settings_of_users_and_leaves_them():
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "grid.color": "red"}):
        with figures.styled():
            axis = figures.new_figure(2).subplots()
            assert matplotlib.rcParams["font.size"] < 12
        assert matplotlib.rcParams["font.size"] == 30
    assert matplotlib.colors.to_hex(axis.get_facecolor()) == "#ffffff"
