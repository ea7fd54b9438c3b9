"""Argument types and options that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from doorstep._files import check_replaceable
from doorstep.errors import ArgumentError
from doorstep.simulator import Simulator


def positive_integer(text: str) -> int:
    """For argparse: an integer of at least 1. Underscores and thousands separators may be used."""
    return _integer(text, 1)


def non_negative_integer(text: str) -> int:
    """For argparse: an integer of at least 0, written likewise."""
    return _integer(text, 0)


def _integer(text: str, low: int) -> int:
    try:
        value = int(text.replace(",", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer") from None
    if value < low:
        raise argparse.ArgumentTypeError(f"{value} is not allowed; give at least {low}")
    return value


def count(number: int, thing: str) -> str:
    """The number of things as text: "1 step", "1,000 steps"."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def check_output(output: Path) -> None:
    """Fails before the work rather than after it."""
    try:
        if output.is_dir() or not output.absolute().parent.is_dir():
            raise ArgumentError(f"--output {output} is no file in an existing folder.", argument="output")
        check_replaceable(output)
    except OSError as error:
        raise ArgumentError(f"--output {output} cannot be written: {error.strerror}.", argument="output") from error


def add_world_arguments(parser: argparse.ArgumentParser, worlds: int, what: str = "number of worlds") -> None:
    """Which worlds there are, and where; worlds: how many unless told otherwise."""
    parser.add_argument("--worlds", type=positive_integer, default=worlds, metavar="N", help=f"{what} ({worlds})")
    parser.add_argument("--agents", type=positive_integer, default=2, metavar="N", help="agents in each world, 1-8 (2)")
    parser.add_argument("--seed", type=int, default=5, help="seed of the levels and of the actions (5)")
    parser.add_argument(
        "--device", default="cpu", metavar="DEVICE", help="where worlds are: cpu, cuda, cuda:K or auto (cpu)"
    )


def add_recording_arguments(parser: argparse.ArgumentParser) -> None:
    """Episodes, which a recording may be of."""
    parser.add_argument(
        "--actions",
        type=Path,
        metavar="FILE",
        help="a recording: an action dump; give the --worlds, --agents, --seed and --episode-length it was made with",
    )
    parser.add_argument(
        "--episode-length", type=positive_integer, default=200, metavar="N", help="steps of an episode (200)"
    )


def add_simulator_arguments(parser: argparse.ArgumentParser, worlds: int = 1024) -> None:
    """What every command takes that steps a simulator by itself; worlds: the default."""
    add_world_arguments(parser, worlds)
    parser.add_argument(
        "--threads",
        type=positive_integer,
        metavar="N",
        help="threads that step; without it as many as this process may use",
    )
    parser.add_argument(
        "--start",
        choices=("normal", "rooms"),
        default="normal",
        help="where episodes start: as the levels say, or among the cubes of the second and third room, "
        "where agents push cubes all the time",
    )


def simulator_of(arguments: argparse.Namespace, episode_length: int = 200) -> Simulator:
    """The simulator that the options of add_simulator_arguments() describe."""
    return Simulator(
        arguments.worlds,
        seed=arguments.seed,
        num_agents=arguments.agents,
        num_threads=arguments.threads,
        device=arguments.device,
        episode_length=episode_length,
    )
