"""`doorstep plot`: folders of runs are curves, recordings are heat maps."""

from pathlib import Path

import pytest
from tests.pkg.plots.run_folders import record_of, write_run

import doorstep
from doorstep.cli.plot import AXES
from doorstep.plots import figures, plot_positions, plot_runs
from doorstep.recording import RecordingWriter


def test_folders_become_curves_and_recordings_heat_maps(run, refused):
    pytest.importorskip("matplotlib")
    write_run(Path("run"), [record_of(1), record_of(2)])
    with doorstep.Simulator(2) as sim, RecordingWriter("a.rec", sim) as writer:
        writer.step()
    assert run("plot", "run", "--output", "c.png", "--x", "seconds") == "c.png: 1 run\n"
    assert run("plot", "a.rec", "a.rec", "--output", "h.png") == "h.png: 2 recordings\n"
    plot_runs(["run"], "curves.png", x="seconds")
    plot_positions(["a.rec", "a.rec"], "maps.png")
    assert Path("c.png").read_bytes() == Path("curves.png").read_bytes()
    assert Path("h.png").read_bytes() == Path("maps.png").read_bytes()
    for arguments, says in (
        (("run", "a.rec"), "a.rec is a file and run a folder; one picture shows either"),
        (("a.rec", "--x", "steps"), "--x chooses the axis of learning curves; recordings are drawn as heat maps"),
        (("missing",), "missing does not exist (name folders of doorstep train"),
        (("run", "--output", "c.txt"), "must end in .png or .svg or .pdf"),
    ):
        assert says in refused("plot", "--output", "other.png", *arguments)
    assert set(AXES) == set(figures.AXES)
