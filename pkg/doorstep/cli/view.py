"""`doorstep view`: shows worlds live in a browser."""

from __future__ import annotations

import argparse
import contextlib
from functools import partial

from doorstep.cli.argument_types import (
    SAMPLING_OPTIONS,
    add_allow_host_argument,
    add_play_arguments,
    add_recording_arguments,
    add_world_arguments,
    levels_of,
    open_recording,
    reward_of,
    sampling_of,
)

SUMMARY = "Show worlds live in a browser, play by hand, or scrub through a recording."

EXAMPLES = (
    "doorstep view --policy trained --worlds 16",
    "doorstep view --levels curated --policy scripted --worlds 20",
    "doorstep view --policy rooms",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    add_world_arguments(parser, worlds=1, what="number of worlds; at most 64 are shown at once")
    add_play_arguments(parser)
    add_recording_arguments(parser)
    rate, port = partial(_number, kind=float, most=1000), partial(_number, kind=int, most=65535)
    add("--rate", type=rate, default=20, metavar="HZ", help="steps per second, 0-1000 (20)")
    add("--keep-running", action="store_true", help="also step while no browser shows the page")
    said = "address to listen on; 0.0.0.0: all networks (127.0.0.1)"
    add("--host", default="127.0.0.1", metavar="ADDRESS", help=said)
    add("--port", type=port, default=8080, metavar="PORT", help="port to listen on; 0: any free one (8080)")
    add_allow_host_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serves the page until Ctrl-C."""
    from doorstep.viewer import show  # here: other commands do not pay for it

    with open_recording(arguments) or contextlib.nullcontext() as recording:
        names = vars(arguments).keys() - {"command", "actions", "incomplete", "levels", "reward", *SAMPLING_OPTIONS}
        settings = {name: getattr(arguments, name) for name in names}
        levels, reward = tuple(levels_of(arguments)), reward_of(arguments)
        show(**settings, sampling=sampling_of(arguments), levels=levels, reward=reward, recording=recording)
    return 0


def _number(text: str, kind: type[float], most: int) -> float:
    try:
        value = kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 <= value <= most:
        raise argparse.ArgumentTypeError(f"{text} is not allowed; give 0 to {most}")
    return value
