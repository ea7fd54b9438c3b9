"""`doorstep view`: worlds, live in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path

from doorstep.cli.argument_types import positive_integer
from doorstep.errors import LibraryError

SUMMARY = "Show worlds live in a browser, play by hand, or scrub through a recording."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    add("--worlds", type=positive_integer, default=1, metavar="N", help="number of worlds; 64 are shown at once (1)")
    add("--agents", type=positive_integer, default=2, metavar="N", help="agents in each world, 1-8 (2)")
    add("--seed", type=int, default=5, help="seed of the levels and of the actions (5)")
    add("--device", default="cpu", metavar="DEVICE", help="where worlds are: cpu, cuda, cuda:K or auto (cpu)")
    add("--policy", choices=("random", "idle"), default="random", help="who acts where nobody plays (random)")
    add("--actions", type=Path, metavar="FILE", help="an action dump to replay, made with the same seed and sizes")
    add("--rate", type=_rate, default=20, metavar="HZ", help="steps per second, 0-1000 (20)")
    add("--keep-running", action="store_true", help="also step while nobody looks at the page")
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="whom to serve; 0.0.0.0: everybody (127.0.0.1)")
    add("--port", type=_port, default=8080, metavar="PORT", help="where to serve; 0: any free port (8080)")


def run(arguments: argparse.Namespace) -> int:
    """Serves the page until Ctrl-C."""
    try:
        import viser  # noqa: F401
    except ImportError as error:
        hint = 'pip install "doorstep[view]"'
        raise LibraryError(f"The viewer needs the package viser: {error}.", hint=hint) from None
    from doorstep.view.server import Settings, serve

    serve(Settings(**{name: value for name, value in vars(arguments).items() if name != "command"}))
    return 0


def _rate(text: str) -> float:
    return _between(text, float(text), 0, 1000)


def _port(text: str) -> int:
    return int(_between(text, int(text), 0, 65535))


def _between(text: str, value: float, low: int, high: int) -> float:
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text} is not allowed; give {low} to {high}")
    return value
