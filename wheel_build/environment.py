"""Creates or updates a virtual environment with dependency groups of pyproject.toml.

    python3 wheel_build/environment.py build/environments/test test test-torch

Runs on a bare Python 3.10 or newer. Does nothing if the environment is up to date with the same groups and file.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

MINIMUM_PYTHON = (3, 10)
PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
STAMP = "groups.txt"


def prepare(folder: Path, groups: list[str]) -> None:
    """Create the environment if it is missing, or has another Python or other groups, and install what changed."""
    python, stamp = folder / "bin" / "python", folder / STAMP
    digest = hashlib.sha256(PYPROJECT.read_bytes()).hexdigest()
    found = stamp.read_text(encoding="utf-8").splitlines() if stamp.exists() else []
    wanted = [" ".join(groups), digest]
    if _version_of(python) != sys.version or found[:1] != wanted[:1]:
        _create(folder)
    elif found == wanted:
        return
    print(f"doorstep: installing into {folder}: {' '.join(groups) or 'nothing yet'}", flush=True)
    _pip(python, pinned_pip())  # the pip of older Pythons does not support dependency groups
    if groups:
        _pip(python, *(f"--group={PYPROJECT}:{group}" for group in groups))
    stamp.write_text("\n".join(wanted), encoding="utf-8")


def pinned_pip() -> str:
    """The pinned pip of pyproject.toml, found by text: a bare Python 3.10 has no TOML reader."""
    match = re.search(r'"(pip==[^"]+)"', PYPROJECT.read_text(encoding="utf-8"))
    assert match is not None, "pyproject.toml does not pin pip"
    return match[1]


def _create(folder: Path) -> None:
    print(f"doorstep: creating the environment {folder}", flush=True)
    result = subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=False)
    if result.returncode != 0:
        sys.exit(
            f"doorstep: {sys.executable} cannot create virtual environments. Install its venv module "
            "(Debian and Ubuntu: apt-get install python3-venv) or name another Python: make PYTHON=/path/to/python3"
        )


def _version_of(python: Path) -> str:
    if not python.exists():
        return ""
    command = [str(python), "-c", "import sys; print(sys.version, end='')"]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def _pip(python: Path, *requirements: str) -> None:
    # Bytecode of what is imported is written then; most of the large packages never is.
    install = ("--quiet", "--disable-pip-version-check", "install", "--no-compile")
    command = [str(python), "-m", "pip", *install, *requirements]
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit(f"doorstep: {' '.join(command)} failed, see above")


if __name__ == "__main__":
    if sys.version_info < MINIMUM_PYTHON:
        version = sys.version.split()[0]
        sys.exit(f"doorstep: needs Python 3.10 or newer, this is {version}: make PYTHON=/path/to/python3")
    prepare(Path(sys.argv[1]), sys.argv[2:])
