"""Every code block of README.md and the documentation runs, page by page, in a folder and a process of its own; and so
do the notebook of the tutorial and its ten programs."""

import ast
import importlib.util
import json
import os
import re

import pytest
from tests.docs.pages import DOCS, NAMES, ROOT, blocks_of
from tests.docs.run_page import SKIPPED
from tests.forks import server
from tests.system_packages import vulkan_environment

import doorstep

RUN = [name for name in NAMES if any(block.language != "text" for block in blocks_of(ROOT / name))]
ON_GPU = [name for name in RUN if any(block.needs_gpu for block in blocks_of(ROOT / name))]
# Pages whose blocks take long; tests/render, tests/cli and tests/pkg/training do all that they do, and README.md most.
LONG = ("explanation/results", "how_to/pictures", "how_to/train", "reference/command_line")


def run_page(name, folder, *options):
    text = (ROOT / name).read_text("utf-8")
    drawing = vulkan_environment() if 'renderer="vulkan", material=Path(' in text else {}
    framework = [name for name in ("torch", "jax") if name in text and importlib.util.find_spec(name)][:1]
    python = server(*framework, **{key: value for key, value in drawing.items() if key == "LD_LIBRARY_PATH"})
    code = "import sys; from tests.docs.run_page import main; sys.exit(main())"
    environment = {**os.environ, **drawing, "PYTHONPATH": str(ROOT)}
    done = python.run(code, str(ROOT / name), *options, folder=folder, environment=environment, timeout=280)
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr


def page(name):
    return pytest.param(name, marks=[pytest.mark.slow] * (name.removeprefix("docs/").removesuffix(".md") in LONG))


@pytest.mark.parametrize("name", [page(name) for name in RUN])
def test_blocks_run(name, tmp_path):
    run_page(name, tmp_path)


def test_blocks_that_need_a_gpu_run(tmp_path):
    try:
        doorstep.Simulator(1, device="cuda").close()
    except doorstep.DeviceError as error:
        pytest.skip(f"no GPU: {error}")
    for number, name in enumerate(ON_GPU):
        (tmp_path / str(number)).mkdir()
        run_page(name, tmp_path / str(number), "--gpu")


# ---- The ten programs

PROGRAMS = [block.code for block in blocks_of(DOCS / "tutorial" / "ten_programs.md")]
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


def test_the_ten_programs_are_as_short_as_their_page_says():
    page = (DOCS / "tutorial" / "ten_programs.md").read_text("utf-8")
    said = re.search(r"more than (\d+) lines, .* they use (\d+) names", page)
    nodes = [node for program in PROGRAMS for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Attribute)]
    names = {node.attr for node in nodes if getattr(node.value, "id", None) == "doorstep"}
    assert [int(number) for number in said.groups()] == [max(map(str.count, PROGRAMS, "\n" * 10)), len(names)]


@pytest.mark.slow
def test_the_ten_programs_run_one_after_another_with_smaller_numbers(tmp_path):
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


# ---- The notebook

NOTEBOOK = json.loads((DOCS / "tutorial" / "first_agent.ipynb").read_text("utf-8"))
INSTALLS, *CELLS = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
# Shows the last value of a cell, unless a semicolon follows, by what notebooks call.
SHOW = """
def display(value):
    for name in ("_repr_png_", "_repr_html_"):
        if hasattr(value, name):
            print("shown", getattr(value, name)()[:7])
"""


def test_its_form_is_that_of_notebooks_without_outputs_and_only_its_first_code_cell_installs():
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    cells = NOTEBOOK["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert not any(cell.get("outputs") for cell in cells)
    extra = re.fullmatch(r'%pip install --quiet "doorstep\[(\w+)\]"', "".join(INSTALLS["source"]))
    assert f"\n{extra[1]} = [" in (ROOT / "pyproject.toml").read_text("utf-8")


@pytest.mark.slow
def test_it_runs_as_it_is_and_shows_a_picture_and_two_replays(tmp_path):
    pytest.importorskip("torch")
    code = SHOW
    for cell in CELLS:
        text = "".join(cell["source"])
        last = ast.parse(text).body[-1]
        if isinstance(last, ast.Expr) and not text.rstrip().endswith(";"):
            lines = text.splitlines()
            text = "\n".join([*lines[: last.lineno - 1], "display(", *lines[last.lineno - 1 :], ")"])
        code += text + "\n"
    done = server("torch").run(code, folder=tmp_path, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = re.findall(r"^shown (.*)", done.stdout, re.MULTILINE)
    assert (sum("PNG" in one for one in shown), shown.count("<iframe")) == (1, 2)
    assert "returns: -" in done.stdout
    steps = [int(words.replace(",", "")) for words in re.findall(r"([\d,]+) steps:", done.stdout)]
    assert steps == sorted(steps) != []
    assert {path.name for path in (tmp_path / "rooms").iterdir()} >= {"config.json", "log.jsonl"}
