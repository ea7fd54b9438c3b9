"""What the machine is: driver, devices, clocks, versions, and what `doorstep doctor` finds.

    python -m tests.gpu.facts
"""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys

PACKAGES = ("numpy", "torch", "jax", "jaxlib", "cupy-cuda12x", "pytest", "gymnasium")
CLOCKS = "clocks.sm,clocks.mem,clocks.max.sm,clocks_throttle_reasons.active,temperature.gpu,power.draw"
COMMANDS = (
    ("nvidia-smi", "-q"),
    ("nvidia-smi", f"--query-gpu={CLOCKS}", "--format=csv"),
    (sys.executable, "-m", "doorstep", "doctor"),
)


def version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def main() -> int:
    versions = ", ".join(f"{package} {version_of(package)}" for package in PACKAGES)
    print(f"Python {platform.python_version()}, {versions}", flush=True)
    for command in COMMANDS:
        print(f"\n$ {' '.join(command)}", flush=True)
        try:
            subprocess.run(command, check=False, stderr=subprocess.STDOUT, timeout=30)
        except (OSError, subprocess.TimeoutExpired) as error:
            print(error, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
