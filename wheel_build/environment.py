"""Makes a virtual environment with requirements of pyproject.toml, or brings an existing one up to date.

    python3 wheel_build/environment.py build/environments/test dependencies test

Runs on a bare Python 3.10 or newer. Nothing happens if the environment already holds what is asked for.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MINIMUM_PYTHON = (3, 10)
TOML_READER = "tomli==2.3.0"  # for Python 3.10, whose standard library has none
STAMP = "requirements.txt"


def prepare(folder: Path, groups: list[str]) -> None:
    """Create the environment if it is missing or of another Python, and install what changed."""
    python = folder / "bin" / "python"
    if _version_of(python) != sys.version:
        _create(folder)
    wanted = _wanted(python, groups)
    stamp = folder / STAMP
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    pending = folder / f"{STAMP}.pending"
    pending.write_text(wanted, encoding="utf-8")
    print(f"doorstep: installing into {folder}: {', '.join(wanted.split(chr(10))[:-1])}", flush=True)
    _pip(python, "install", "--requirement", str(pending))
    pending.rename(stamp)


def _create(folder: Path) -> None:
    print(f"doorstep: making the environment {folder}", flush=True)
    result = subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=False)
    if result.returncode != 0:
        sys.exit(
            f"doorstep: {sys.executable} cannot make virtual environments. Install its venv module "
            "(Debian and Ubuntu: apt-get install python3-venv) or name another Python: make PYTHON=/path/to/python3"
        )


def _version_of(python: Path) -> str:
    if not python.exists():
        return ""
    command = [str(python), "-c", "import sys; print(sys.version, end='')"]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def _wanted(python: Path, groups: list[str]) -> str:
    if sys.version_info < (3, 11):
        _pip(python, "install", TOML_READER)
    command = [str(python), str(Path(__file__).with_name("requirements.py")), *groups]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _pip(python: Path, *arguments: str) -> None:
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    result = subprocess.run([str(python), "-m", "pip", "--quiet", *arguments], env=environment, check=False)
    if result.returncode != 0:
        sys.exit(f"doorstep: pip {' '.join(arguments)} failed, see above")


if __name__ == "__main__":
    if sys.version_info < MINIMUM_PYTHON:
        version = sys.version.split()[0]
        sys.exit(f"doorstep: needs Python 3.10 or newer, this is {version}: make PYTHON=/path/to/python3")
    prepare(Path(sys.argv[1]), sys.argv[2:])
