"""A release has the tag of its version; its text is exactly the changelog's section of that version."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.wheel_build.conftest import PROJECT

import doorstep
from release_notes import ReleaseError, check_tag, section_of

CHANGELOG = """\
# Changes

A promise.

## 0.10.0

Third.

## 0.1.1

Second.

- A point
  of two lines.

## 0.1.0

First.
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, as the release workflow runs it."""
    command = [sys.executable, str(PROJECT / "wheel_build" / "release_notes.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("version", "section"),
    [("0.10.0", "Third.\n"), ("0.1.1", "Second.\n\n- A point\n  of two lines.\n"), ("0.1.0", "First.\n")],
)
def test_a_section_ends_at_the_next_heading(version: str, section: str) -> None:
    assert section_of(CHANGELOG, version) == section


@pytest.mark.parametrize("version", ["0.1", "0.1.2", "1.1.0", "0x1.0"])
def test_a_version_without_a_section_is_refused(version: str) -> None:
    with pytest.raises(ReleaseError, match=f'exactly one section "## {version}"'):
        section_of(CHANGELOG, version)


@pytest.mark.parametrize("changelog", ["## 0.2.0\n", "## 0.2.0\n\n## 0.1.0\n\nFirst.\n", "## 0.2.0\n\na\n\n" * 2])
def test_a_section_that_is_empty_or_not_the_only_one_is_refused(changelog: str) -> None:
    with pytest.raises(ReleaseError, match=r'exactly one section "## 0\.2\.0", with text'):
        section_of(changelog, "0.2.0")


@pytest.mark.parametrize("tag", ["0.1.0", "v0.1.0.dev1", "v0.1", "v0.1.00", "version0.1.0", ""])
def test_the_tag_of_another_version_is_refused(tag: str) -> None:
    check_tag("v0.1.0", "0.1.0")
    with pytest.raises(ReleaseError, match=r"DS_VERSION_STRING in \S+/library\.h is 0\.1\.0: tag v0\.1\.0"):
        check_tag(tag, "0.1.0")


def test_these_sources_can_be_released() -> None:
    done = run(f"v{doorstep.__version__}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run().stdout
    changelog = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {doorstep.__version__}\n\n{done.stdout}" in changelog
    assert not any(line.startswith("## ") for line in done.stdout.splitlines())


def test_a_wrong_tag_fails_with_the_remedy_and_prints_no_text() -> None:
    done = run("v999.0.0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("doorstep: the tag is v999.0.0, but DS_VERSION_STRING")
