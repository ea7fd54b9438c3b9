"""`python -m doorstep.compat.madrona_escape_room SCRIPT ARGS...`: scripts run as `python SCRIPT ARGS...` would, and the
action dumps that they leave are read."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.forks import server
from tests.refuses import refuses

import doorstep
from doorstep.compat.madrona_escape_room.action_dump import read_action_dump

SCRIPTS = Path(__file__).parent / "scripts"
WORLDS = 5


def run(*arguments, folder=None):
    command = [sys.executable, "-m", "doorstep.compat.madrona_escape_room", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=240, check=False)


def test_a_benchmark_leaves_a_dump_that_replays(tmp_path):
    """In a fork of a server that has imported PyTorch, which takes longer than the script."""
    pytest.importorskip("torch")
    code = "import runpy; runpy.run_module('doorstep.compat.madrona_escape_room', run_name='__main__', alter_sys=True)"
    arguments = (str(SCRIPTS / "benchmark.py"), "5", "60", str(tmp_path / "dump"))
    finished = server("torch").run(code, *arguments, timeout=240)
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


def test_tracebacks_show_the_script_alone():
    finished = run(str(SCRIPTS / "exits.py"), "error")
    assert finished.returncode == 1
    lines = finished.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith(f'  File "{SCRIPTS / "exits.py"}", line ')
    assert lines[1].endswith(", in <module>")
    assert lines[-1] == "ValueError: left with an error"
    assert "compat" not in finished.stderr.replace(str(SCRIPTS), "")


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


# ---- Action dumps of the reference


def test_what_is_no_regular_file_is_refused_at_once(irregular_file):
    refuses("must be a regular file", read_action_dump, irregular_file, WORLDS, argument="path")


def test_sizes_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "dump"
    np.arange(1200, dtype="<i4").tofile(path)
    assert (read_action_dump(path, WORLDS, 6).ravel() == np.arange(1200)).all()
    with pytest.raises(doorstep.StateError, match=r"has 4800 bytes, but a step of 7 worlds with 2 agents takes 224"):
        read_action_dump(path, 7)
    path.write_bytes(path.read_bytes()[:-1])
    refuses("has 4799 bytes", read_action_dump, path, WORLDS, error=doorstep.StateError)
    for worlds, agents, argument in ((0, 2, "num_worlds"), (-1, 2, "num_worlds"), (5, 0, "num_agents")):
        refuses(f"^{argument} is .*an integer, 1 to", read_action_dump, path, worlds, agents, argument=argument)
    path.write_bytes(b"")
    assert read_action_dump(path, WORLDS).shape == (0, WORLDS, 2, 4)
    refuses(None, read_action_dump, tmp_path / "missing", WORLDS, error=FileNotFoundError)
