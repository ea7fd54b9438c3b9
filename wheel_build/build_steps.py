"""What every step of the build needs: one kind of error, one way to speak, to run commands, to take turns."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


class BuildError(RuntimeError):
    """Something could not be built; the message says which command failed."""


def say(message: str) -> None:
    """Tell the user, without touching standard output, which belongs to the build front end."""
    print(f"doorstep: {message}", file=sys.stderr, flush=True)


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
    """Run a command in a folder, by default the current one; its output goes to standard error."""
    try:
        subprocess.run(command, env=environment, cwd=folder, stdout=sys.stderr, check=True)
    except subprocess.CalledProcessError as error:
        raise BuildError(f"exit status {error.returncode} of: {' '.join(command)}") from error


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Two builds of one folder take turns."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
