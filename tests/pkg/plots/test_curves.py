"""Learning curves: which runs are one curve, what is smoothed, and logs as crashes leave them."""

import json

import numpy as np
import pytest
from tests.pkg.plots.run_folders import level_record_of, record_of, write_run
from tests.refuses import refuses

from doorstep.plots import plot_runs
from doorstep.plots.curves import _curve, _figure, _smoothed
from doorstep.plots.figures import COLOURS
from doorstep.plots.level_maps import by_levels, last_success
from doorstep.plots.runs import grouped, read_run

pytest.importorskip("matplotlib")


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
    assert _smoothed(values, episodes, 1).tolist() == pytest.approx([1, float("nan"), 4, 10], nan_ok=True)
    assert _smoothed(values, episodes, 2).tolist() == pytest.approx([1, 1, 4, (3 * 4 + 10) / 4])
    ahead = (np.array([0.0, 10.0, 20.0]), np.array([0.0, 10.0, 20.0]))
    curve = _curve([ahead, (np.array([0.0, 10.0]), np.array([4.0, 4.0]))])
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
    return {axis.get_title(loc="left"): axis for axis in _figure(runs, x).axes}


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
    figure = _figure(grouped(runs), "steps")
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"run{rate}" for rate in range(10)]
    assert [line.get_color() for line in legend.get_lines()] == list(COLOURS)
    assert [line.get_color() for line in figure.axes[0].lines] == list(COLOURS)
