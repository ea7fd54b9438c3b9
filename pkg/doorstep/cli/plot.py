"""`doorstep plot`: learning curves of training runs, and heat maps of recordings."""

from __future__ import annotations

import argparse
from pathlib import Path

from doorstep.cli.argument_types import check_output, count
from doorstep.errors import ArgumentError

SUMMARY = "Draw learning curves of training runs, or where the agents of recordings went."

EXAMPLES = ("doorstep plot rooms --output curves.png", "doorstep plot doorstep.rec --output positions.png")

AXES = ("steps", "seconds", "updates")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    add(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="folders of doorstep train, for learning curves; or files of doorstep record, for heat maps of where "
        "agents went",
    )
    add(
        "--output",
        type=Path,
        default=Path("doorstep-plot.png"),
        metavar="FILE",
        help="the picture: a .png, .svg or .pdf file (doorstep-plot.png)",
    )
    add("--x", choices=AXES, help="what curves are drawn over (steps of worlds)")


def run(arguments: argparse.Namespace) -> int:
    """Draws and writes."""
    from doorstep.plots import plot_positions, plot_runs  # here: other commands do not pay for it
    from doorstep.plots.figures import ENDINGS, load_matplotlib

    check_output(arguments.output, ENDINGS)
    load_matplotlib()
    files = [path for path in arguments.paths if path.is_file()]
    if not files:
        plot_runs(arguments.paths, arguments.output, x=arguments.x or AXES[0])
        print(f"{arguments.output}: {count(len(arguments.paths), 'run')}")
        return 0
    if len(files) < len(arguments.paths):
        (other, *_) = (path for path in arguments.paths if path not in files)
        what = "the folder of a run" if other.is_dir() else "no file"
        message = f"{files[0]} is a recording and {other} is {what}; curves and maps of positions are two plots"
        raise ArgumentError(message, argument="paths", hint="give folders of runs alone, or recordings alone")
    if arguments.x is not None:
        raise ArgumentError("--x is given with recordings, which have no curves.", argument="x")
    plot_positions(files, arguments.output)
    print(f"{arguments.output}: {count(len(files), 'recording')}")
    return 0
