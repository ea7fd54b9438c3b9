"""A release has the tag of its version; its text is exactly the changelog's section of that version."""

import re

import pytest
from tests.wheel_build.conftest import PROJECT

import doorstep
import release_notes
from release_notes import ReleaseError, section_of

SECTIONS = {"0.10.0": "Third.\n", "0.1.1": "Second.\n\n- A point\n  of two lines.\n", "0.1.0": "First.\n"}
CHANGELOG = "# Changes\n\nA promise.\n" + "".join(f"\n## {name}\n\n{text}" for name, text in SECTIONS.items())


def test_a_section_ends_at_the_next_heading_and_must_be_there_once():
    assert {version: section_of(CHANGELOG, version) for version in SECTIONS} == SECTIONS
    for version in ("0.1", "0.1.2", "1.1.0", "0x1.0"):
        with pytest.raises(ReleaseError, match=f'exactly one section "## {version}"'):
            section_of(CHANGELOG, version)
    for changelog in ("## 0.2.0\n", "## 0.2.0\n\n## 0.1.0\n\nFirst.\n", "## 0.2.0\n\na\n\n" * 2):
        with pytest.raises(ReleaseError, match=r'exactly one section "## 0\.2\.0", with text'):
            section_of(changelog, "0.2.0")


def test_these_sources_can_be_released_under_their_tag_alone(capsys, monkeypatch):
    def run(*arguments):
        """The command, as the release workflow runs it."""
        monkeypatch.setattr("sys.argv", ["release_notes.py", *arguments])
        release_notes.main()
        return capsys.readouterr().out

    printed = run(f"v{doorstep.__version__}")
    assert printed == run()
    assert f"## {doorstep.__version__}\n\n{printed}" in (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert not any(line.startswith("## ") for line in printed.splitlines())
    for tag in ("v999.0.0", doorstep.__version__, f"v{doorstep.__version__}.dev1", f"v{doorstep.__version__}0", ""):
        with pytest.raises(SystemExit, match=rf"doorstep: the tag is {re.escape(tag)}, but DS_VERSION_STRING"):
            run(tag)
    assert capsys.readouterr().out == ""
