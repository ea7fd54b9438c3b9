"""Fuzzes the native code with Clang's libFuzzer, the address and the undefined-behaviour sanitizer.

    python wheel_build/native_fuzzing.py --seconds 60

An input that ends a fuzzer stays in build/fuzz; the fuzzer, called with the file, runs it again. What a fuzzer has found
worth keeping is in build/fuzz/NAME, with which the next run begins.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import native_build
from sanitizer_tests import OPTIONS, PROJECT

FUZZERS = ("levels", "saves")
COMPILERS = ("clang++", *(f"clang++-{version}" for version in range(21, 14, -1)))
BUILD_FOLDER = PROJECT / "build" / "sanitizer-fuzzer"
OUTPUT = PROJECT / "build" / "fuzz"
LONGEST_RUN, MOST_MEGABYTES, LONGEST_INPUT = 20, 1024, 1024  # seconds, MiB and bytes of an input


def find_compiler() -> str | None:
    """A Clang with libFuzzer."""
    return next((path for name in COMPILERS if (path := shutil.which(name)) and _has_libfuzzer(path)), None)


def _has_libfuzzer(compiler: str) -> bool:
    source = b'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }'
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler, "-x", "c++", "-fsanitize=fuzzer", "-", "-o", f"{folder}/fuzzer"]
        return subprocess.run(command, input=source, capture_output=True, check=False).returncode == 0


def build(compiler: str) -> None:
    """Configure and build the library's objects and the fuzzers."""
    cmake = str(native_build.tool("cmake"))
    settings = {
        "CMAKE_CXX_COMPILER": compiler,
        "CMAKE_MAKE_PROGRAM": str(native_build.tool("ninja")),
        "DOORSTEP_ASSERTS": "ON",
        "DOORSTEP_BUILD_TESTS": "ON",
        "DOORSTEP_SANITIZE": "fuzzer-no-link,address,undefined",
    }
    definitions = [f"-D{name}={value}" for name, value in settings.items()]
    subprocess.run([cmake, "-S", str(PROJECT), "-B", str(BUILD_FOLDER), "-G", "Ninja", *definitions], check=True)
    targets = [f"{name}_fuzzer" for name in FUZZERS]
    subprocess.run([cmake, "--build", str(BUILD_FOLDER), "--target", *targets], check=True)


def fuzz(name: str, seconds: int, seed: int) -> int:
    """The exit status of a fuzzer."""
    kept = OUTPUT / name
    kept.mkdir(parents=True, exist_ok=True)
    limits = [f"-timeout={LONGEST_RUN}", f"-rss_limit_mb={MOST_MEGABYTES}", f"-max_len={LONGEST_INPUT}"]
    how = [f"-max_total_time={seconds}", f"-seed={seed}", f"-artifact_prefix={OUTPUT}/{name}-", "-print_final_stats=1"]
    fuzzer = BUILD_FOLDER / "tests" / "fuzz" / "native" / f"{name}_fuzzer"
    return subprocess.run([fuzzer, *limits, *how, kept], env=OPTIONS, check=False).returncode


def main() -> None:
    """Build, then run each fuzzer."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="for each fuzzer")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    compiler = find_compiler()
    if compiler is None:
        sys.exit("doorstep: libFuzzer needs Clang (Debian and Ubuntu: apt-get install clang-19 libclang-rt-19-dev)")
    try:
        build(compiler)
    except subprocess.CalledProcessError as error:
        sys.exit(f"doorstep: exit status {error.returncode} of: {' '.join(error.cmd)}")
    sys.exit(any([fuzz(name, options.seconds, options.seed) for name in FUZZERS]))


if __name__ == "__main__":
    main()
