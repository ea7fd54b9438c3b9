"""Every code block of README.md and the documentation runs, page by page, in a folder and a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import NAMES, ROOT, blocks_of
from tests.docs.run_page import SKIPPED
from tests.system_packages import vulkan_environment

import doorstep

RUN = [name for name in NAMES if any(block.language not in ("", "text") for block in blocks_of(ROOT / name))]
ON_GPU = [name for name in RUN if any(block.needs_gpu for block in blocks_of(ROOT / name))]
LANGUAGES = {"c", "console", "diff", "hlsl", "python", "text", "yaml"}


def run_page(name: str, folder: Path, *options: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    drawing = vulkan_environment() if 'renderer="vulkan", material=Path(' in text else {}
    done = subprocess.run(
        [sys.executable, "-m", "tests.docs.run_page", str(ROOT / name), *options],
        cwd=folder,
        env={**os.environ, **drawing, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_blocks_run(name: str, tmp_path: Path) -> None:
    run_page(name, tmp_path)


@pytest.mark.slow
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
