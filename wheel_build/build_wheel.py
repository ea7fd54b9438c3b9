"""Builds, grades and checks the wheel, and prints its path as the last line.

    python wheel_build/build_wheel.py dist

Builds on this machine; `make wheels` does the same in a container. Runs in an environment with the dependency
groups `build` and `repair` of pyproject.toml.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from build_steps import BuildError, run
from check_wheel import check_wheel
from native_build import third_party_folder
from repair_wheel import GRAFTED_LATER_VARIABLE, graft_and_grade

PROJECT = Path(__file__).resolve().parent.parent


def build(folder: Path) -> Path:
    """Have hatchling build a wheel without third-party libraries into an emptied folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(_empty(folder))]
    run(command, {**os.environ, GRAFTED_LATER_VARIABLE: "1"}, PROJECT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def main() -> None:
    """Build, grade, check; only a wheel that passes every check reaches the output folder."""
    output = Path(sys.argv[1]).resolve()
    work = PROJECT / "build" / "wheel"
    print("doorstep: building the wheel", flush=True)
    try:
        graded = graft_and_grade(build(work / "built"), _empty(work / "graded"), third_party_folder(PROJECT))
    except BuildError as error:
        sys.exit(f"doorstep: {error}")
    print("doorstep: checking the wheel", flush=True)
    if not check_wheel(graded):
        sys.exit(1)
    print(shutil.copy2(graded, _empty(output)))


if __name__ == "__main__":
    main()
