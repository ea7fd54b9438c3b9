"""Runs the tests or the benchmark that need a GPU; needs only this Python, a finished wheel and the tests.

    python3 tests/gpu/run.py [--wheel dist/doorstep-*.whl] [pytest arguments]
    python3 tests/gpu/run.py --bench [--wheel dist/doorstep-*.whl] [arguments of tests/benchmarks/measure_gpu.py]
    python3 tests/gpu/run.py --command [--wheel dist/doorstep-*.whl] program [arguments]
    python3 tests/gpu/run.py --find [--wheel dist/doorstep-*.whl] [--unpack FOLDER]

The wheel is unpacked into a temporary folder, not installed, so nothing is downloaded and this Python does not change;
--wheel may also name a folder with a wheel's content, as --unpack leaves it. --command runs a program in which this
Python can import it; --find only prints which GPUs there are. Without a GPU it prints the reason and exits with status
0, with --find 3.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
TESTS = PROJECT / "tests" / "gpu"
BENCHMARK = PROJECT / "tests" / "benchmarks" / "measure_gpu.py"
FIND_GPU = """
import doorstep
from doorstep import cuda
try:
    names = [cuda.Device(index).name for index in range(cuda.Device.count())]
except (doorstep.NoDriverError, doorstep.NoDeviceError) as error:
    print(error)
    raise SystemExit(3)
print("doorstep", doorstep.__version__, "on", ", ".join(names))
"""
NO_GPU = 3
NEEDED = ("numpy", "pytest", "torch")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--wheel", type=Path, help="the wheel to test, or its content; by default the newest in dist/")
    parser.add_argument("--unpack", type=Path, metavar="FOLDER", help="an empty folder for the wheel's content")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--bench", action="store_true", help="measure instead of testing")
    instead.add_argument("--command", action="store_true", help="run this program instead of the tests")
    instead.add_argument("--find", action="store_true", help="only print which GPUs there are")
    options, arguments = parser.parse_known_args()
    check_python()
    wheel = options.wheel or newest_wheel()
    with unpacked(wheel, options.unpack) as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder), str(PROJECT)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            # JAX would take most of the device's memory.
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }
        find = [sys.executable, "-c", FIND_GPU]
        found = subprocess.run(find, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
        if found.returncode == NO_GPU:
            print(f"doorstep: nothing is run on a GPU: {found.stdout.strip()}")
            return NO_GPU if options.find else 0
        print(f"doorstep: {wheel.name}: {found.stdout.strip()}", flush=True)
        if found.returncode or options.find:
            return found.returncode
        command = [sys.executable, "-m", "pytest", "-c", str(TESTS / "pytest.ini")]
        if not any(argument.partition("::")[0].endswith(".py") for argument in arguments):
            command.append(str(TESTS))
        if options.bench:
            command = [sys.executable, str(BENCHMARK)]
        elif options.command:
            command = []
        return subprocess.run([*command, *arguments], env=environment, cwd=PROJECT, check=False).returncode


@contextmanager
def unpacked(wheel: Path, folder: Path | None) -> Iterator[Path]:
    """The folder with the wheel's content: the wheel, the given folder, or one for as long as the block runs."""
    if wheel.is_dir():
        yield wheel.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="doorstep-gpu-test-") as temporary, zipfile.ZipFile(wheel) as archive:
        content = folder or Path(temporary)
        archive.extractall(content)
        yield content.resolve()


def check_python() -> None:
    """Ends the program with the reason if this Python cannot run the tests."""
    name_another = "name another: make gpu-test PYTHON=python3"
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(f"doorstep: {sys.executable} has no {', '.join(missing)}; {name_another}")
    # The tests import one another as `tests`, which is a folder without __init__.py: Python prefers every package of
    # that name, wherever it is.
    found = PathFinder.find_spec("tests", [str(PROJECT), *sys.path])
    if found is not None and found.origin is not None:
        sys.exit(f"doorstep: {found.origin} hides the tests of this repository; remove it, or {name_another}")


def newest_wheel() -> Path:
    """The newest wheel in dist/."""
    wheels = sorted((PROJECT / "dist").glob("doorstep-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        sys.exit("doorstep: there is no wheel in dist/; build one with: make wheel")
    return wheels[-1]


if __name__ == "__main__":
    sys.exit(main())
