"""`doorstep plot`: learning curves of training runs, and heat maps of recordings."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from doorstep._arguments import count
from doorstep.cli.argument_types import FILE, check_output
from doorstep.errors import ArgumentError

SUMMARY = "Draw learning curves of training runs, or where the agents of recordings went."

EXAMPLES = ("doorstep plot rooms --output curves.png", "doorstep plot doorstep.rec --output positions.png")

AXES = ("steps", "seconds", "updates")

_PATHS = "folders of doorstep train, for learning curves; or files of doorstep record, for maps of where agents went"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    add("paths", nargs="+", type=Path, metavar="PATH", help=_PATHS)
    said = "the picture: a .png, .svg or .pdf file (doorstep-plot.png)"
    add("--output", **FILE, default=Path("doorstep-plot.png"), help=said)
    add("--x", choices=AXES, help="what curves are drawn over (steps of worlds)")


def run(arguments: argparse.Namespace) -> int:
    """Draws and writes."""
    from doorstep.plots import plot_positions, plot_runs  # here: other commands do not pay for it
    from doorstep.plots.figures import ENDINGS, load_matplotlib

    check_output(arguments.output, ENDINGS)
    load_matplotlib()
    if not _are_recordings(arguments.paths):
        plot_runs(arguments.paths, arguments.output, x=arguments.x or AXES[0])
        print(f"{arguments.output}: {count(len(arguments.paths), 'run')}")
        return 0
    if arguments.x is not None:
        message = "--x chooses the axis of learning curves; recordings are drawn as heat maps, which have none"
        raise ArgumentError(message, argument="x", hint="leave --x out")
    plot_positions(arguments.paths, arguments.output)
    print(f"{arguments.output}: {count(len(arguments.paths), 'recording')}")
    return 0


def _are_recordings(paths: Sequence[Path]) -> bool:
    """Whether all are files; False: all are folders.

    Raises:
        ArgumentError: one does not exist, or there are files and folders.
    """
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise ArgumentError(f"{missing[0]} does not exist", argument="paths", hint=f"name {_PATHS}")
    files = [path for path in paths if path.is_file()]
    folders = [path for path in paths if not path.is_file()]
    if files and folders:
        message = f"{files[0]} is a file and {folders[0]} a folder; one picture shows either recordings or runs"
        raise ArgumentError(message, argument="paths", hint="plot them with two commands")
    return bool(files)
