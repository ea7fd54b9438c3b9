"""The command `doorstep`: demo, levels, view, render, record, replay, train, plot, evaluate, serve, bench, doctor.

Each command is a module with four names: SUMMARY, EXAMPLES (whole commands, which its help shows),
`add_arguments(parser)` and `run(arguments)`, which returns the exit code.

Exit codes: 0 done, 1 doorstep cannot work here, 2 wrong arguments or a file that cannot be read or written, 3 a replay
differs from its recording or a level was not solved, 130 interrupted, 141 the reader of a pipe has closed it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol, TextIO

from doorstep._arguments import nearest
from doorstep._native import VERSION_STRING
from doorstep._optional import import_optional
from doorstep.cli import bench, demo, doctor, evaluate, levels, plot, record, render, replay, serve, train, view
from doorstep.cli.terminal import coloured
from doorstep.errors import DoorstepError, LibraryError, ReplayError


class _Command(Protocol):
    SUMMARY: str

    @property
    def EXAMPLES(self) -> Sequence[str]: ...  # noqa: N802 (a constant of the modules)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


_COMMANDS: dict[str, _Command] = {
    "demo": demo,
    "levels": levels,
    "view": view,
    "render": render,
    "record": record,
    "replay": replay,
    "train": train,
    "plot": plot,
    "evaluate": evaluate,
    "serve": serve,
    "bench": bench,
    "doctor": doctor,
}
_EXAMPLES = ("doorstep demo --trained", "doorstep view --policy trained --worlds 16", "doorstep train --help")
_EPILOG = """
Exit codes: 0 done, 1 doorstep cannot work here, 2 wrong arguments or files, 3 a replay differs, a level is not solved.
Completion of commands and options by the Tab key, with the extra doorstep[cli]; add to ~/.bashrc:
  eval "$(doorstep --print-completion bash)"
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; `argv` is what follows the program's name."""
    _replace_closed_streams()
    _escape_what_cannot_be_printed()
    parser = _parser()
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as request:  # argparse has printed help or an error
        code = int(request.code or 0)
        return _guarded("doorstep", lambda: code)
    except OSError:  # the message cannot be written; argparse lets this out before Python 3.11
        return _guarded("doorstep", lambda: 2)
    shell = vars(arguments).pop("print_completion")
    if shell is not None:
        return _guarded("doorstep", lambda: _print_completion(parser, shell))
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return 2
    return _guarded(f"doorstep {arguments.command}", lambda: _COMMANDS[arguments.command].run(arguments))


# ---- Arguments


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line, without the usage, which --help prints. The help ends with examples."""

    def __init__(self, *, examples: Sequence[str] = (), epilog: str = "", **options: Any) -> None:
        lines = "".join(f"  {example}\n" for example in examples)
        options["formatter_class"] = argparse.RawDescriptionHelpFormatter  # keeps the lines
        super().__init__(epilog=f"examples:\n{lines}{epilog}", **options)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {_error(_in_one_line(message))}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """A value that is misspelt is refused with the choice that was meant, others with all choices."""
        choices = [str(choice) for choice in action.choices or ()]
        hint = nearest(str(value), choices)
        if choices and str(value) not in choices and hint:
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {hint}")
        super()._check_value(action, value)


def _parser() -> argparse.ArgumentParser:
    description = "Thousands of 3D escape rooms, stepped at once."
    parser = _Parser(prog="doorstep", description=description, examples=_EXAMPLES, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"doorstep {VERSION_STRING}")
    parser.add_argument("--print-completion", choices=("bash", "zsh"), help="print a script for a shell's completion")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for name, command in _COMMANDS.items():
        summary, examples = command.SUMMARY, command.EXAMPLES
        command.add_arguments(commands.add_parser(name, help=summary, description=summary, examples=examples))
    return parser


def _print_completion(parser: argparse.ArgumentParser, shell: str) -> int:
    shtab = import_optional("shtab", "completion needs shtab", "cli")
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for command in commands.choices.values():
        for action in command._actions:
            if action.type is Path:
                action.complete = shtab.FILE
    print(shtab.complete(parser, shell))
    return 0


# ---- Streams and exit codes


def _guarded(name: str, run: Callable[[], int]) -> int:
    """Runs, and makes of every expected failure one line and an exit code."""
    try:
        code = run()
        sys.stdout.flush()  # output that cannot be written is an error here, not a complaint at the interpreter's exit
        return code
    except KeyboardInterrupt:
        return _fail(name, "interrupted", 130)
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        return 141
    except LibraryError as error:
        return _fail(name, _error(str(error)), 1)
    except ReplayError as error:
        return _fail(name, _error(str(error)), 3)
    except DoorstepError as error:
        return _fail(name, _error(str(error)), 2)
    except OSError as error:
        said = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        return _fail(name, _error(said), 2)
    finally:
        _discard_unwritable(sys.stdout)
        _discard_unwritable(sys.stderr)


def _fail(name: str, message: str, code: int) -> int:
    with contextlib.suppress(OSError):  # stderr cannot be written either; the exit code remains
        print(f"{name}: {_in_one_line(message)}", file=sys.stderr)
    return code


def _in_one_line(message: str) -> str:
    return " ".join(message.split())


def _error(message: str) -> str:
    return f"{coloured('error:', 'red', sys.stderr)} {message}"


def _replace_closed_streams() -> None:
    """Python has None for a stream that was closed before it started (`doorstep demo >&-`)."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (stays open)


def _escape_what_cannot_be_printed() -> None:
    """Names of files may have any bytes, and terminals any encoding; a finished command must not fail at its report."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_unwritable(stream: TextIO) -> None:
    """Directs a stream that cannot be written to /dev/null: at its exit Python would report that and end with 120."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
