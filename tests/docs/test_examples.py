"""Every code block of README.md and the documentation runs, page by page, in a folder and a process of its own; and so
does the notebook of the tutorial."""

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

RUN = [name for name in NAMES if any(block.language not in ("", "text") for block in blocks_of(ROOT / name))]
ON_GPU = [name for name in RUN if any(block.needs_gpu for block in blocks_of(ROOT / name))]
# Pages whose blocks take long; tests/render, tests/cli and tests/pkg/training do all that they do, and README.md most.
LONG = ("explanation/results", "how_to/pictures", "how_to/train", "reference/command_line")
LANGUAGES = {"c", "console", "diff", "hlsl", "python", "text", "yaml"}


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


def test_blocks_say_their_language_and_why_they_do_not_run():
    for name in NAMES:
        for block in blocks_of(ROOT / name):
            where = f"{name}, line {block.line}"
            assert block.language in LANGUAGES, where
            if block.comment.startswith("not run"):
                assert len(block.reason_not_to_run) > 10, where
            if block.language == "hlsl":
                assert block.file, f"{where}: it is used as a file, or not at all"


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
    for cell in cells:
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | code
        assert not cell.get("outputs")
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
