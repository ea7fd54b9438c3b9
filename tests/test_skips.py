"""If every test has to run, a skip is a failure, except for the reasons that tests/skips.py allows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# The hooks of tests/conftest.py.
CONFTEST = """
import pytest
from tests.skips import refuse_skip

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    refuse_skip(report)
    return report

pytest_make_collect_report = pytest_runtest_makereport
"""
WAYS = """
import pytest
REASON = {reason!r}
def test_within():
    pytest.skip(REASON)
@pytest.mark.skipif(True, reason=REASON)
def test_mark(): ...
@pytest.fixture
def broken():
    pytest.skip(REASON)
def test_fixture(broken): ...
"""
MODULE = "import pytest\npytest.importorskip('no_such_module', reason='no Chromium here')\ndef test_one(): ...\n"


def test_a_skip_fails_where_every_test_has_to_run_except_for_allowed_reasons(tmp_path):
    files = {
        "conftest.py": CONFTEST, "pytest.ini": "[pytest]\n", "test_allowed.py": WAYS.format(reason="no GPU: none"),
        "test_refused.py": WAYS.format(reason="no Chromium here"), "test_module.py": MODULE,
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    path = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--continue-on-collection-errors", "-v", "."]
    for required, outcome in (("1", r"1 failed, 3 skipped, 3 errors"), ("", r"7 skipped")):
        environment = {**os.environ, "DOORSTEP_REQUIRE_ALL": required, "PYTHONPATH": path}
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert re.search(rf"= {outcome} in ", done.stdout), done.stdout
        assert ("DOORSTEP_REQUIRE_ALL is set, but this is skipped: no Chromium here" in done.stdout) == bool(required)


@pytest.mark.slow
def test_without_other_libraries_their_modules_are_skipped():
    code = "import pytest, sys; sys.modules.update(torch=None, jax=None, gymnasium=None); pytest.main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "--collect-only", "-qrs", "-pno:cacheprovider", str(Path(__file__).parent)]
    environment = {**os.environ, "DOORSTEP_REQUIRE_ALL": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "could not import 'torch'" in done.stdout
    assert re.search(r"^\d+ tests collected in", done.stdout, re.MULTILINE), done.stdout[-3000:]
