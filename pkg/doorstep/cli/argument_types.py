"""Argument types, options and checks that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from doorstep._files import check_replaceable
from doorstep.errors import ArgumentError
from doorstep.policies import Policy
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


def check_output(output: Path, endings: Iterable[str]) -> str:
    """Refuses an output that cannot be written, before the work; returns its ending, which is one of `endings`."""
    ending = output.suffix.lower()
    if ending not in endings:
        allowed = " or ".join(endings)
        raise ArgumentError(f"--output {output} must end in {allowed}.", argument="output")
    try:
        if output.is_dir() or not output.absolute().parent.is_dir():
            raise ArgumentError(f"--output {output} is not a file in an existing folder.", argument="output")
        check_replaceable(output)
    except OSError as error:
        raise ArgumentError(f"--output {output} cannot be written: {error.strerror}.", argument="output") from error
    return ending


def add_world_arguments(parser: argparse.ArgumentParser, worlds: int, what: str = "number of worlds") -> None:
    """Number of worlds and agents, seed and device; worlds: the default number."""
    parser.add_argument("--worlds", type=positive_integer, default=worlds, metavar="N", help=f"{what} ({worlds})")
    parser.add_argument("--agents", type=positive_integer, default=2, metavar="N", help="agents in each world, 1-8 (2)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the levels and of the actions (0)")
    parser.add_argument(
        "--device", default="cpu", metavar="DEVICE", help="device of the worlds: cpu, cuda, cuda:K or auto (cpu)"
    )


def add_policy_argument(parser: argparse.ArgumentParser) -> None:
    """What chooses the actions: see `doorstep.policies`."""
    parser.add_argument(
        "--policy",
        default="random",
        metavar="POLICY",
        help="what chooses the actions: random, idle, module:function or path/to/file.py:function (random)",
    )


def add_recording_arguments(parser: argparse.ArgumentParser) -> None:
    """An action dump to play, and the length of its episodes."""
    parser.add_argument(
        "--actions",
        type=Path,
        metavar="FILE",
        help="an action dump to play; give the --worlds, --agents, --seed and --episode-length it was made with",
    )
    parser.add_argument(
        "--episode-length", type=positive_integer, default=200, metavar="N", help="steps of an episode (200)"
    )


def add_simulator_arguments(parser: argparse.ArgumentParser, worlds: int = 1024) -> None:
    """Options of a command that steps a simulator by itself; worlds: the default number."""
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
        help="normal: agents start where the level places them; rooms: among the cubes of the second and third room, "
        "where they push cubes in most steps",
    )


def simulator_of(
    arguments: argparse.Namespace, policy: str | Policy | None = None, episode_length: int = 200
) -> Simulator:
    """The simulator that the options of add_simulator_arguments() describe, with what a policy observes."""
    return Simulator(
        arguments.worlds,
        seed=arguments.seed,
        num_agents=arguments.agents,
        num_threads=arguments.threads,
        device=arguments.device,
        episode_length=episode_length,
        flat_observations=callable(policy),
    )
