"""What the machine is: versions, driver, devices, clocks, the driver's messages, and what `doorstep doctor` finds.

    python -m tests.gpu.contact.facts [--messages]
"""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys

PACKAGES = ("numpy", "torch", "jax", "jaxlib", "cupy-cuda13x", "pytest", "gymnasium")
CLOCKS = "clocks.sm,clocks.mem,clocks.max.sm,clocks_throttle_reasons.active,temperature.gpu,power.draw"
MESSAGES = ("dmesg",)
COMMANDS = (
    ("nvidia-smi", f"--query-gpu={CLOCKS}", "--format=csv"),
    (sys.executable, "-m", "doorstep", "doctor"),
    ("nvidia-smi", "-q"),
)


def version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def printed_by(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout.decode(errors="replace").strip()


def main() -> int:
    if "--messages" not in sys.argv:
        versions = ", ".join(f"{package} {version_of(package)}" for package in PACKAGES)
        print(f"Python {platform.python_version()}, {versions}", flush=True)
        for command in COMMANDS:
            print(f"\n$ {' '.join(command)}\n{printed_by(command)}", flush=True)
    # An Xid names what stopped a GPU.
    lines = [line for line in printed_by(MESSAGES).splitlines() if "Xid" in line or "NVRM" in line or "dmesg" in line]
    print("\n".join(lines[-10:]) or "the kernel's log has no message of the NVIDIA driver")
    return 0


if __name__ == "__main__":
    sys.exit(main())
