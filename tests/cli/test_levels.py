"""`doorstep levels`: lists levels, shows their maps, draws them, and checks whether they can be solved; --levels."""

from pathlib import Path

import numpy as np
import pytest
from tests.render.pixels import read_png

import doorstep
from doorstep.levels import curated, save_levels
from doorstep.recording import Recording


@pytest.fixture(autouse=True)
def _images_are_small(monkeypatch):
    monkeypatch.setattr("doorstep.cli.levels._WIDTH", 60)
    monkeypatch.setattr("doorstep.cli.levels._HEIGHT", 40)


def test_every_level_has_a_line_with_its_parts(run):
    header, *lines = run("levels").splitlines()
    assert header.split() == ["agents", "doors", "buttons", "cubes", "steps", "name"]
    for line, (name, level) in zip(lines, curated().items(), strict=True):
        counts = (len(level.spawns), len(level.doors), len(level.buttons), len(level.cubes), level.episode_length)
        assert line.split()[:5] == [str(number) for number in counts]
        assert f"  {name} " in line
        assert line.endswith(level.description)
    assert run("levels", "reference").splitlines()[1].split()[0] == "reference"  # drawn at every reset


def test_maps_are_reprs_and_levels_are_drawn_into_one_file_or_one_each_into_a_folder(run):
    levels = [curated()["slalom"], curated()["let me in"]]
    Path("each").mkdir()
    save_levels("two.json", levels)
    assert run("levels", "two.json", "--map") == f"{levels[0]!r}\n\n{levels[1]!r}\n"
    run("levels", "two.json", "--output", "sheet.png")
    sheet = read_png(Path("sheet.png").read_bytes())
    assert sheet.shape[0] * sheet.shape[1] > 2 * 60 * 40
    run("levels", "curated", "--output", "each")
    assert {path.stem for path in Path("each").iterdir()} == {name.replace(" ", "_") for name in curated()}
    assert len({path.read_bytes() for path in Path("each").iterdir()}) == len(curated())
    run("levels", "slalom", "--camera", "top", "--output", "top.png")
    with doorstep.Simulator(1, levels="slalom") as sim:
        drawn, top = (sim.render(0, camera, width=60, height=40) for camera in ("overview", "top"))
    assert np.array_equal(read_png(Path("each/slalom.png").read_bytes()), drawn)
    assert np.array_equal(read_png(Path("top.png").read_bytes())[-40:, :60], top)


def test_a_check_tells_what_can_be_solved(run):
    assert run("levels", "one door", "--check", "--episodes", "2").startswith("one door  solved in 2 of 2 episodes, ")
    hopeless = curated()["one door"].replace(name="too short", episode_length=3)
    save_levels("mine.json", [hopeless, curated()["one door"]])
    said = run("levels", "mine.json", "--check", "--episodes", "1", code=3)
    assert said.splitlines()[0] == "too short  not solved in 0 of 1 episode"


def test_commands_play_levels_of_a_name_or_a_file(run, refused):
    save_levels("level.json", [curated()["slalom"]])
    for name in ("render", "demo", "record"):
        output, policy = ("out.rec", "scripted") if name == "record" else ("out.png", "random")
        arguments = [name, "--policy", policy, "--steps", "5", "--worlds", "8", "--output", output]
        written = []
        for levels, count in (("curated", 20), ("level.json", 1), ("", 0)):
            written.append(run(*arguments, *(["--levels", levels] if levels else []), wrote=output))
            if name == "record":
                with Recording(output) as recording:
                    assert recording.config.max_levels == count
        assert len(set(written)) == 3
    said = refused("render", "--actions", "out.rec", "--levels", "curated")
    assert "--levels is given together with --actions" in said
