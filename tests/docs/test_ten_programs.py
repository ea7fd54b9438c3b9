"""The programs of docs/tutorial/ten_programs.md are short, and run one after another, with smaller numbers."""

import ast
import os
import re

import pytest
from tests.docs.pages import DOCS, ROOT, blocks_of
from tests.forks import server

PAGE = DOCS / "tutorial" / "ten_programs.md"
PROGRAMS = [block.code for block in blocks_of(PAGE)]
SMALLER = {
    r"minutes=10": "minutes=0.01, num_worlds=8, num_minibatches=1", r"\b1024\b": "16", r"num_envs=64": "num_envs=4",
    r"num_worlds=256": "num_worlds=8", r"range\(1000\)": "range(16)", r"episodes=256": "episodes=2",
    r'(evaluate\(.*)levels="curated"': r"\1levels=[level]", r'levels="curated"\)$': 'levels="curated", port=0)',
}  # fmt: skip
# What the page says that its names are.
BEFORE = """
import gymnasium
import stable_baselines3
import torch

import doorstep
import doorstep.envs
from doorstep.envs.stable_baselines3 import EscapeRoomVecEnv
from tests.docs.run_page import run_until_served

level = doorstep.levels.curated()["one door"]
net = torch.nn.Sequential(torch.nn.Linear(94, 32), torch.nn.Tanh(), torch.nn.Linear(32, sum(doorstep.ACTIONS)))
model = stable_baselines3.PPO("MlpPolicy", EscapeRoomVecEnv(2), device="cpu")
"""


def test_each_is_short_and_all_use_few_names():
    assert len(PROGRAMS) == 10
    lines, names = re.search(r"more than (\d+) lines, .* they use (\d+) names", PAGE.read_text("utf-8")).groups()
    assert max(len(program.splitlines()) for program in PROGRAMS) == int(lines) <= 8
    nodes = [node for program in PROGRAMS for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Attribute)]
    assert len({node.attr for node in nodes if getattr(node.value, "id", None) == "doorstep"}) == int(names)


@pytest.mark.slow
def test_they_run(tmp_path):
    for module in ("av", "gymnasium", "stable_baselines3", "torch", "viser"):
        pytest.importorskip(module)
    code = BEFORE
    for number, program in enumerate(PROGRAMS, 1):
        for pattern, smaller in SMALLER.items():
            program = re.sub(pattern, smaller, program, flags=re.MULTILINE)
        if "doorstep.view(" in program:  # which runs until Ctrl-C
            program = f"run_until_served({program!r}, globals())\n"
        code += program + f"print('ran {number}')\n"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = server("torch").run(code, folder=tmp_path, environment=environment, timeout=280)
    ran = re.findall(r"^ran (\d+)$", done.stdout, re.MULTILINE)
    assert (done.returncode, [int(number) for number in ran]) == (0, list(range(1, 11))), done.stdout + done.stderr
