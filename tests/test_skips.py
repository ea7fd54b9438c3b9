"""If every test has to run, a skip is a failure, except for the reasons that tests/skips.py allows."""

import os
import re
import subprocess
import sys

from tests.forks import PROJECT

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
    allowed, refused = (WAYS.format(reason=reason) for reason in ("no GPU: none", "no Chromium here"))
    files = {"pytest.ini": "[pytest]\n", "test_a.py": allowed, "test_b.py": refused, "test_c.py": MODULE}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-v", "-ptests.conftest", f"-c{tmp_path}/pytest.ini", str(tmp_path)]
    command += ["-pno:cacheprovider", "--continue-on-collection-errors"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for required, outcome in (("1", r"1 failed, 3 skipped, 3 errors"), ("", r"7 skipped")):
        environment["DOORSTEP_REQUIRE_ALL"] = required
        done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=False)
        printed = done.stdout
        assert re.search(rf"= {outcome} in ", printed), printed
        assert ("DOORSTEP_REQUIRE_ALL is set, but this is skipped: no Chromium here" in printed) == bool(required)
