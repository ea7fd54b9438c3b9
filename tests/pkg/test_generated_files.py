"""What repeats the headers elsewhere is current: declarations in Python and C, tables of the documentation."""

import subprocess
import sys
from pathlib import Path

import pytest

import header_parser

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("script", ["native/generate_bindings.py", "docs/generate.py"])
def test_generated_files_are_current(script: str) -> None:
    command = [sys.executable, str(REPOSITORY / script), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_table_with_a_row_that_does_not_end_is_refused() -> None:
    complete = '#define TABLE(X) X(a, 1, "one (1)")'
    assert header_parser._parse_table(complete, "TABLE") == [["a", "1", "one (1)"]]
    with pytest.raises(AssertionError, match="TABLE: this is no row X"):
        header_parser._parse_table(complete + 'X(b, 2, "two"', "TABLE")
