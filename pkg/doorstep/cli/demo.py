"""`doorstep demo`: many worlds, a policy, and a picture of some of the worlds."""

from __future__ import annotations

import argparse
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import doorstep
from doorstep.cli.argument_types import (
    add_levels_argument,
    add_policy_arguments,
    add_simulator_arguments,
    check_output,
    count,
    levels_of,
    policy_of,
    positive_integer,
    simulator_of,
)
from doorstep.cli.best_moment import BestMoment
from doorstep.cli.rooms_start import RoomsStart
from doorstep.cli.terminal import Progress
from doorstep.policy.loading import observations_for
from doorstep.policy.playing import Player
from doorstep.recording.film import side_by_side
from doorstep.render import write_png

SUMMARY = "Step 1,024 worlds, report the speed, and draw a picture of agents at work."

EXAMPLES = ("doorstep demo --trained", "doorstep demo --levels curated --policy scripted --worlds 40 --steps 150")

_WIDTH, _HEIGHT = 480, 360  # pixels of the image of a world


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add_simulator_arguments(parser)
    add_policy_arguments(parser)
    parser.set_defaults(policy=None)
    parser.add_argument("--trained", action="store_true", help="short for --policy trained")
    add_levels_argument(parser)
    parser.add_argument("--steps", type=positive_integer, default=1000, metavar="N", help="number of steps (1000)")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="the picture, a .png file (doorstep-demo-POLICY.png)"
    )
    parser.add_argument("--pictured", type=positive_integer, default=6, metavar="N", help="worlds in the picture (6)")


def run(arguments: argparse.Namespace) -> int:
    """Runs the demo."""
    arguments.policy = _policy_name(arguments)
    arguments.output = arguments.output or Path(f"doorstep-demo-{_as_part_of_a_name(arguments.policy)}.png")
    check_output(arguments.output, (".png",))
    policy, levels = policy_of(arguments), levels_of(arguments)
    with simulator_of(arguments, levels=levels, observations=observations_for(policy)) as sim:
        if levels:
            sim.reset()
        player = Player(policy, sim, arguments.policy)
        print(
            f"doorstep {doorstep.__version__}: {sim.num_worlds:,} worlds on {sim.device}, {arguments.steps:,} steps, "
            f"policy {arguments.policy}, seed {sim.seed}",
            flush=True,
        )
        best = BestMoment(sim, arguments.pictured)
        tally = _step(sim, player, arguments, best)
        _report(sim, arguments, tally)
        _write_picture(arguments.output, best)
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

    step_seconds: float = 0.0
    returns_sum: float = 0.0
    returns_count: int = 0
    returns_best: float = float("-inf")

    def count_returns(self, returns: NDArray[np.float32]) -> None:
        """Adds the returns of episodes that have just ended, one per agent."""
        if returns.size:
            self.returns_sum += float(returns.sum(dtype=np.float64))
            self.returns_count += returns.size
            self.returns_best = max(self.returns_best, float(returns.max()))


def _step(sim: doorstep.Simulator, player: Player, arguments: argparse.Namespace, best: BestMoment) -> _Tally:
    tally = _Tally()
    rooms_start = RoomsStart(sim) if arguments.start == "rooms" else None
    if rooms_start:
        rooms_start.place(np.arange(sim.num_worlds))
    with Progress(arguments.steps, sys.stderr) as progress:
        for step in range(1, arguments.steps + 1):
            player.act()
            started = time.perf_counter()
            sim.step()
            sim.wait()
            tally.step_seconds += time.perf_counter() - started
            dones, returns = sim.dones.copy_to_host(), sim.episode_returns.copy_to_host()
            tally.count_returns(returns[dones != 0])
            if rooms_start:
                rooms_start.place(np.flatnonzero(dones.any(axis=(1, 2))))
            if arguments.steps - step < sim.episode_length:  # a whole episode, if there is one
                best.look(step)
            progress.update(step, f"{_speed(sim.num_worlds, step, tally)}, {_mean_return(tally)}")
    return tally


# ---- The picture


def _write_picture(output: Path, best: BestMoment) -> None:
    images = best.draw(_WIDTH, _HEIGHT)
    write_png(output, side_by_side(images))
    print(f"picture  {output}: {count(len(images), 'world')} after step {best.step:,}")


# ---- The report


def _report(sim: doorstep.Simulator, arguments: argparse.Namespace, tally: _Tally) -> None:
    print(f"speed    {_speed(arguments.worlds, arguments.steps, tally)} ({tally.step_seconds:.2f} s in step())")
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
