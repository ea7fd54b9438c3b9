"""`doorstep render`: a picture, a video or a replay of worlds, under a policy or of a recording."""

from __future__ import annotations

import argparse
import contextlib
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import doorstep
from doorstep._arguments import count
from doorstep.cli.argument_types import (
    COUNT,
    FILE,
    add_play_arguments,
    add_recording_arguments,
    add_simulator_arguments,
    check_output,
    non_negative_integer,
    open_recording,
    policy_of,
    simulator_of,
)
from doorstep.cli.rooms_start import RoomsStart
from doorstep.cli.terminal import Progress
from doorstep.errors import ArgumentError
from doorstep.policy.loading import observations_for
from doorstep.policy.playing import Player
from doorstep.recording import Recording, Replay
from doorstep.recording.film import ENDINGS, UNTIL, Film, Moments, Until
from doorstep.render.camera import NAMED_CAMERAS
from doorstep.video import FRAMES_PER_SECOND

SUMMARY = "Draw worlds: a picture (.png), a video (.mp4, .gif, .webp) or a replay for the browser (.html)."

_GRID_WIDTH = 1280  # pixels
_MOST_SHOWN = 256

EXAMPLES = (
    "doorstep render --policy trained --camera overview --output trained.gif",
    "doorstep render --policy trained --grid 8x8 --glide --output glide.mp4",
    "doorstep render --actions doorstep.rec --output replay.html",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    add_simulator_arguments(parser, worlds=1)
    said = "the file: .png shows the last moment, .mp4, .gif and .webp all moments, .html is a replay (doorstep.png)"
    add("--output", **FILE, default=Path("doorstep.png"), help=said)
    add_play_arguments(parser)
    add_recording_arguments(parser)
    said = "steps to take; without it all steps of --actions, or one episode"
    add("--steps", type=non_negative_integer, metavar="N", help=said)
    said = "steps to take before the first moment shown (0)"
    add("--skip", type=non_negative_integer, default=0, metavar="N", help=said)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--show", type=_slots, default=[0], metavar="K[,K...]", help="which worlds to show, side by side (0)"
    )
    shown.add_argument(
        "--grid", type=_grid, metavar="CxR", help="show the first C x R worlds, with a counter of those that got out"
    )
    add("--glide", action="store_true", help="a video of a --grid begins close at a world and moves away to all")
    add(
        "--until",
        choices=UNTIL,
        help="out: a world stops when all of its agents are out or its episode ends (default); end: after all steps "
        "(default with --actions)",
    )
    add("--camera", choices=NAMED_CAMERAS, default="overview", help="the camera (overview); a replay has all of them")
    said = "the agent of the cameras follow and agent; without it the one that got furthest"
    add("--agent", type=non_negative_integer, metavar="K", help=said)
    said = "pixels of the picture of each world (640x480, in a --grid as many as make it some 1280 pixels wide)"
    add("--size", type=_size, metavar="WxH", help=said)
    add("--fps", type=float, default=FRAMES_PER_SECOND, metavar="F", help="moments shown per second; 25 is real time")
    add("--samples", **COUNT, default=2, help="N x N rays for each pixel, 1-8 (2)")
    add("--no-caption", dest="caption", action="store_false", help="without world, step, return and doors in pictures")
    add("--no-shadows", dest="shadows", action="store_false", help="without shadows")


def run(arguments: argparse.Namespace) -> int:
    """Simulates, draws and writes."""
    check_output(arguments.output, ENDINGS)
    if arguments.grid:
        _show_grid(arguments)
    elif arguments.glide:
        raise ArgumentError("--glide is given without --grid, such as --grid 8x8.", argument="glide")
    film = _film(arguments)
    with open_recording(arguments) or contextlib.nullcontext() as recording:
        _check_steps(arguments, recording)
        with _player(arguments, recording) as (sim, take):
            _check_shown(sim, arguments)
            film.check(arguments.output, sim)
            with Progress(arguments.steps, sys.stderr) as progress:
                moments = _moments(arguments, take, progress)
                written = film.write(arguments.output, sim, moments, _title(sim, arguments))
            if recording is not None:
                _report_clamped(sim, arguments.actions)
    print(f"{arguments.output}: {written}")
    return 0


def _show_grid(arguments: argparse.Namespace) -> None:
    arguments.show = list(range(math.prod(arguments.grid)))
    if arguments.actions is None:
        arguments.worlds = max(arguments.worlds or 0, len(arguments.show))


# ---- Steps

Take = Callable[[], object]  # takes a step


