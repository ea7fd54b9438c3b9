"""`python -m doorstep.compat.madrona_escape_room SCRIPT ARGS...`: scripts run as `python SCRIPT ARGS...` would."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.forks import server

import doorstep
from doorstep.compat.madrona_escape_room.action_dump import read_action_dump

SCRIPTS = Path(__file__).parent / "scripts"

Finished = subprocess.CompletedProcess[str]


def run(*arguments: str, folder: Path | None = None) -> Finished:
    return subprocess.run(
        [sys.executable, "-m", "doorstep.compat.madrona_escape_room", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=240,
        check=False,
    )


def run_script(name: str, *arguments: str) -> Finished:
    return run(str(SCRIPTS / name), *arguments)


def run_with_torch(name: str, *arguments: str) -> Finished:
    """In a fork of a server that has imported PyTorch, which takes longer than the scripts."""
    code = "import runpy; runpy.run_module('doorstep.compat.madrona_escape_room', run_name='__main__', alter_sys=True)"
    return server("torch").run(code, str(SCRIPTS / name), *arguments, timeout=240)


# ---- What scripts do


def test_a_script_reaches_the_whole_surface() -> None:
    pytest.importorskip("torch")
    finished = run_with_torch("whole_surface.py", "--num-worlds", "3")
    assert (finished.returncode, finished.stderr) == (0, "")
    seen = json.loads(finished.stdout)
    assert seen["tensors"] == {
        "reset_tensor": [[3, 1], "torch.int32"],
        "action_tensor": [[3, 2, 4], "torch.int32"],
        "reward_tensor": [[3, 2, 1], "torch.float32"],
        "done_tensor": [[3, 2, 1], "torch.int32"],
        "self_observation_tensor": [[3, 2, 8], "torch.float32"],
        "partner_observations_tensor": [[3, 2, 1, 3], "torch.float32"],
        "room_entity_observations_tensor": [[3, 2, 6, 3], "torch.float32"],
        "door_observation_tensor": [[3, 2, 3], "torch.float32"],
        "lidar_tensor": [[3, 2, 30, 2], "torch.float32"],
        "steps_remaining_tensor": [[3, 2, 1], "torch.int32"],
    }
    assert seen["in_place"]
    assert seen["agents_moved"] == [True, False]
    assert seen["wrapped"] == [[0, 1, 2], [3, 4, 5]]
    assert seen["modes"] == ["CPU", "CUDA"]


def test_a_script_that_asks_for_a_gpu_is_told_why_not() -> None:
    pytest.importorskip("torch")
    finished = run_with_torch("whole_surface.py", "--num-worlds", "3", "--gpu-sim")
    assert finished.returncode == 1
    assert "doorstep.errors." in finished.stderr.splitlines()[-1]
    assert "whole_surface.py" in finished.stderr


def test_a_training_script_learns_from_94_features() -> None:
    pytest.importorskip("torch")
    finished = run_with_torch("train.py", "--num-worlds", "4", "--num-updates", "6")
    assert (finished.returncode, finished.stderr) == (0, "")
    lines = finished.stdout.splitlines()
    # 40 steps an update: the first episodes, of 4 worlds with 2 agents, end in the fifth
    episodes = [0, 0, 0, 0, 8, 0]
    assert lines == [f"update {i}: features 94, episodes {count}" for i, count in enumerate(episodes)]


def test_a_benchmark_leaves_a_dump_that_replays(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    finished = run_with_torch("benchmark.py", "5", "60", str(tmp_path / "dump"))
    assert (finished.returncode, finished.stderr) == (0, "")
    frames, position = finished.stdout.splitlines()
    assert float(frames.removeprefix("FPS ")) > 0
    with doorstep.Simulator(5, seed=5) as sim:
        for actions in read_action_dump(tmp_path / "dump", 5):
            sim.actions.to_numpy()[:] = actions
            sim.step()
        expected = sim.self_observations.to_numpy()[0, 0, 2:4]
    assert (np.array(position.split()[1:], np.float32) == expected).all()


# ---- As python itself would


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [("normally", 0, ""), ("zero", 0, ""), ("three", 3, ""), ("message", 1, "a last word\n")],
)
def test_exit_codes_are_those_of_the_script(how: str, code: int, says: str) -> None:
    finished = run_script("exits.py", how, "--flag")
    assert (finished.returncode, finished.stderr) == (code, says)
    path = str(SCRIPTS / "exits.py")
    assert finished.stdout == f"__main__ {[path, how, '--flag']} SimManager {path}\n"


def test_a_traceback_shows_the_script_alone() -> None:
    finished = run_script("exits.py", "error")
    assert finished.returncode == 1
    lines = finished.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith(f'  File "{SCRIPTS / "exits.py"}", line ')
    assert lines[1].endswith(", in <module>")
    assert lines[-1] == "ValueError: left with an error"
    assert "compat" not in finished.stderr.replace(str(SCRIPTS), "")


def test_an_interrupt_ends_the_process_as_usual() -> None:
    assert run_script("exits.py", "key").returncode == -signal.SIGINT


def test_a_syntax_error_is_reported_as_usual(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("x = (\n")
    finished = run("broken.py", folder=tmp_path)
    assert finished.returncode == 1
    lines = finished.stderr.splitlines()
    assert "broken.py" in lines[0]
    assert lines[0].startswith("  File ")
    assert lines[-1].startswith("SyntaxError: ")


def test_a_script_finds_modules_beside_it_and_not_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "script.py").write_text("import sys, beside; print(beside.WHERE, sys.path[0])")
    (tmp_path / "scripts" / "beside.py").write_text("WHERE = 'beside the script'")
    (tmp_path / "beside.py").write_text("WHERE = 'in the current folder'")
    finished = run("scripts/script.py", folder=tmp_path)
    assert finished.stdout == f"beside the script {tmp_path / 'scripts'}\n"


def test_classes_of_a_script_can_be_pickled(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import pickle\nclass Thing: pass\nprint(type(pickle.loads(pickle.dumps(Thing()))) is Thing)\n"
    )
    assert run("script.py", folder=tmp_path).stdout == "True\n"


def test_every_way_to_import_gives_the_same_module(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import madrona_escape_room\n"
        "import madrona_escape_room.madrona\n"
        "import madrona_escape_room.madrona as one\n"
        "from madrona_escape_room import madrona as two, SimManager\n"
        "from madrona_escape_room.madrona import ExecMode\n"
        "from doorstep.compat.madrona_escape_room import madrona as three\n"
        "print(one is two is three is madrona_escape_room.madrona, ExecMode is one.ExecMode)\n"
    )
    finished = run("script.py", folder=tmp_path)
    assert (finished.stdout, finished.stderr) == ("True True\n", "")


def test_the_name_exists_only_where_a_script_was_started_this_way() -> None:
    code = (
        "import importlib.util, doorstep.compat.madrona_escape_room; "
        "print(importlib.util.find_spec('madrona_escape_room'))"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert finished.stdout == "None\n"


def test_a_missing_script_is_exit_code_2(tmp_path: Path) -> None:
    finished = run("missing.py", folder=tmp_path)
    assert finished.returncode == 2
    assert finished.stderr.endswith("can't open file 'missing.py': No such file or directory\n")


def test_without_a_script_the_usage_is_shown() -> None:
    finished = run()
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.startswith("usage: python -m doorstep.compat.madrona_escape_room SCRIPT")
    assert run("--help").returncode == 0
