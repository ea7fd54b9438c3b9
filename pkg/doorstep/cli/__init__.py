"""The command `doorstep`: demo, render, bench, doctor.

Each command is a module with three things: SUMMARY, `add_arguments(parser)` and `run(arguments)`, which returns the
exit code.

Exit codes: 0 done, 1 doorstep cannot work here, 2 the user asked for something impossible, 130 interrupted,
141 nobody reads the output any more.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn, Protocol

from doorstep.cli import bench, demo, doctor, render, view
from doorstep.errors import DoorstepError, LibraryError


class _Command(Protocol):
    SUMMARY: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


_COMMANDS: dict[str, _Command] = {"demo": demo, "render": render, "view": view, "bench": bench, "doctor": doctor}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; `argv` is what follows the program's name."""
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as request:  # argparse has printed help or an error
        return int(request.code or 0)
    try:
        code = _COMMANDS[arguments.command].run(arguments)
        _flush()  # what cannot be written out is noticed here, and not at the interpreter's end
        return code
    except KeyboardInterrupt:
        return _fail(arguments.command, "interrupted", 130)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _forget_output()
        return 141
    except LibraryError as error:
        return _fail(arguments.command, f"error: {error}", 1)
    except (DoorstepError, OSError) as error:
        return _fail(arguments.command, f"error: {error}", 2)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _forget_output()
        raise


def _forget_output() -> None:
    """Sends what is still to be written nowhere, or Python complains when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; the usage is a `--help` away."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="doorstep", description="Thousands of 3D escape rooms, stepped at once.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        command.add_arguments(commands.add_parser(name, help=command.SUMMARY, description=command.SUMMARY))
    return parser


def _fail(command: str, message: str, code: int) -> int:
    one_line = " ".join(message.split())
    print(f"doorstep {command}: {one_line}", file=sys.stderr)
    return code
