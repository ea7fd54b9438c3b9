"""`doorstep record` and `doorstep replay`: what is recorded replays, and differences are an exit code of their own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command, Refused
from tests.pkg import recording_files as files

import doorstep
from doorstep.cli import main
from doorstep.levels import GeneratedLevel, curated, save_levels
from doorstep.levels.files import AnyLevel
from doorstep.policy import SamplingParams, load_policy
from doorstep.recording import Recording


def test_what_is_recorded_replays(command: Command, tmp_path: Path) -> None:
    options = ("--worlds", "6", "--agents", "3", "--seed", "4", "--steps", "70", "--episode-length", "30")
    finished = command("record", *options, "--hash-interval", "20", "--threads", "2")
    assert finished.returncode == 0
    size = (tmp_path / "doorstep.rec").stat().st_size
    assert finished.stdout == f"doorstep.rec: 70 steps of 6 worlds, {size:,} bytes\n"
    with Recording(tmp_path / "doorstep.rec") as recording:
        assert recording.config == doorstep.SimulatorConfig(6, num_agents=3, seed=4, episode_length=30)
        assert recording.hashed_steps == (0, 20, 40, 60, 70)
        random = load_policy("random", sampling=SamplingParams(seed=4))
        for step in range(70):
            assert (recording.actions(step) == random(np.empty((6, 3, 94)))).all()
    finished = command("replay", "doorstep.rec", "--threads", "1")
    assert finished.returncode == 0
    assert finished.stdout == (
        "doorstep.rec: 70 steps of 6 worlds replayed on cpu, all worlds equal in 5 comparisons\n"
    )


@pytest.mark.parametrize("options", [["--policy", "idle"], ["--start", "rooms"]])
def test_policies_and_starts_are_recorded(options: list[str], tmp_path: Path) -> None:
    path = str(tmp_path / "run.rec")
    assert main(["record", "--worlds", "4", "--steps", "25", "--episode-length", "9", "--output", path, *options]) == 0
    with Recording(path) as recording:
        assert recording.num_steps == 25
        assert recording.same_version_only == ("rooms" in options)
        recording.replay()


def test_a_seed_fixes_what_a_policy_draws(tmp_path: Path) -> None:
    def record(seed: str) -> bytes:
        path = tmp_path / "run.rec"
        options = ("--policy", "trained", "--worlds", "4", "--steps", "30", "--seed", seed, "--output", str(path))
        assert main(["record", *options]) == 0
        return path.read_bytes()

    assert record("5") == record("5") != record("6")


def test_levels_of_a_file_are_recorded(tmp_path: Path) -> None:
    table: list[AnyLevel] = [GeneratedLevel(room_types=("single_button",) * 3), curated()["one cube"]]
    save_levels(tmp_path / "levels.json", table)
    path = str(tmp_path / "run.rec")
    arguments = ["record", "--worlds", "8", "--steps", "25", "--levels", str(tmp_path / "levels.json")]
    assert main([*arguments, "--output", path]) == 0
    with Recording(path) as recording, doorstep.Simulator.from_config(recording.config) as sim:
        assert recording.config.max_levels == 2
        assert not recording.same_version_only
        recording.replay(sim)
        assert set(sim.level_indices[:, 0].tolist()) == {0, 1}
        assert sim.level_weights[:].tolist() == [[1, 1]] * 8
    assert main(["replay", path]) == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [(["--agents", "3"], "levels[0] has 2 spawns"), (["--start", "rooms"], "--start rooms is given")],
)
def test_levels_that_do_not_fit_the_options_leave_no_file(
    options: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_levels(tmp_path / "levels.json", [curated()["one door"]])
    path = tmp_path / "run.rec"
    assert main(["record", "--levels", str(tmp_path / "levels.json"), "--output", str(path), *options]) == 2
    assert capsys.readouterr().err.startswith(f"doorstep record: error: {says}")
    assert not path.exists()


def test_a_difference_is_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.rec"
    assert main(["record", "--worlds", "2", "--steps", "70", "--output", str(path)]) == 0

    def change(chunk: files.Chunk) -> files.Chunk:
        return chunk._replace(payload=chunk.payload[:8] + bytes(8))

    path.write_bytes(files.with_changed(path.read_bytes(), "HASH", 2, change))
    capsys.readouterr()
    assert main(["replay", str(path)]) == 3
    output = capsys.readouterr()
    assert output.out == ""
    *_, last = output.err.splitlines()
    assert last.startswith(f"doorstep replay: error: {path}: world 1 differs from the recording after step 70;")


def test_a_truncated_recording_is_replayed_on_demand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.rec"
    assert main(["record", "--worlds", "2", "--steps", "100", "--output", str(path)]) == 0
    path.write_bytes(path.read_bytes()[:-100])
    capsys.readouterr()
    assert main(["replay", str(path)]) == 2
    assert "is truncated" in capsys.readouterr().err
    assert main(["replay", str(path), "--incomplete"]) == 0
    assert capsys.readouterr().out.startswith(f"{path}: 64 steps of 2 worlds replayed on cpu")


def test_an_interrupted_recording_has_all_its_steps(tmp_path: Path) -> None:
    path = tmp_path / "run.rec"
    arguments = ["record", "--worlds", "2", "--steps", "100000000", "--output", str(path)]
    with subprocess.Popen(
        [sys.executable, "-m", "doorstep", *arguments], stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        part = tmp_path / "run.rec.0.part"
        while not part.exists() or part.stat().st_size < 5000:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    with Recording(path) as recording:
        assert recording.num_steps > 64
        recording.replay()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["record", "--output", "missing/run.rec"], "record: error: --output missing/run.rec is not a file in an"),
        (["record", "--output", "."], "record: error: --output . is not a file in an existing folder"),
        (["record", "--hash-interval", "0"], "record: error: argument --hash-interval: 0 is not allowed"),
        (["record", "--agents", "9"], "record: error: num_agents is 9"),
        (["record", "--policy", "wise"], "record: error: policy is 'wise'"),
        (["record", "--levels", "missing.json"], "record: error: missing.json: there is no such file; levels"),
        (["record", "--levels", __file__], f"record: error: {__file__}: text is not JSON"),
        (["replay"], "replay: error: the following arguments are required: FILE"),
        (["replay", "missing.rec"], "replay: error: missing.rec: No such file or directory"),
        (["replay", os.devnull], f"replay: error: path is '{os.devnull}'; it must be a regular file"),
        (["replay", __file__], f"replay: error: {__file__} is not a recording of doorstep: it begins"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_file(arguments: list[str], says: str, refused: Refused) -> None:
    assert refused(*arguments).startswith(f"doorstep {says}")