def _check_steps(arguments: argparse.Namespace, recording: Recording | None) -> None:
    # The last step of an episode already shows the next one.
    available = arguments.episode_length - 1 if recording is None else recording.num_steps
    if recording is not None and not available:
        raise ArgumentError(f"--actions {arguments.actions} has no steps.", argument="actions")
    if arguments.steps is None:
        arguments.steps = available
    if recording is not None and arguments.steps > available:
        raise ArgumentError(
            f"--steps is {arguments.steps}, but {arguments.actions} has {count(available, 'step')}.", argument="steps"
        )
    if arguments.skip > arguments.steps:
        taken = f"{count(arguments.steps, 'step')} {'is' if arguments.steps == 1 else 'are'} taken"
        raise ArgumentError(f"--skip is {arguments.skip}, but only {taken}.", argument="skip")


def _check_shown(sim: doorstep.Simulator, arguments: argparse.Namespace) -> None:
    outside = [world for world in arguments.show if world >= sim.num_worlds]
    if outside:
        raise ArgumentError(
            f"--show names world {outside[0]} of {count(sim.num_worlds, 'world')}, counted from 0.",
            argument="show",
            hint="" if arguments.actions else "Give more --worlds.",
        )


@contextlib.contextmanager
def _player(arguments: argparse.Namespace, recording: Recording | None) -> Iterator[tuple[doorstep.Simulator, Take]]:
    """A simulator, and what takes its steps: a policy, or a recording."""
    if recording is not None:
        config = recording.config.replace(device=arguments.device, num_threads=arguments.threads)
        with doorstep.Simulator.from_config(config, reward=recording.reward) as sim:
            yield sim, Replay(recording, sim).step
        return
    policy = policy_of(arguments)
    with simulator_of(arguments, observations_for(policy)) as sim:
        if sim.config.max_levels:
            sim.reset()
        player = Player(policy, sim, arguments.policy)
        rooms_start = RoomsStart(sim, arguments.start)
        rooms_start.before_steps()

        def take() -> None:
            player.act()
            sim.step()
            rooms_start.after_step()

        yield sim, take


def _moments(arguments: argparse.Namespace, take: Take, progress: Progress) -> Moments:
    """Every moment, from before the first step to after the last."""
    for step in range(arguments.steps + 1):
        if step > 0:
            take()
            progress.update(step)
        yield step


def _report_clamped(sim: doorstep.Simulator, path: Path) -> None:
    clamped = sim.health.clamped_actions
    if clamped:
        values = f"{count(clamped, 'action value')} of {path} {'was' if clamped == 1 else 'were'}"
        print(f"doorstep render: note: {values} out of range and clamped", file=sys.stderr)


def _title(sim: doorstep.Simulator, arguments: argparse.Namespace) -> str:
    acting = arguments.actions.name if arguments.actions else f"policy {arguments.policy}"
    return f"{acting}, seed {sim.seed}"


def _film(arguments: argparse.Namespace) -> Film:
    width, height = arguments.size or _panel_size(arguments.grid)
    until: Until = arguments.until or ("end" if arguments.actions else "out")
    return Film(
        worlds=arguments.show,
        camera=arguments.camera,
        agent=arguments.agent,
        width=width,
        height=height,
        samples=arguments.samples,
        shadows=arguments.shadows,
        fps=arguments.fps,
        caption=arguments.caption,
        until=until,
        skip=arguments.skip,
        columns=arguments.grid[0] if arguments.grid else None,
        counter=arguments.grid is not None,
        glide=arguments.glide,
    )


def _panel_size(grid: tuple[int, int] | None) -> tuple[int, int]:
    if grid is None:
        return 640, 480
    width = min(640, max(_GRID_WIDTH // grid[0] - 4, 16))
    return width, width * 3 // 4


# ---- Types of options


def _slots(text: str) -> list[int]:
    slots = [non_negative_integer(part) for part in text.split(",")]
    if len(set(slots)) < len(slots):
        raise argparse.ArgumentTypeError(f"{text!r} names a world twice")
    return slots


def _grid(text: str) -> tuple[int, int]:
    columns, rows = _two_numbers(text, "a grid; give columns and rows as 4x3")
    if not 1 <= columns * rows <= _MOST_SHOWN:
        raise argparse.ArgumentTypeError(f"{text!r} is {columns * rows} worlds; show 1 to {_MOST_SHOWN}")
    return columns, rows


def _size(text: str) -> tuple[int, int]:
    return _two_numbers(text, "a size; give width and height as 640x480")


def _two_numbers(text: str, what: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,6})x(\d{1,6})", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return int(match[1]), int(match[2])
