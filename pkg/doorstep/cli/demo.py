"""`doorstep demo`: many worlds, a policy, and a picture of some of the worlds."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import doorstep
from doorstep._arguments import count
from doorstep.cli.argument_types import (
    COUNT,
    FILE,
    add_play_arguments,
    add_simulator_arguments,
    check_output,
    policy_of,
    simulator_of,
)
from doorstep.cli.rooms_start import RoomsStart
from doorstep.cli.terminal import Progress
from doorstep.policy.loading import observations_for
from doorstep.policy.playing import Player
from doorstep.recording.film import Film, Moments

SUMMARY = "Step 1,024 worlds, report the speed, and draw a picture of agents at work."

EXAMPLES = ("doorstep demo --trained", "doorstep demo --levels curated --policy scripted --worlds 40 --steps 150")

_WIDTH, _HEIGHT = 480, 360  # pixels of the image of a world
_PICTURED_STEP = 70  # trained agents are among the cubes then


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add_simulator_arguments(parser)
    add_play_arguments(parser)
    parser.set_defaults(policy=None)
    parser.add_argument("--trained", action="store_true", help="short for --policy trained")
    parser.add_argument("--steps", **COUNT, default=200, help="number of steps (200)")
    parser.add_argument("--output", **FILE, help="the picture, a .png file (doorstep-demo-POLICY.png)")
    parser.add_argument("--pictured", **COUNT, default=6, help="worlds in the picture (6)")


def run(arguments: argparse.Namespace) -> int:
    """Runs the demo."""
    arguments.policy = _policy_name(arguments)
    arguments.output = arguments.output or Path(f"doorstep-demo-{_as_part_of_a_name(arguments.policy)}.png")
    check_output(arguments.output, (".png",))
    policy = policy_of(arguments)
    with _playing(arguments, policy) as play:
        print(
            f"doorstep {doorstep.__version__}: {play.sim.num_worlds:,} worlds on {play.sim.device}, "
            f"{arguments.steps:,} steps, policy {arguments.policy}, seed {play.sim.seed}",
            flush=True,
        )
        _step(play, arguments.steps)
        _report(play.sim, arguments, play.tally)
    arguments.worlds = min(arguments.pictured, arguments.worlds)
    with _playing(arguments, policy) as play:
        _write_picture(arguments.output, play, min(_PICTURED_STEP, arguments.steps))
    return 0


def _policy_name(arguments: argparse.Namespace) -> str:
    if not arguments.trained:
        return arguments.policy or "random"
    if arguments.policy is not None:
        raise doorstep.ArgumentError(
            f"--trained, which is short for --policy trained, is given with --policy {arguments.policy}; give one.",
            argument="policy",
        )
    return "trained"


def _as_part_of_a_name(policy: str) -> str:
    """ "runs/mine" as "runs-mine": so that the pictures of two policies are two files."""
    return re.sub(r"\W+", "-", policy).strip("-")


# ---- Steps


@dataclass
class _Tally:
    """The results of the steps."""

    policy_seconds: float = 0.0
    step_seconds: float = 0.0
    cpu_seconds: float = 0.0  # of all threads, in steps
    returns_sum: float = 0.0
    returns_count: int = 0
    returns_best: float = float("-inf")

    def count_returns(self, returns: NDArray[np.float32]) -> None:
        """Adds the returns of episodes that have just ended, one per agent."""
        if returns.size:
            self.returns_sum += float(returns.sum(dtype=np.float64))
            self.returns_count += returns.size
            self.returns_best = max(self.returns_best, float(returns.max()))


class _Play:
    """Worlds in which a policy acts, from their beginning, and the tally of their steps."""

    def __init__(self, sim: doorstep.Simulator, policy: Any, arguments: argparse.Namespace) -> None:
        self.sim = sim
        self.tally = _Tally()
        self._player = Player(policy, sim, arguments.policy)
        self._rooms_start = RoomsStart(sim, arguments.start)
        self._rooms_start.before_steps()

    def step(self) -> None:
        began = time.perf_counter()
        self._player.act()
        acted, used = time.perf_counter(), time.process_time()
        self.sim.step()
        self.sim.wait()
        self.tally.cpu_seconds += time.process_time() - used
        self.tally.step_seconds += time.perf_counter() - acted
        self.tally.policy_seconds += acted - began
        self._rooms_start.after_step()


@contextlib.contextmanager
def _playing(arguments: argparse.Namespace, policy: Any) -> Iterator[_Play]:
    with simulator_of(arguments, observations_for(policy)) as sim:
        if sim.config.max_levels:
            sim.reset()
        yield _Play(sim, policy, arguments)


def _step(play: _Play, steps: int) -> None:
    tally = play.tally
    with Progress(steps, sys.stderr) as progress:
        for step in range(1, steps + 1):
            play.step()
            dones, returns = play.sim.dones.copy_to_host(), play.sim.episode_returns.copy_to_host()
            tally.count_returns(returns[dones != 0])
            progress.update(step, f"{_speed(play.sim.num_worlds, step, tally)}, {_mean_return(tally)}")


# ---- The picture


def _write_picture(output: Path, play: _Play, steps: int) -> None:
    worlds = range(play.sim.num_worlds)
    film = Film(list(worlds), camera="overview", width=_WIDTH, height=_HEIGHT, until="out")
    written = film.write(output, play.sim, _moments(play, steps), "")
    print(f"picture  {output}: {count(len(worlds), 'world')}, {written}")


def _moments(play: _Play, steps: int) -> Moments:
    yield 0
    for step in range(1, steps + 1):
        play.step()
        yield step


# ---- The report


def _report(sim: doorstep.Simulator, arguments: argparse.Namespace, tally: _Tally) -> None:
    speed, each = _speed(arguments.worlds, arguments.steps, tally), ""
    if sim.device == "cpu":  # what does not depend on what else the machine does
        per_second = arguments.worlds * arguments.steps / max(tally.cpu_seconds, 1e-9)
        each = f", {per_second:,.0f} per CPU-second"
    print(f"speed    {speed} ({tally.step_seconds:.2f} s in step()){each}")
    print(f"policy   {tally.policy_seconds:.2f} s in {arguments.policy}, beside these")
    if tally.returns_count:
        print(
            f"return   {_mean_return(tally)} over {tally.returns_count:,} episodes of an agent, "
            f"best {tally.returns_best:.3f}"
        )
    else:
        print(f"return   no episode has ended: they take {sim.episode_length:,} steps")


def _speed(worlds: int, steps: int, tally: _Tally) -> str:
    return f"{worlds * steps / max(tally.step_seconds, 1e-9):,.0f} world-steps/s"


def _mean_return(tally: _Tally) -> str:
    if not tally.returns_count:
        return "no episode ended yet"
    return f"mean return {tally.returns_sum / tally.returns_count:.3f}"
