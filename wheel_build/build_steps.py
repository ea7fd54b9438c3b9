"""Shared by all build steps: the error class, messages, running commands, locking a folder."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


class BuildError(RuntimeError):
    """A build step failed; the message names the command."""


def say(message: str) -> None:
    """Print a message to standard error; standard output belongs to the build front end."""
    print(f"doorstep: {message}", file=sys.stderr, flush=True)


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
    """Run a command in a folder, by default the current one; its output goes to standard error."""
    try:
        subprocess.run(command, env=environment, cwd=folder, stdout=sys.stderr, check=True)
    except subprocess.CalledProcessError as error:
        raise BuildError(f"exit status {error.returncode} of: {' '.join(command)}") from error


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Lock a folder: two builds in it take turns."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
