"""Builds the native code with sanitizers and the system's compiler, and runs the native and the Python tests on it.

    python wheel_build/sanitizer_tests.py address,undefined PYTHON [PYTEST ARGUMENTS...]
    python wheel_build/sanitizer_tests.py memory

PYTHON is the interpreter of an environment with the wheel and its test requirements; its libraries are replaced by
instrumented ones. The interpreter itself is not instrumented, so the sanitizer's runtime is preloaded and only the
native tests detect leaks.

The memory sanitizer reports what depends on memory that nothing has written. It takes whatever code without it writes
for unwritten: only the native tests run, with the simulator alone, without other people's libraries. Assertions are
off, for with them each step begins with records that are written.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import native_build
from build_steps import BuildError

PROJECT = Path(__file__).resolve().parent.parent
COMPILERS = ("g++", "clang++")
CLANG = ("clang++-19", "clang++")  # which alone has libFuzzer and the memory sanitizer
RUNTIMES = {"address,undefined": "libasan.so", "thread": "libtsan.so"}
LIMITED_MEMORY = (
    "tests/pkg/test_processes.py::test_memory_that_cannot_be_had_is_an_error_and_leaves_nothing",
    "tests/render/test_embree_memory.py",
)
MEASURED_MEMORY = (
    "tests/interop/test_bridge.py::test_references_and_memory_are_as_before",
    "tests/pkg/rollouts/test_soak.py",
)
# Assertions hold for the numbers of levels that were checked; this one steps with any words in their place.
ANY_WORDS = ("tests/pkg/torch/test_batch.py::test_no_words_crash_a_step",)
# Forks while replicas play, whose children find the locks of the sanitizer's allocator locked.
FORKS_OF_ENGINES = ("tests/pkg/test_stops.py::test_processes_and_forks_end_cleanly_beside_owners[fork",)
THREADS_OF_A_FORK = "tests/pkg/test_cameras.py::test_a_forked_child_sees_on"
FAST_TESTS = ("-m", "not slow and not nightly", "--numprocesses", "2")
# The address sanitizer needs the address space that some tests limit, and delays frees; under the thread sanitizer only
# tests with threads are useful, and it aborts a forked child that starts threads.
PYTHON_TESTS = {
    "address,undefined": [
        *("tests/pkg", "tests/interop", "tests/render", "tests/sim", "tests/cuda"),
        *(f"--deselect={test}" for test in (*LIMITED_MEMORY, *MEASURED_MEMORY, *ANY_WORDS, *FORKS_OF_ENGINES)),
    ],
    "thread": [
        *("tests/pkg/test_cameras.py", "tests/pkg/test_event.py", "tests/pkg/test_threads.py"),
        *(f"tests/pkg/rollouts/test_{name}.py" for name in ("delivery", "ends", "futures", "replicas")),
        *("tests/interop", "tests/cuda"),
        f"--deselect={THREADS_OF_A_FORK}",
    ],
}
OPTIONS = {
    "ASAN_OPTIONS": "abort_on_error=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": f"halt_on_error=1:suppressions={PROJECT / 'wheel_build' / 'thread_sanitizer.suppressions'}",
}


def find_compiler() -> str:
    """The system's C++ compiler; installs one if possible."""
    for attempt in range(2):
        for name in COMPILERS:
            if path := shutil.which(name):
                return path
        if attempt == 0 and os.geteuid() == 0 and shutil.which("apt-get"):
            print("doorstep: installing g++", flush=True)
            subprocess.run(["apt-get", "install", "--yes", "--quiet", "g++"], check=False)
    sys.exit("doorstep: sanitizers need g++ or clang++; install one (Debian and Ubuntu: apt-get install g++)")


def find_clang() -> str:
    """The system's clang."""
    for name in CLANG:
        if path := shutil.which(name):
            return path
    packages = "clang-19 libclang-rt-19-dev libc++-19-dev libc++abi-19-dev"
    sys.exit(f"doorstep: this needs clang and libc++; install them (Debian and Ubuntu: apt-get install {packages})")


def whole(root: Path) -> dict[str, str]:
    """Settings of a build with kernels and the rendering library."""
    return {**native_build.cuda_settings(root), **native_build.third_party_settings(root)}


