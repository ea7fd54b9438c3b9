"""`doorstep plot`: folders of runs are curves, recordings are heat maps."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.pkg.plots.run_folders import record_of, write_run

import doorstep
from doorstep.cli import main
from doorstep.cli.plot import AXES
from doorstep.plots import figures
from doorstep.recording import RecordingWriter


def test_folders_become_curves_and_recordings_heat_maps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    run = write_run(tmp_path / "run", [record_of(1), record_of(2)])
    with doorstep.Simulator(2) as sim, RecordingWriter(tmp_path / "a.rec", sim) as writer:
        writer.step()
    assert main(["plot", str(run), "--output", str(tmp_path / "c.png"), "--x", "seconds"]) == 0
    assert main(["plot", str(tmp_path / "a.rec"), "--output", str(tmp_path / "h.png")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'c.png'}: 1 run\n{tmp_path / 'h.png'}: 1 recording\n"
    assert (tmp_path / "c.png").read_bytes() != (tmp_path / "h.png").read_bytes()

    output = str(tmp_path / "other.png")
    assert main(["plot", str(run), str(tmp_path / "a.rec"), "--output", output]) == 2
    assert f"a.rec is a file and {run} a folder; one picture shows either" in capsys.readouterr().err
    assert main(["plot", str(tmp_path / "a.rec"), "--x", "steps", "--output", output]) == 2
    assert "--x chooses the axis of learning curves; recordings are drawn as heat maps" in capsys.readouterr().err
    for other in ([], [str(run)], [str(tmp_path / "a.rec")]):
        assert main(["plot", *other, str(tmp_path / "missing"), "--output", output]) == 2
        assert "missing does not exist (name folders of doorstep train" in capsys.readouterr().err
    assert main(["plot", str(run), "--output", str(tmp_path / "c.txt")]) == 2
    assert "must end in .png or .svg or .pdf" in capsys.readouterr().err
    assert not Path(output).exists()


def test_matplotlib_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["plot", str(tmp_path), "--output", str(tmp_path / "c.png")]) == 1
    assert 'pip install "doorstep[plot]"' in capsys.readouterr().err


def test_axes_of_the_command_are_those_of_the_package() -> None:
    assert set(AXES) == set(figures.AXES)
