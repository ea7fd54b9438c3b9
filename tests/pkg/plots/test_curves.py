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
from doorstep.plots.curves import _curve, _figure, _last_success, _smoothed
from doorstep.plots.figures import load_matplotlib
from doorstep.plots.runs import grouped, read_run

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


@pytest.mark.parametrize(("ending", "begins"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
@pytest.mark.parametrize("x", ["steps", "seconds", "updates"])
def test_pictures_are_of_the_kind_that_their_name_says(tmp_path: Path, ending: str, begins: bytes, x: str) -> None:
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


def test_runs_with_levels_show_their_success_in_place_of_doors(tmp_path: Path) -> None:
    records = [
        level_record_of(1, 0.25, {"spiral": (4, 1)}),
        level_record_of(2, 0.5, {"spiral": (2, 2), "relay": (8, 2)}),
    ]
    run = read_run(write_run(tmp_path / "run", records))
    figure = _figure({"run": [run]}, "steps", load_matplotlib())
    panels = {axis.get_title(): axis for axis in figure.axes}
    assert not any("door" in title for title in panels)
    (mean,) = panels["success, mean over all levels"].lines
    assert (mean.get_xdata().tolist(), mean.get_ydata().tolist()) == ([1000, 2000], [0.25, 0.5])
    (points,) = panels["success in each level at the end"].lines
    assert points.get_xdata().tolist() == [1.0, 0.25]
    assert [text.get_text() for text in panels["success in each level at the end"].get_yticklabels()] == [
        "spiral",
        "relay",
    ]


def test_runs_with_and_without_levels_are_drawn_together(tmp_path: Path) -> None:
    with_levels = write_run(tmp_path / "levels", [level_record_of(1, 0.25, {"spiral": (0, 0), "relay": (2, 1)})])
    runs = grouped([read_run(with_levels), read_run(write_run(tmp_path / "rooms", [record_of(1)], learning_rate=1))])
    titles = [axis.get_title() for axis in _figure(runs, "steps", load_matplotlib()).axes]
    assert "episodes past door 3" in titles
    assert "success, mean over all levels" in titles
    assert np.isnan(_last_success(runs["levels"], "spiral", 1))


@pytest.mark.parametrize("levels", [3, {"a": 3}, {"a": {"episodes": 1}}, {"a": {"episodes": 1, "successes": "1"}}])
def test_records_with_other_levels_are_no_records(levels: Any, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no complete record"):
        read_run(write_run(tmp_path / "run", [{**record_of(1), "levels": levels}]))
