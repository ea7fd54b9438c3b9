"""--levels: the commands step the curated levels, or those of a file, under the built-in policies."""

from pathlib import Path

import pytest

from doorstep.cli import main
from doorstep.levels import curated, save_levels
from doorstep.recording import Recording

OUTPUTS = {"render": "out.png", "demo": "out.png", "record": "out.rec"}


@pytest.mark.parametrize("policy", ["random", "scripted"])
@pytest.mark.parametrize("command", OUTPUTS)
def test_the_curated_levels_have_a_name(command: str, policy: str, tmp_path: Path) -> None:
    output = tmp_path / OUTPUTS[command]
    options = ["--levels", "curated", "--policy", policy, "--worlds", "30", "--steps", "12", "--output", str(output)]
    assert main([command, *options]) == 0
    assert output.stat().st_size > 1000
    if command == "record":
        with Recording(output) as recording:
            assert recording.config.max_levels == 20


@pytest.mark.parametrize("name", curated())
def test_every_level_is_drawn_from_a_file(name: str, tmp_path: Path) -> None:
    level, pictures = tmp_path / "level.json", []
    save_levels(level, [curated()[name]])
    for options in (["--levels", str(level)], []):
        output = tmp_path / f"{len(options)}.png"
        drawn = ["render", *options, "--policy", "scripted", "--steps", "3", "--size", "80x60", "--output", str(output)]
        assert main(drawn) == 0
        pictures.append(output.read_bytes())
    assert pictures[0] != pictures[1]


@pytest.mark.parametrize("command", OUTPUTS)
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--agents", "3"], "levels[0] has 2 spawns"),
        (["--start", "rooms"], "--start rooms is given together with --levels"),
        (["--levels", "curatde"], "levels is 'curatde'; it must be 'reference', 'room_types', 'curated', the name of"),
    ],
)
def test_levels_that_do_not_fit_are_refused(
    command: str, options: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / OUTPUTS[command]
    assert main([command, "--levels", "curated", "--output", str(output), *options]) == 2
    assert capsys.readouterr().err.startswith(f"doorstep {command}: error: {says}")
    assert not output.exists()


def test_a_recording_has_its_own_levels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "run.rec")
    assert main(["record", "--levels", "curated", "--worlds", "2", "--steps", "3", "--output", path]) == 0
    assert main(["render", "--actions", path, "--levels", "curated"]) == 2
    assert "--levels is given together with --actions" in capsys.readouterr().err
