"""The programs of docs/tutorial/ten_programs.md are short, and run one after another, with smaller numbers."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest
from tests.docs.pages import DOCS, ROOT, blocks_of
from tests.forks import server

PAGE = DOCS / "tutorial" / "ten_programs.md"
PROGRAMS = [block.code for block in blocks_of(PAGE)]
SMALLER = {
    r"minutes=10": "minutes=0.01, num_worlds=8, num_minibatches=1",
    r"\b1024\b": "16",
    r"num_envs=64": "num_envs=4",
    r"num_worlds=256": "num_worlds=8",
    r"range\(1000\)": "range(16)",
    r"episodes=256": "episodes=2",
    r'(evaluate\(.*)levels="curated"': r"\1levels=[level]",
    r'levels="curated"\)$': 'levels="curated", port=0)',
}
# What the page says that its names are. The viewer runs until Ctrl-C.
BEFORE = """
import signal
import threading

import gymnasium
import stable_baselines3
import torch

import doorstep
import doorstep.envs
from doorstep.envs.stable_baselines3 import EscapeRoomVecEnv

level = doorstep.levels.curated()["one door"]
net = torch.nn.Sequential(torch.nn.Linear(94, 32), torch.nn.Tanh(), torch.nn.Linear(32, sum(doorstep.ACTIONS)))
model = stable_baselines3.PPO("MlpPolicy", EscapeRoomVecEnv(2), device="cpu")
"""
INTERRUPT = """
from doorstep.viewer.viewer import Viewer
run = Viewer.run
def run_a_while(viewer):
    threading.Timer(1, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()
    run(viewer)
Viewer.run = run_a_while
"""


def test_each_is_short_and_all_use_few_names() -> None:
    assert len(PROGRAMS) == 10
    trees = [ast.parse(program) for program in PROGRAMS]
    text = PAGE.read_text("utf-8")
    lines = re.search(r"more than (\d+) lines", text)
    names = re.search(r"they use (\d+) names", text)
    assert lines is not None
    assert names is not None
    assert max(len(program.splitlines()) for program in PROGRAMS) == int(lines[1]) <= 8
    used = {
        node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "doorstep"
    }
    assert len(used) == int(names[1])


@pytest.mark.slow
def test_they_run(tmp_path: Path) -> None:
    for module in ("av", "gymnasium", "stable_baselines3", "torch", "viser"):
        pytest.importorskip(module)
    code = BEFORE
    for number, program in enumerate(PROGRAMS, 1):
        for pattern, smaller in SMALLER.items():
            program = re.sub(pattern, smaller, program, flags=re.MULTILINE)
        code += (INTERRUPT if "doorstep.view(" in program else "") + program + f"print('ran {number}')\n"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = server("torch").run(code, folder=tmp_path, environment=environment, timeout=280)
    ran = re.findall(r"^ran (\d+)$", done.stdout, re.MULTILINE)
    assert (done.returncode, [int(number) for number in ran]) == (0, list(range(1, 11))), done.stdout + done.stderr
    assert re.search(r"^http://127.0.0.1:\d+", done.stdout, re.MULTILINE)
