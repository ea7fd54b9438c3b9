"""Builds the targets of tests/native/fuzz.cpp with clang's libFuzzer and sanitizers, and runs them.

    python wheel_build/native_fuzzing.py --seconds 600 saves levels

Inputs that reached new code stay in build/fuzz-native/TARGET and are where the next run begins; one that fails stays
beside that folder, and `build/sanitizer-fuzzer/tests/native/fuzz_TARGET FILE` runs it again. The simulator is built
alone, and of its inner loops only those for two agents are instrumented.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from build_steps import BuildError
from sanitizer_tests import OPTIONS, PROJECT, build, find_clang

TARGETS = ("saves", "levels", "policies")
SANITIZERS = "fuzzer-no-link,address,undefined"
BUILD_FOLDER = PROJECT / "build" / "sanitizer-fuzzer"
INPUT_FOLDER = PROJECT / "build" / "fuzz-native"
LONGEST_RUN = 20  # seconds for one input
MOST_BYTES = 1 << 15


def run_target(name: str, seconds: int) -> bool:
    """Whether no input failed."""
    inputs: Path = INPUT_FOLDER / name
    inputs.mkdir(parents=True, exist_ok=True)
    options = {
        "max_total_time": seconds,
        "timeout": LONGEST_RUN,
        "max_len": MOST_BYTES,
        "print_final_stats": 1,
        "verbosity": 0,
        "artifact_prefix": f"{INPUT_FOLDER}/{name}-",
    }
    command = [str(BUILD_FOLDER / "tests" / "native" / f"fuzz_{name}"), *(f"-{key}={options[key]}" for key in options)]
    done = subprocess.run([*command, str(inputs)], env={**os.environ, **OPTIONS}, check=False)
    print(f"{name}: {'no input failed' if done.returncode == 0 else 'an input failed'}", flush=True)
    return done.returncode == 0


def main() -> int:
    """Build, then run each target."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; none: all")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    options = parser.parse_args()
    for name in options.targets:
        if name not in TARGETS:
            parser.error(f"there is no target {name}; there are {', '.join(TARGETS)}")
    names = options.targets or TARGETS
    try:
        build(find_clang(), SANITIZERS, BUILD_FOLDER, {}, [f"fuzz_{name}" for name in names])
    except BuildError as error:
        sys.exit(f"doorstep: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"doorstep: exit status {error.returncode} of: {' '.join(error.cmd)}")
    failed = [name for name in names if not run_target(name, options.seconds)]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
