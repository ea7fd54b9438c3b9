"""Learning curves: which runs are one curve, what is smoothed, and logs as crashes leave them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pkg.plots.run_folders import level_record_of, record_of, write_run

from doorstep.errors import ArgumentError
from doorstep.plots import plot_runs
from doorstep.plots.curves import _curve, _figure, _smoothed
from doorstep.plots.figures import COLOURS
from doorstep.plots.level_maps import by_levels, last_success
from doorstep.plots.runs import Run, grouped, read_run

pytest.importorskip("matplotlib")


def test_runs_that_differ_only_in_seeds_and_length_are_one_curve(tmp_path: Path) -> None:
    runs = [
        read_run(write_run(tmp_path / name, [record_of(1)] * length, seed, rate))
        for name, length, seed, rate in (("slow-1", 1, 1, 0.1), ("fast-1", 1, 1, 0.5), ("slow-2", 3, 2, 0.1))
    ]
    groups = grouped(runs)
    assert {label: [run.folder.name for run in members] for label, members in groups.items()} == {
        "slow (2 runs)": ["slow-1", "slow-2"],
        "fast-1": ["fast-1"],
    }


def test_runs_without_configs_are_curves_of_their_own(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, [record_of(1)]) for name in ("one", "two")]
    (folders[0] / "config.json").unlink()
    (folders[1] / "config.json").write_text("{")
    assert list(grouped([read_run(folder) for folder in folders])) == ["one", "two"]


def test_records_become_arrays_and_a_cut_line_is_left_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [record_of(1, returns=None), record_of(2, returns=1.5)])
    with open(folder / "log.jsonl", "a") as log:
        log.write(json.dumps(record_of(3))[:60])
    run = read_run(folder)
    assert run.world_steps.tolist() == [1000, 2000]
    assert run.returns.tolist() == pytest.approx([float("nan"), 1.5], nan_ok=True)
    assert run.rooms_one[:, 1].tolist() == [1.0, 0.5, 0.0]
    assert run.rooms_all[:, 1].tolist() == [0.5, 0.25, 0.0]


@pytest.mark.parametrize(
    "change",
    [
        *({"seconds": float("nan")}, {"world_steps": 10**400}, {"episodes": True}, {"mean_return": "1"}),
        *({"rooms_one": [1, 0.5, "x"]}, {"rooms_all": [1, None, 0]}, {"levels": {"one": {"episodes": 10**400}}}),
    ],
)
def test_records_with_other_values_than_numbers_are_left_out(change: dict[str, Any], tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [record_of(1), {**record_of(2), **change}, record_of(3)])
    assert read_run(folder).updates.tolist() == [1, 3]


def test_points_are_means_over_the_episodes_of_the_last_updates() -> None:
    values, episodes = np.array([1.0, np.nan, 4.0, 10.0]), np.array([1.0, 0.0, 3.0, 1.0])
    assert _smoothed(values, episodes, 1).tolist() == pytest.approx([1, float("nan"), 4, 10], nan_ok=True)
    assert _smoothed(values, episodes, 2).tolist() == pytest.approx([1, 1, 4, (3 * 4 + 10) / 4])


def test_a_curve_goes_on_as_long_as_one_of_its_runs() -> None:
    ahead = (np.array([0.0, 10.0, 20.0]), np.array([0.0, 10.0, 20.0]))
    flat = (np.array([0.0, 10.0]), np.array([4.0, 4.0]))
    curve = _curve([ahead, flat])
    assert curve.x[-1] == 20
    at_ten = int(np.flatnonzero(curve.x == 10)[0])
    assert (curve.low[at_ten], curve.mean[at_ten], curve.high[at_ten]) == pytest.approx((4, 7, 10))
    assert (curve.low[-1], curve.mean[-1], curve.high[-1]) == pytest.approx((20, 20, 20))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("x", "ending", "begins"),
    [("steps", ".png", b"\x89PNG"), ("seconds", ".svg", b"<?xml"), ("updates", ".pdf", b"%PDF")],
)
def test_pictures_are_of_the_kind_that_their_name_says(tmp_path: Path, x: str, ending: str, begins: bytes) -> None:
    one = write_run(tmp_path / "a-0", [record_of(update) for update in range(1, 120)], 0)
    other = write_run(tmp_path / "a-1", [record_of(update) for update in range(1, 4)], 1)
    alone = write_run(tmp_path / "b", [record_of(1, returns=None)], 0, 0.5)
    plot_runs([one, other, alone], tmp_path / f"curves{ending}", x=x)
    picture = (tmp_path / f"curves{ending}").read_bytes()
    assert picture.startswith(begins)


def test_folders_without_a_run_and_empty_logs_are_named(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(ArgumentError, match=r"none has no log\.jsonl; it must be the folder of a run"):
        plot_runs([tmp_path / "none"], tmp_path / "curves.png")
    empty = write_run(tmp_path / "empty", [])
    with pytest.raises(ArgumentError, match=r"empty/log\.jsonl has no complete record \(wait"):
        plot_runs([empty], tmp_path / "curves.png")
    refused: Any
    for refused in ((), "empty", b"empty", True, 3):
        with pytest.raises(ArgumentError, match="a sequence of folders of runs"):
            plot_runs(refused, tmp_path / "curves.png")
    with pytest.raises(ArgumentError, match="x is 'days'"):
        plot_runs([empty], tmp_path / "curves.png", x="days")
    with pytest.raises(ArgumentError, match=r"\.png or \.svg or \.pdf"):
        plot_runs([empty], tmp_path / "curves.txt")
    assert not list(tmp_path.glob("curves*"))


def panels_of(runs: dict[str, list[Run]], x: str = "steps") -> dict[str, Any]:
    """The axes of a figure by title; maps of levels have the titles of their runs."""
    return {axis.get_title(loc="left"): axis for axis in _figure(runs, x).axes}


def rows_of(axis: Any) -> dict[str, list[float | None]]:
    """The cells of a map by level; None: no episode ended."""
    (mesh,) = axis.collections
    names = [label.get_text() for label in axis.get_yticklabels()]
    return dict(zip(names, mesh.get_array().tolist(), strict=True))


def test_panels_are_of_what_runs_have(tmp_path: Path) -> None:
    with_levels = read_run(write_run(tmp_path / "levels", [level_record_of(1, 0.25, {"relay": (2, 1)})]))
    with_doors = read_run(write_run(tmp_path / "rooms", [record_of(1)]))
    neither = read_run(write_run(tmp_path / "none", [record_of(1, returns=None)]))
    always = {"return of an episode", "world-steps per second"}
    doors = {f"episodes past door {door}" for door in (1, 2, 3)}
    assert set(panels_of({"run": [neither]})) == always
    assert set(panels_of({"run": [with_doors]})) == always | doors
    assert set(panels_of({"run": [with_levels]})) == always | {"success, mean over levels", ""}
    assert set(panels_of({"a": [with_levels], "b": [with_doors]})) == (
        always | doors | {"success, mean over levels", "a"}
    )


@pytest.mark.parametrize(
    ("x", "label", "at"), [("steps", "steps of worlds", 2e3), ("seconds", "time, s", 1), ("updates", "updates", 2)]
)
def test_curves_are_drawn_over_the_axis_that_is_asked_for(tmp_path: Path, x: str, label: str, at: float) -> None:
    panel = panels_of({"run": [read_run(write_run(tmp_path / "run", [record_of(2)]))]}, x)["episodes past door 1"]
    assert panel.get_xlabel() == label
    assert panel.lines[1].get_xdata().tolist() == [at]


def test_curves_are_means_in_a_band_and_doors_have_two(tmp_path: Path) -> None:
    runs = [
        read_run(write_run(tmp_path / f"run{seed}", [record_of(update, returns=value) for update in (1, 2)], seed))
        for seed, value in enumerate((1.0, 2.0))
    ]
    panels = panels_of({"run (2 runs)": runs})
    (line,) = panels["return of an episode"].lines
    assert set(line.get_ydata()) == {1.5}
    (band,) = panels["return of an episode"].collections
    assert {y for _, y in band.get_paths()[0].vertices.tolist()} == {1.0, 2.0}
    dashed, solid = panels["episodes past door 2"].lines
    assert (set(dashed.get_ydata()), set(solid.get_ydata())) == ({0.5}, {0.25})
    assert solid.get_linestyle() == "-" != dashed.get_linestyle()


def test_runs_with_levels_show_their_success_in_each_level(tmp_path: Path) -> None:
    records = [
        level_record_of(1, 0.25, {"spiral": (4, 1)}),
        level_record_of(2, 0.5, {"spiral": (2, 0), "relay": (8, 2)}),
    ]
    panels = panels_of({"run": [read_run(write_run(tmp_path / "run", records))]})
    (mean,) = panels["success, mean over levels"].lines
    assert (mean.get_xdata().tolist(), mean.get_ydata().tolist()) == ([1000, 2000], [0.25, 0.5])
    assert rows_of(panels[""]) == {"relay": [None, 0.25], "spiral": [0.25, 0.0]}  # which is solved more often at last
    assert [text.get_text() for text in panels[""].texts] == ["25%", "0%"]


def test_maps_are_of_runs_that_have_a_level_in_common(tmp_path: Path) -> None:
    groups = {
        name: [read_run(write_run(tmp_path / name, [level_record_of(1, 0, dict.fromkeys(levels, (1, 0)))]))]
        for name, levels in (("a", ["spiral"]), ("b", ["relay"]), ("c", ["spiral", "apart"]), ("d", []))
    }
    assert [list(part) for part in by_levels(groups)] == [["a", "c"], ["b"]]
    panels = panels_of(groups)
    assert rows_of(panels["a"]) == {"apart": [None], "spiral": [0.0]}
    assert rows_of(panels["b"]) == {"relay": [0.0]}
    assert np.isnan(last_success(groups["b"], "spiral"))


def test_curves_and_their_names_have_one_colour(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / f"run{rate}", [record_of(1)], learning_rate=rate) for rate in range(10)]
    figure = _figure(grouped([read_run(folder) for folder in folders]), "steps")
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"run{rate}" for rate in range(10)]
    assert [line.get_color() for line in legend.get_lines()] == list(COLOURS)
    assert [line.get_color() for line in figure.axes[0].lines] == list(COLOURS)


@pytest.mark.parametrize(
    "levels",
    [
        *(3, {"a": 3}, {"a": {"episodes": 1}}, {"a": {"episodes": 1, "successes": "1"}}),
        {"\ud800": {"episodes": 1, "successes": 1}},
    ],
)
def test_records_with_other_levels_are_no_records(levels: Any, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no complete record"):
        read_run(write_run(tmp_path / "run", [{**record_of(1), "levels": levels}]))