def build(compiler: str, sanitizer: str, folder: Path, parts: Mapping[str, str], targets: Sequence[str] = ()) -> None:
    """Configure and build library and native tests. parts: settings of what is built beside the simulator, or of it."""
    cmake = str(native_build.tool("cmake"))
    settings = {
        "CMAKE_C_COMPILER": compiler.replace("clang++", "clang").replace("g++", "gcc"),
        "CMAKE_CXX_COMPILER": compiler,
        "CMAKE_MAKE_PROGRAM": str(native_build.tool("ninja")),
        "DOORSTEP_ASSERTS": "ON",
        "DOORSTEP_BUILD_TESTS": "ON",
        "DOORSTEP_SANITIZE": sanitizer,
        **parts,
    }
    definitions = [f"-D{name}={value}" for name, value in settings.items()]
    subprocess.run([cmake, "-S", str(PROJECT), "-B", str(folder), "-G", "Ninja", *definitions], check=True)
    subprocess.run([cmake, "--build", str(folder), *(["--target", *targets] if targets else [])], check=True)


def run_native_tests(folder: Path) -> None:
    """Run the native tests; leaks are errors."""
    ctest = [str(native_build.tool("ctest")), "--test-dir", str(folder), "--output-on-failure", "--no-tests=error"]
    subprocess.run(ctest, env={**os.environ, **OPTIONS}, check=True)


def run_python_tests(compiler: str, sanitizer: str, folder: Path, python: str, arguments: list[str]) -> None:
    """Run pytest with the instrumented libraries instead of the wheel's."""
    where = [python, "-c", "import doorstep; print(doorstep.__path__[0])"]
    package = Path(subprocess.run(where, check=True, capture_output=True, text=True).stdout.strip())
    for library in native_build.LIBRARY_NAMES:
        shutil.copy2(folder / library, package / "_native")
    # With the C++ runtime that PyTorch throws exceptions by: the sanitizer's looks for it at the start only.
    runtimes = [_find_library(compiler, name) for name in (RUNTIMES[sanitizer], "libstdc++.so.6")]
    options = {
        **OPTIONS,
        "ASAN_OPTIONS": f"{OPTIONS['ASAN_OPTIONS']}:detect_leaks=0",
        # Interpreters that exit end no engines.
        "TSAN_OPTIONS": f"{OPTIONS['TSAN_OPTIONS']}:report_thread_leaks=0",
    }
    environment = {
        **os.environ,
        **options,
        "LD_PRELOAD": " ".join(runtimes),
        "PYTHONMALLOC": "malloc",
        "DOORSTEP_CUDA_STAND_IN": str(folder / "tests" / "cuda" / "stand_in"),
    }
    pytest = [python, "-m", "pytest", *(arguments or [*FAST_TESTS, *PYTHON_TESTS[sanitizer]])]
    subprocess.run(pytest, env=environment, check=True)


def _find_library(compiler: str, name: str) -> str:
    if "clang" in Path(compiler).name and name in RUNTIMES.values():
        name = name.replace("lib", "libclang_rt.").replace(".so", "-x86_64.so")
    command = [compiler, f"-print-file-name={name}"]
    path = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    if not Path(path).is_file():
        sys.exit(f"doorstep: {compiler} has no {name}; install its runtime libraries")
    return path


def main() -> None:
    """Build, run the native tests, then the Python tests."""
    sanitizer, *python = sys.argv[1:]
    folder = PROJECT / "build" / f"sanitizer-{sanitizer.replace(',', '-')}"
    try:
        if sanitizer == "memory":
            compiler, parts = find_clang(), {"DOORSTEP_ASSERTS": "OFF"}
        else:
            compiler, parts = find_compiler(), whole(PROJECT)
        build(compiler, sanitizer, folder, parts)
        run_native_tests(folder)
        if sanitizer in PYTHON_TESTS:
            run_python_tests(compiler, sanitizer, folder, python[0], python[1:])
    except BuildError as error:
        sys.exit(f"doorstep: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"doorstep: exit status {error.returncode} of: {' '.join(error.cmd)}")


if __name__ == "__main__":
    main()
