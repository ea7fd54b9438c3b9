"""`doorstep levels`: lists levels, shows their maps, draws them, and checks whether they can be solved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Refused
from tests.render.pixels import read_png

import doorstep
from doorstep.cli import main
from doorstep.levels import curated, save_levels


@pytest.fixture(autouse=True)
def _images_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doorstep.cli.levels._WIDTH", 60)
    monkeypatch.setattr("doorstep.cli.levels._HEIGHT", 40)


def test_every_curated_level_has_a_line_with_its_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["levels"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["agents", "doors", "buttons", "cubes", "steps", "name"]
    for line, (name, level) in zip(lines, curated().items(), strict=True):
        counts = (len(level.spawns), len(level.doors), len(level.buttons), len(level.cubes), level.episode_length)
        assert line.split()[:5] == [str(number) for number in counts]
        assert f"  {name} " in line
        assert line.endswith(level.description)


def test_levels_that_are_drawn_at_every_reset_have_a_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["levels", "reference"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[0] == "reference"


def test_a_map_is_the_levels_repr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    levels = [curated()["slalom"], curated()["relay"]]
    save_levels(tmp_path / "two.json", levels)
    assert main(["levels", str(tmp_path / "two.json"), "--map"]) == 0
    assert capsys.readouterr().out == f"{levels[0]!r}\n\n{levels[1]!r}\n"


def test_levels_are_drawn_into_one_file_or_one_each_into_a_folder(tmp_path: Path) -> None:
    save_levels(tmp_path / "two.json", [curated()[name] for name in ("slalom", "let me in")])
    assert main(["levels", str(tmp_path / "two.json"), "--output", str(tmp_path / "sheet.png")]) == 0
    sheet = read_png((tmp_path / "sheet.png").read_bytes())
    assert sheet.shape[0] * sheet.shape[1] > 2 * 60 * 40
    (tmp_path / "each").mkdir()
    assert main(["levels", str(tmp_path / "two.json"), "--output", str(tmp_path / "each")]) == 0
    assert sorted(path.name for path in (tmp_path / "each").iterdir()) == ["let_me_in.png", "slalom.png"]
    with doorstep.Simulator(1, levels="slalom") as sim:
        drawn = sim.render(0, "overview", width=60, height=40)
    assert np.array_equal(read_png((tmp_path / "each/slalom.png").read_bytes()), drawn)


@pytest.mark.slow
def test_a_check_tells_what_can_be_solved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["levels", "one door", "--check", "--episodes", "2"]) == 0
    assert capsys.readouterr().out.startswith("one door  solved in 2 of 2 episodes, ")
    hopeless = curated()["one door"].replace(name="too short", episode_length=3)
    save_levels(tmp_path / "mine.json", [curated()["one door"], hopeless])
    assert main(["levels", str(tmp_path / "mine.json"), "--check", "--episodes", "1"]) == 3
    assert capsys.readouterr().out.splitlines()[1] == "too short  not solved in 0 of 1 episode"


def test_a_name_that_is_misspelt_is_refused_with_the_one_that_was_meant(refused: Refused) -> None:
    assert "(did you mean 'one door'?)" in refused("levels", "onedoor")
