"""Every code block of README.md and the documentation runs, page by page, in a folder and a process of its own."""

import importlib.util
import os

import pytest
from tests.docs.pages import NAMES, ROOT, blocks_of
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
