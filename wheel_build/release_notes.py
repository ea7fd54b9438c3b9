"""Prints the changelog section of the sources' version: the text of its release.

    python wheel_build/release_notes.py [TAG]

Fails if the changelog has no text for it, or if the given tag is not "v" and the version. Runs on a bare Python 3.10 or
newer.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sbom import header_version

PROJECT = Path(__file__).resolve().parent.parent


class ReleaseError(RuntimeError):
    """These sources cannot be released; the message says what to change."""


def check_tag(tag: str, version: str) -> None:
    """Raise ReleaseError if this is not the tag of this version."""
    if tag != f"v{version}":
        raise ReleaseError(
            f"the tag is {tag}, but DS_VERSION_STRING in native/include/doorstep/library.h is {version}: "
            f"tag v{version}, or change the header and tag the commit that has the change"
        )


def section_of(changelog: str, version: str) -> str:
    """Returns the text below the heading of a version. Raises ReleaseError without exactly one such text."""
    sections = re.findall(rf"^## {re.escape(version)}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if len(sections) != 1 or not sections[0].strip():
        raise ReleaseError(
            f'CHANGELOG.md has to have exactly one section "## {version}", with text; it has {len(sections)}'
        )
    return str(sections[0]).strip() + "\n"


def main() -> None:
    """Check the tag if there is one, then print the section."""
    version = header_version(PROJECT)
    try:
        for tag in sys.argv[1:]:
            check_tag(tag, version)
        print(section_of((PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"), version), end="")
    except ReleaseError as error:
        sys.exit(f"doorstep: {error}")


if __name__ == "__main__":
    main()
