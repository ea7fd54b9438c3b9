"""Prints requirements of pyproject.toml, one per line: `build-system` or names of extras, in the order given.

Every environment of the Makefile is filled from here. Versions are pinned in pyproject.toml alone, but for those of
the CUDA compilers, which are in cuda_requirements.txt.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def requirements(groups: list[str]) -> list[str]:
    """The requirements of these groups; an unknown name is a KeyError."""
    pyproject: dict[str, Any] = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    available: dict[str, list[str]] = {
        "build-system": pyproject["build-system"]["requires"],
        "dependencies": pyproject["project"]["dependencies"],
        **pyproject["project"]["optional-dependencies"],
    }
    return [requirement for group in groups for requirement in available[group]]


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1:])))
