"""Every code block of README.md and the documentation runs, page by page, in a folder and a process of its own."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest
from tests.docs.pages import NAMES, ROOT, blocks_of
from tests.docs.run_page import SKIPPED
from tests.forks import server
from tests.system_packages import vulkan_environment

import doorstep

RUN = [name for name in NAMES if any(block.language not in ("", "text") for block in blocks_of(ROOT / name))]
ON_GPU = [name for name in RUN if any(block.needs_gpu for block in blocks_of(ROOT / name))]
# Pages whose blocks take long, and what faster tests notice: tests/render draws all that the page does.
LONG = ("docs/how_to/pictures.md", "docs/explanation/results.md")
LANGUAGES = {"c", "console", "diff", "hlsl", "python", "text", "yaml"}


def run_page(name: str, folder: Path, *options: str) -> None:
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


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in RUN])
def test_blocks_run(name: str, tmp_path: Path) -> None:
    run_page(name, tmp_path)


@pytest.mark.parametrize("name", ON_GPU)
def test_blocks_that_need_a_gpu_run(name: str, tmp_path: Path) -> None:
    try:
        doorstep.Simulator(1, device="cuda").close()
    except doorstep.DeviceError as error:
        pytest.skip(f"no GPU: {error}")
    run_page(name, tmp_path, "--gpu")


@pytest.mark.parametrize("name", NAMES)
def test_blocks_say_their_language_and_why_they_do_not_run(name: str) -> None:
    for block in blocks_of(ROOT / name):
        where = f"{name}, line {block.line}"
        assert block.language in LANGUAGES, where
        if block.comment.startswith("not run"):
            assert len(block.reason_not_to_run) > 10, where
        if block.language == "hlsl":
            assert block.file, f"{where}: it is used as a file, or not at all"
