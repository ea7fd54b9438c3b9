"""Runs CMake and ninja with the compiler of the ziglang package; the system's compilers are not used.

As a command it builds and runs the native tests:

    python wheel_build/native_build.py --build-folder build/library --test
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cuda_packages
import kernel_images
import third_party
from build_steps import BuildError, exclusive, run
from cuda_packages import CudaPackages

LIBRARY_NAMES = ("libdoorstep.so", "libdoorstep_render.so")
PROJECT = Path(__file__).resolve().parent.parent
# Shared by all builds of the project.
CUDA_FOLDER = Path("build/cuda")
THIRD_PARTY_FOLDER = Path("build/third_party")


def build_libraries(root: Path, build_folder: Path, third_party_rpath: str) -> list[Path]:
    """Build the libraries of the wheel and return their paths; a second call compiles only what changed."""
    settings = {"DOORSTEP_THIRD_PARTY_RPATH": third_party_rpath}
    configure_and_build(root, build_folder, settings, targets=["doorstep", "doorstep_render"])
    return [build_folder / name for name in LIBRARY_NAMES]


def configure_and_build(root: Path, build_folder: Path, settings: Mapping[str, str], targets: Sequence[str]) -> None:
    """Run CMake and ninja; `settings` are CMake cache entries, no `targets` means all.

    What takes long comes in an order in which the cores always have work: objects are compiled beside the downloads,
    then kernels. The first link, for which zig compiles its parts of glibc on one core, runs beside the kernels.
    """
    _require_linux_x86_64()
    with exclusive(build_folder), ThreadPoolExecutor() as beside:
        libraries = beside.submit(third_party_settings, root)
        compilers = beside.submit(cuda_compilers, root)
        _make(root, build_folder, settings, ["doorstep_all_objects"])
        compilers.result()
        kernels = beside.submit(cuda_settings, root)
        settings = {**libraries.result(), **settings}
        _make(root, build_folder, settings, ["doorstep_render"])
        _make(root, build_folder, {**kernels.result(), **settings}, targets)


def _make(root: Path, build_folder: Path, settings: Mapping[str, str], targets: Sequence[str]) -> None:
    """Run CMake, which keeps earlier settings, and ninja."""
    environment = pinned_environment(root)
    configure = [
        str(tool("cmake")),
        *("-S", str(root), "-B", str(build_folder), "-G", "Ninja"),
        f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}",
        f"-DCMAKE_TOOLCHAIN_FILE={root / 'wheel_build' / 'cmake' / 'zig.cmake'}",
        *(f"-D{name}={value}" for name, value in settings.items()),
    ]
    build = [str(tool("cmake")), "--build", str(build_folder)]
    if targets:
        build += ["--target", *targets]
    run(configure, environment)
    run(build, environment)


def cuda_compilers(root: Path) -> CudaPackages:
    """The compilers of the kernels; fetches them if necessary."""
    return cuda_packages.install(root / CUDA_FOLDER / "packages")


def cuda_settings(root: Path) -> dict[str, str]:
    """CMake cache entries that embed the kernels and their compiler; creates both if necessary."""
    packages = cuda_compilers(root)
    return {
        "DOORSTEP_CUDA_IMAGES": str(kernel_images.build_images(root, packages, root / CUDA_FOLDER / "images")),
        "DOORSTEP_PTX_COMPILER": str(packages.ptx_compiler),
    }


def third_party_folder(root: Path) -> Path:
    """The folder with the rendering library's dependencies; fetches them if necessary."""
    return third_party.install(root / THIRD_PARTY_FOLDER)


def third_party_settings(root: Path) -> dict[str, str]:
    """CMake cache entry that names that folder."""
    return {"DOORSTEP_THIRD_PARTY": str(third_party_folder(root))}


def run_native_tests(root: Path, build_folder: Path) -> None:
    """Run what configure_and_build built with DOORSTEP_BUILD_TESTS."""
    command = [str(tool("ctest")), "--test-dir", str(build_folder), "--output-on-failure", "--no-tests=error"]
    run([*command, "--parallel", str(len(os.sched_getaffinity(0)))], pinned_environment(root))


def pinned_environment(root: Path) -> dict[str, str]:
    """Environment of the build: the compiler's path, and its cache inside the project unless the caller sets one."""
    environment = dict(os.environ)
    environment["DOORSTEP_ZIG"] = str(_zig())
    for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
        environment.setdefault(name, str(root / "build" / "zig-cache"))
    # The caller's compiler flags must not affect the library.
    for name in ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"):
        environment.pop(name, None)
    return environment


def _require_linux_x86_64() -> None:
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        raise BuildError(f"doorstep builds on Linux x86-64, this is {sys.platform} {os.uname().machine}")


def _zig() -> Path:
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        raise BuildError("the ziglang package is missing; install the build requirements of pyproject.toml")
    return Path(spec.origin).parent / "zig"


def tool(name: str) -> Path:
    """An executable of the cmake or ninja package; the system's programs of that name are ignored."""
    package = "ninja" if name == "ninja" else "cmake"
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise BuildError(f"the {package} package is missing; install the build requirements of pyproject.toml")
    folder = Path(spec.origin).parent
    for candidate in (folder / "data" / "bin" / name, *(parent / "bin" / name for parent in folder.parents)):
        if candidate.is_file():
            return candidate
    raise BuildError(f"the {package} package in {folder} has no executable {name}")


def main() -> None:
    """Build every target into a separate folder, and run the native tests on request."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-folder", type=Path, required=True)
    parser.add_argument("--asserts", action="store_true", help="keep assertions in the optimised build")
    parser.add_argument("--test", action="store_true", help="build the native tests and run them")
    parser.add_argument("--target", nargs="+", default=[], help="build these only, and run nothing")
    arguments = parser.parse_args()
    settings = {
        "DOORSTEP_ASSERTS": "ON" if arguments.asserts else "OFF",
        "DOORSTEP_BUILD_TESTS": "ON" if arguments.test or arguments.target else "OFF",
    }
    build_folder = arguments.build_folder.resolve()
    try:
        if arguments.test or arguments.target:
            settings["DOORSTEP_CUDA_HEADERS"] = str(cuda_packages.install_headers(PROJECT / CUDA_FOLDER / "headers"))
        configure_and_build(PROJECT, build_folder, settings, arguments.target)
        if arguments.test and not arguments.target:
            run_native_tests(PROJECT, build_folder)
    except BuildError as error:
        sys.exit(f"doorstep: {error}")


if __name__ == "__main__":
    main()
