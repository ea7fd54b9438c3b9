"""`doorstep demo`: many worlds, a policy, and a picture of some of the worlds."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field
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
from doorstep.cli.rooms_start import RoomsStart
from doorstep.cli.terminal import Progress
from doorstep.policy.loading import observations_for
from doorstep.policy.playing import Player
from doorstep.recording.film import Image, side_by_side
from doorstep.render import write_png

SUMMARY = "Step 1,024 worlds with random actions, report the speed, and draw a picture of some of them."

_WIDTH, _HEIGHT = 480, 360  # pixels of the image of a world


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add_simulator_arguments(parser)
    add_policy_arguments(parser)
    parser.add_argument(
        "--trained", dest="policy", action="store_const", const="trained", help="short for --policy trained"
    )
    add_levels_argument(parser)
    parser.add_argument("--steps", type=positive_integer, default=1000, metavar="N", help="number of steps (1000)")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("doorstep-demo.png"),
        metavar="FILE",
        help="the picture, a .png file (doorstep-demo.png)",
    )
    parser.add_argument("--pictured", type=positive_integer, default=6, metavar="N", help="worlds in the picture (6)")


@dataclass
class _Tally:
    """The results of the steps."""

    step_seconds: float = 0.0
    returns_sum: float = 0.0
    returns_count: int = 0
    returns_best: float = float("-inf")
    images: list[Image] = field(default_factory=list)
    images_step: int = 0
    images_error: doorstep.DoorstepError | None = None

    def count_returns(self, returns: NDArray[np.float32]) -> None:
        """Adds the returns of episodes that have just ended, one per agent."""
        if returns.size:
            self.returns_sum += float(returns.sum(dtype=np.float64))
            self.returns_count += returns.size
            self.returns_best = max(self.returns_best, float(returns.max()))


def run(arguments: argparse.Namespace) -> int:
    """Runs the demo."""
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
        tally = _step(sim, player, arguments)
        _report(sim, arguments, tally)
    _write_picture(arguments.output, tally)
    return 0


def _step(sim: doorstep.Simulator, player: Player, arguments: argparse.Namespace) -> _Tally:
    tally = _Tally()
    rooms_start = RoomsStart(sim) if arguments.start == "rooms" else None
    if rooms_start:
        rooms_start.place(np.arange(sim.num_worlds))
    picture_step = _picture_step(arguments.steps, sim.episode_length)
    with Progress(arguments.steps, sys.stderr) as progress:
        for step in range(1, arguments.steps + 1):
            player.act()
            started = time.perf_counter()
            sim.step()
            sim.wait()
            tally.step_seconds += time.perf_counter() - started
            dones, returns = sim.dones.copy_to_host(), sim.episode_returns.copy_to_host()
            tally.count_returns(returns[dones != 0])
            if step == picture_step:
                _draw(sim, arguments.pictured, step, tally)
            if rooms_start:
                rooms_start.place(np.flatnonzero(dones.any(axis=(1, 2))))
            progress.update(step, f"{_speed(sim.num_worlds, step, tally)}, {_mean_return(tally)}")
    return tally


# ---- The picture


def _picture_step(steps: int, episode_length: int) -> int:
    """The last step that leaves its episode running: just after a reset there is little to see."""
    ends_an_episode = steps % episode_length == 0
    return steps - 1 if ends_an_episode and steps > 1 else steps


def _draw(sim: doorstep.Simulator, pictured: int, step: int, tally: _Tally) -> None:
    """A machine that cannot draw still steps: its error is raised after the report."""
    tally.images_step = step
    try:
        tally.images = [
            sim.render(world, "overview", width=_WIDTH, height=_HEIGHT) for world in _busiest(sim, pictured)
        ]
    except doorstep.DoorstepError as error:
        tally.images_error = error


def _busiest(sim: doorstep.Simulator, pictured: int) -> list[int]:
    """Worlds with most doors open, buttons pressed and cubes held; among equals, those whose agents came furthest."""
    state = sim.state
    doors, buttons = state.door_open.copy_to_host().sum(axis=1), state.button_pressed.copy_to_host().sum(axis=1)
    held, furthest = (state.agent_grabs.copy_to_host() >= 0).sum(axis=1), state.agent_max_y.copy_to_host().max(axis=1)
    worlds: list[int] = np.lexsort((-furthest, -(doors + buttons + held)))[:pictured].tolist()
    return worlds


def _write_picture(output: Path, tally: _Tally) -> None:
    if tally.images_error is not None:
        raise tally.images_error
    write_png(output, side_by_side(tally.images))
    print(f"picture  {output}: {count(len(tally.images), 'world')} after step {tally.images_step:,}")


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
