"""The build's files from the package index: pinned by version and hash, fetched once, kept below build/.

Without an index, set DOORSTEP_PINNED_FILES to a folder with these files; then nothing is fetched. To fill one:

    python wheel_build/pinned_packages.py FOLDER
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from build_steps import BuildError, exclusive, run, say

CUDA = Path(__file__).resolve().with_name("cuda_requirements.txt")
CUDA_HEADERS = Path(__file__).resolve().with_name("cuda_header_requirements.txt")
THIRD_PARTY = Path(__file__).resolve().with_name("third_party_requirements.txt")
FOLDER_VARIABLE = "DOORSTEP_PINNED_FILES"
# The platform of the files, independent of the Python that builds.
PLATFORM = (
    *("--only-binary", ":all:", "--python-version", "3.11"),
    *("--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64"),
)


def identity_of(*pins: bytes) -> str:
    """A hash that changes whenever a pin changes."""
    return hashlib.sha256(b"".join(pins)).hexdigest()[:16]


def fetch_once(folder: Path, identity: str, fetch: Callable[[Path], None]) -> Path:
    """The folder of this identity; `fetch` fills it if it is missing, and folders of other identities are removed."""
    wanted = folder / identity
    with exclusive(folder):
        if not wanted.exists():
            for old in folder.iterdir():
                if old.is_dir():
                    shutil.rmtree(old)
            pending = folder / f"{identity}.pending"
            pending.mkdir()
            fetch(pending)
            pending.rename(wanted)
    return wanted


def install(requirements: Path, folder: Path) -> None:
    """Unpack what a file of requirements pins into a folder."""
    _pip("install", requirements, *PLATFORM, *_source(), "--target", str(folder))


def download(requirements: Path, folder: Path) -> None:
    """Put the files that a file of requirements pins into a folder."""
    _pip("download", requirements, *PLATFORM, *_source(), "--dest", str(folder))


def _source() -> list[str]:
    """Options of pip: only the folder that the environment names, or else pip's configured index."""
    name = os.environ.get(FOLDER_VARIABLE)
    if not name:
        return []
    if not Path(name).is_dir():
        raise BuildError(
            f"{FOLDER_VARIABLE} is {name!r}, which is not a folder; fill one with: python {Path(__file__).name} FOLDER"
        )
    return ["--no-index", "--find-links", name]


def _pip(command: str, requirements: Path, *options: str) -> None:
    program = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", command]
    run([*program, "--require-hashes", "--no-deps", *options, "--requirement", str(requirements)])


def main() -> None:
    """Fill a folder with all pinned files, from the index."""
    folder = Path(sys.argv[1])
    for requirements in (CUDA, CUDA_HEADERS, THIRD_PARTY):
        say(f"fetching the files that {requirements.name} pins into {folder}")
        try:
            _pip("download", requirements, *PLATFORM, "--dest", str(folder))
        except BuildError as error:
            sys.exit(f"doorstep: {error}")


if __name__ == "__main__":
    main()
