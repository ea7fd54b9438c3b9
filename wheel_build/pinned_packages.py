"""What is fetched from the package index by version and hash, once, into a folder named after the pins."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from build_steps import exclusive, run


def identity_of(*pins: bytes) -> str:
    """Changes whenever a pin changes."""
    return hashlib.sha256(b"".join(pins)).hexdigest()[:16]


def fetch_once(folder: Path, identity: str, fetch: Callable[[Path], None]) -> Path:
    """The folder of this identity; `fetch` fills it if it is not there, and those of other identities go."""
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


def pip(command: str, requirements: Path, *options: str) -> None:
    """Run a command of pip that accepts nothing but what the requirements pin."""
    program = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", command]
    run([*program, "--require-hashes", "--no-deps", *options, "--requirement", str(requirements)])
