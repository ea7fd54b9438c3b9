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


def run(*arguments, folder=None):
    command = [sys.executable, "-m", "doorstep.compat.madrona_escape_room", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=240, check=False)


def run_with_torch(name, *arguments):
    """In a fork of a server that has imported PyTorch, which takes longer than the scripts."""
    pytest.importorskip("torch")
    code = "import runpy; runpy.run_module('doorstep.compat.madrona_escape_room', run_name='__main__', alter_sys=True)"
    return server("torch").run(code, str(SCRIPTS / name), *arguments, timeout=240)


# ---- What scripts do


def test_a_script_reaches_the_whole_surface():
    finished = run_with_torch("whole_surface.py", "--num-worlds", "3")
    assert (finished.returncode, finished.stderr) == (0, "")
    seen = json.loads(finished.stdout)
    assert seen["tensors"]["lidar_tensor"] == [[3, 2, 30, 2], "torch.float32"]
    assert len(seen["tensors"]) == 10
    assert seen["agents_moved"] == [True, False]
    assert seen["wrapped"] == [[0, 1, 2], [3, 4, 5]]
    assert seen["modes"] == ["CPU", "CUDA"]
    finished = run_with_torch("whole_surface.py", "--num-worlds", "3", "--gpu-sim")
    assert finished.returncode == 1
    assert "doorstep.errors." in finished.stderr.splitlines()[-1]
    assert "whole_surface.py" in finished.stderr


def test_a_training_script_learns_from_94_features():
    finished = run_with_torch("train.py", "--num-worlds", "4", "--num-updates", "6")
    assert (finished.returncode, finished.stderr) == (0, "")
    # 40 steps an update: the first episodes, of 4 worlds with 2 agents, end in the fifth
    lines = [f"update {i}: features 94, episodes {count}" for i, count in enumerate([0, 0, 0, 0, 8, 0])]
    assert finished.stdout.splitlines() == lines


def test_a_benchmark_leaves_a_dump_that_replays(tmp_path):
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


def test_a_script_ends_as_it_says():
    path = str(SCRIPTS / "exits.py")
    for how, code, says in (("normally", 0, ""), ("three", 3, ""), ("message", 1, "a last word\n")):
        finished = run(path, how, "--flag")
        assert (finished.returncode, finished.stderr) == (code, says)
        assert finished.stdout == f"__main__ {[path, how, '--flag']} SimManager {path}\n"
    assert run(path, "key").returncode == -signal.SIGINT


def test_tracebacks_show_the_script_alone(tmp_path):
    finished = run(str(SCRIPTS / "exits.py"), "error")
    assert finished.returncode == 1
    lines = finished.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith(f'  File "{SCRIPTS / "exits.py"}", line ')
    assert lines[1].endswith(", in <module>")
    assert lines[-1] == "ValueError: left with an error"
    assert "compat" not in finished.stderr.replace(str(SCRIPTS), "")
    (tmp_path / "broken.py").write_text("x = (\n")
    finished = run("broken.py", folder=tmp_path)
    assert finished.returncode == 1
    lines = finished.stderr.splitlines()
    assert lines[0].startswith("  File ")
    assert "broken.py" in lines[0]
    assert lines[-1].startswith("SyntaxError: ")


def test_a_script_imports_and_pickles_as_it_would(tmp_path):
    """Modules beside it and not in the current folder; every way to import gives the same module."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "script.py").write_text(
        "import pickle, sys, beside\n"
        "import madrona_escape_room\n"
        "import madrona_escape_room.madrona\n"
        "import madrona_escape_room.madrona as one\n"
        "from madrona_escape_room import madrona as two, SimManager\n"
        "from madrona_escape_room.madrona import ExecMode\n"
        "from doorstep.compat.madrona_escape_room import madrona as three\n"
        "class Thing: pass\n"
        "print(beside.WHERE, sys.path[0])\n"
        "print(one is two is three is madrona_escape_room.madrona, ExecMode is one.ExecMode)\n"
        "print(type(pickle.loads(pickle.dumps(Thing()))) is Thing)\n"
    )
    (tmp_path / "scripts" / "beside.py").write_text("WHERE = 'beside the script'")
    (tmp_path / "beside.py").write_text("WHERE = 'in the current folder'")
    finished = run("scripts/script.py", folder=tmp_path)
    assert finished.stdout == f"beside the script {tmp_path / 'scripts'}\nTrue True\nTrue\n"
    assert finished.stderr == ""


def test_the_name_exists_only_where_a_script_was_started_this_way(run_python):
    code = "import importlib.util as util, doorstep.compat.madrona_escape_room"
    assert run_python(f"{code}\nprint(util.find_spec('madrona_escape_room'))") == "None\n"


def test_without_a_script_there_is_an_error(tmp_path):
    finished = run("missing.py", folder=tmp_path)
    assert finished.returncode == 2
    assert finished.stderr.endswith("can't open file 'missing.py': No such file or directory\n")
    finished = run()
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.startswith("usage: python -m doorstep.compat.madrona_escape_room SCRIPT")
    assert run("--help").returncode == 0
