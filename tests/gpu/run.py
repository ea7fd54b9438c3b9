"""Runs a Python program with a wheel that is unpacked, not installed, so that this Python stays as it is.

    python3 tests/gpu/run.py [--wheel dist/doorstep-*.whl] -m pytest -c tests/gpu/pytest.ini tests/gpu -k graph
    python3 tests/gpu/run.py -m tests.benchmarks.measure_gpu --quick

Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def unpack(wheel: Path | None, folder: Path) -> Path:
    """The content of a wheel (None: of the newest in dist/), unpacked into the folder together with the other projects'
    wheels beside it. A wheel that is a folder is taken for the content itself."""
    if wheel is not None and wheel.is_dir():
        return wheel.resolve()
    if wheel is None:
        wheel = max((PROJECT / "dist").glob("doorstep-*.whl"), key=lambda path: path.stat().st_mtime, default=None)
        if wheel is None:
            sys.exit(
                "doorstep: there is no wheel in dist/; build one here with: make wheel; or elsewhere, for the "
                "architecture of this GPU, such as 9.0: DOORSTEP_CUDA_ARCHITECTURES=90 make wheel"
            )
    for one in (*(path for path in wheel.parent.glob("*.whl") if not path.name.startswith("doorstep-")), wheel):
        with zipfile.ZipFile(one) as archive:
            archive.extractall(folder)
    return folder


def environment_with(content: Path) -> dict[str, str]:
    """Variables for programs that import doorstep from there, the tests, and what PYTHONPATH names already."""
    folders = [str(PROJECT), str(content), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(filter(None, folders))),
        "PYTHONFAULTHANDLER": "1",
        "PYTHONUNBUFFERED": "1",
        # tests/gpu/pytest.ini names the plugin that it needs; those of other projects take seconds.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        # JAX would take most of the device's memory.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--wheel", type=Path, help="the wheel, or its content; by default the newest in dist/")
    options, arguments = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="doorstep-gpu-") as folder:
        environment = environment_with(unpack(options.wheel, Path(folder)))
        return subprocess.run([sys.executable, *arguments], env=environment, cwd=PROJECT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
