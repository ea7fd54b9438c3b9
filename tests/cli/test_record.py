"""`doorstep record` and `doorstep replay`: what is recorded replays, and differences are an exit code of their own."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
from tests.pkg import recording_files as files

import doorstep
from doorstep.cli import main
from doorstep.policy import SamplingParams, load_policy
from doorstep.recording import Recording


def test_what_is_recorded_is_what_was_asked_for_and_replays(run, tmp_path):
    options = ("--worlds", "6", "--agents", "3", "--seed", "4", "--steps", "70", "--episode-length", "30")
    said = run("record", *options, "--levels", "room_types", "--hash-interval", "20", "--threads", "2")
    size = (tmp_path / "doorstep.rec").stat().st_size
    assert said == f"doorstep.rec: 70 steps of 6 worlds, {size:,} bytes\n"
    with Recording("doorstep.rec") as recording:
        assert recording.config == doorstep.SimulatorConfig(6, num_agents=3, seed=4, episode_length=30, max_levels=4)
        assert recording.hashed_steps == (0, 20, 40, 60, 70)
        random = load_policy("random", sampling=SamplingParams(seed=4))
        for step in range(70):
            assert (recording.actions(step) == random(np.empty((6, 3, 94)))).all()
    said = run("replay", "doorstep.rec", "--threads", "1")
    assert said == "doorstep.rec: 70 steps of 6 worlds replayed on cpu, all worlds equal in 5 comparisons\n"


def test_a_start_among_the_cubes_is_recorded(run):
    run("record", "--start", "rooms", "--worlds", "16", "--steps", "25", "--episode-length", "9", "--output", "run.rec")
    with Recording("run.rec") as recording:
        assert (recording.num_steps, recording.same_version_only) == (25, True)
    run("replay", "run.rec")


def test_a_difference_is_exit_code_3(run, capsys):
    run("record", "--worlds", "2", "--steps", "70", "--output", "run.rec")

    def change(chunk):
        return chunk._replace(payload=chunk.payload[:8] + bytes(8))

    Path("run.rec").write_bytes(files.with_changed(Path("run.rec").read_bytes(), "HASH", 2, change))
    assert main(["replay", "run.rec"]) == 3
    output = capsys.readouterr()
    assert output.out == ""
    *_, last = output.err.splitlines()
    assert last.startswith("doorstep replay: error: run.rec: world 1 differs from the recording after step 70;")


def test_a_truncated_recording_is_replayed_on_demand(run, refused):
    run("record", "--worlds", "2", "--steps", "100", "--output", "run.rec")
    Path("run.rec").write_bytes(Path("run.rec").read_bytes()[:-100])
    assert "is truncated" in refused("replay", "run.rec")
    assert run("replay", "run.rec", "--incomplete").startswith("run.rec: 64 steps of 2 worlds replayed on cpu")


def test_an_interrupted_recording_has_all_its_steps(tmp_path):
    path = tmp_path / "run.rec"
    arguments = ["record", "--worlds", "2", "--steps", "100000000", "--output", str(path)]
    with subprocess.Popen([sys.executable, "-m", "doorstep", *arguments], stderr=subprocess.PIPE) as process:
        part = tmp_path / "run.rec.0.part"
        while not part.exists() or part.stat().st_size < 5000:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, b"Traceback" in errors) == (130, False)
    assert errors.endswith(b"doorstep record: interrupted\n")
    with Recording(path) as recording:
        assert recording.num_steps > 64
        recording.replay()
