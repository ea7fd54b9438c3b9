"""If every test has to run, a skip is a failure, except for the reasons that tests/skips.py allows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
import pytest
from tests.skips import refuse_skip

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    refuse_skip(report)
    return report

@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    report = yield
    refuse_skip(report)
    return report
"""
WAYS = {
    "within": "import pytest\ndef test_one() -> None:\n    pytest.skip({reason!r})\n",
    "mark": "import pytest\n@pytest.mark.skipif(True, reason={reason!r})\ndef test_one() -> None: ...\n",
    "fixture": "import pytest\n@pytest.fixture\ndef broken():\n    pytest.skip({reason!r})\n"
    "def test_one(broken) -> None: ...\n",
    "module": "import pytest\npytest.importorskip('no_such_module', reason={reason!r})\ndef test_one() -> None: ...\n",
}


def run(folder: Path, text: str, required: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest in a separate process, on one module with the hooks of tests/conftest.py."""
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / "test_one.py").write_text(text, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "DOORSTEP_REQUIRE_ALL": required, "PYTHONPATH": path}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", str(folder)]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("way", WAYS)
def test_a_skip_fails_where_every_test_has_to_run(tmp_path: Path, way: str) -> None:
    text = WAYS[way].format(reason="no Chromium here")
    refused = run(tmp_path, text, "1")
    assert refused.returncode != 0
    assert "DOORSTEP_REQUIRE_ALL is set, but this is skipped: no Chromium here" in refused.stdout
    assert "1 skipped" not in refused.stdout


@pytest.mark.parametrize("way", ["within", "mark", "fixture"])
@pytest.mark.parametrize(("reason", "required"), [("no GPU: none", "1"), ("no Chromium here", "")])
def test_other_skips_are_skips(tmp_path: Path, way: str, reason: str, required: str) -> None:
    allowed = run(tmp_path, WAYS[way].format(reason=reason), required)
    assert allowed.returncode == 0, allowed.stdout
    assert "1 skipped" in allowed.stdout


@pytest.mark.slow
def test_without_other_libraries_their_modules_are_skipped() -> None:
    code = "import pytest, sys; sys.modules.update(torch=None, jax=None, gymnasium=None); pytest.main(sys.argv[1:])"
    arguments = ["--collect-only", "-q", "-p", "no:cacheprovider", "-rs", str(Path(__file__).parent)]
    environment = {**os.environ, "DOORSTEP_REQUIRE_ALL": ""}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert "could not import 'torch'" in done.stdout
    assert re.search(r"^\d+ tests collected in", done.stdout, re.MULTILINE), done.stdout[-3000:]
