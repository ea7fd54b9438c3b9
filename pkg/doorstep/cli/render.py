"""`doorstep render`: a picture, a video or a replay of worlds, under some actions or those of a recording."""

from __future__ import annotations

import argparse
import itertools
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import doorstep
from doorstep.action_dump import read_action_dump
from doorstep.cli.argument_types import (
    add_recording_arguments,
    add_simulator_arguments,
    check_output,
    count,
    non_negative_integer,
    positive_integer,
    simulator_of,
)
from doorstep.cli.progress import Progress
from doorstep.cli.random_actions import ActionTable
from doorstep.cli.rooms_start import RoomsStart
from doorstep.errors import ArgumentError
from doorstep.render import write_png
from doorstep.render.drawing import Drawing, Picture
from doorstep.render.named_cameras import NAMED_CAMERAS
from doorstep.render.snapshot import take_snapshots
from doorstep.replay import Replay
from doorstep.video import FRAMES_PER_SECOND, VIDEO_ENDINGS, load_av, write_video

SUMMARY = "Draw worlds: a picture (.png), a video (.mp4, .gif) or a replay for the browser (.html)."

_GAP = 4  # pixels between worlds side by side
_GAP_COLOUR = (16, 21, 29)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    add_simulator_arguments(parser, worlds=1)
    add(
        "--output",
        type=Path,
        default=Path("doorstep.png"),
        metavar="FILE",
        help="where it goes; ends in .png: the last moment, .mp4 or .gif: all moments, .html: a replay (doorstep.png)",
    )
    add("--policy", choices=("random", "idle"), default="random", help="how agents act without a recording (random)")
    add_recording_arguments(parser)
    add(
        "--steps",
        type=non_negative_integer,
        metavar="N",
        help="steps to take; without it all of the recording, or one episode",
    )
    add(
        "--skip",
        type=non_negative_integer,
        default=0,
        metavar="N",
        help="steps to take before the first moment that is shown (0)",
    )
    add("--show", type=_slots, default=[0], metavar="K[,K...]", help="which worlds to show, side by side (0)")
    add("--camera", choices=NAMED_CAMERAS, default="top", help="where it is seen from (top); replays offer a choice")
    add(
        "--agent",
        type=non_negative_integer,
        metavar="K",
        help="whom follow and agent are about; without it who got furthest",
    )
    add("--size", type=_size, default=(640, 480), metavar="WxH", help="pixels of the picture of a world (640x480)")
    add("--fps", type=float, default=FRAMES_PER_SECOND, metavar="F", help="moments shown per second; 25 is real time")
    add("--samples", type=positive_integer, default=2, metavar="N", help="N x N rays for each pixel, 1-8 (2)")
    add("--no-shadows", dest="shadows", action="store_false", help="without shadows")


def run(arguments: argparse.Namespace) -> int:
    """Simulates, draws and writes."""
    write = _writer(arguments.output)
    recording = _read_recording(arguments)
    arguments.steps = _number_of_steps(arguments, recording)
    with simulator_of(arguments, arguments.episode_length) as sim:
        _check_shown(sim, arguments.show)
        with Progress(arguments.steps, sys.stderr) as progress:
            written = write(sim, _moments(sim, arguments, recording, progress), arguments)
    print(f"{arguments.output}: {written}")
    return 0


# ---- What happens

Moments = Iterator[int]  # steps taken; between two of them the simulator stands still


def _read_recording(arguments: argparse.Namespace) -> NDArray[np.int32] | None:
    if arguments.actions is None:
        return None
    recording = read_action_dump(arguments.actions, arguments.worlds, arguments.agents)
    if not len(recording):
        raise ArgumentError(f"--actions {arguments.actions} has no steps.", argument="actions")
    return recording


def _number_of_steps(arguments: argparse.Namespace, recording: NDArray[np.int32] | None) -> int:
    # The last step of an episode already shows the next one.
    available = arguments.episode_length - 1 if recording is None else len(recording)
    steps: int = available if arguments.steps is None else arguments.steps
    if recording is not None and steps > available:
        raise ArgumentError(
            f"--steps is {steps}, but {arguments.actions} has {count(available, 'step')}.", argument="steps"
        )
    if arguments.skip > steps:
        taken = f"{count(steps, 'step')} {'is' if steps == 1 else 'are'} taken"
        raise ArgumentError(f"--skip is {arguments.skip}, but only {taken}.", argument="skip")
    return steps


def _check_shown(sim: doorstep.Simulator, shown: list[int]) -> None:
    outside = [world for world in shown if world >= sim.num_worlds]
    if outside:
        raise ArgumentError(
            f"--show names world {outside[0]} of {count(sim.num_worlds, 'world')}, counted from 0.",
            argument="show",
            hint="Give more --worlds.",
        )


def _moments(
    sim: doorstep.Simulator, arguments: argparse.Namespace, recording: NDArray[np.int32] | None, progress: Progress
) -> Moments:
    """Every moment that is shown, from before the first step to after the last."""
    act = _actor(sim, arguments.policy, recording)
    rooms_start = RoomsStart(sim) if arguments.start == "rooms" else None
    if rooms_start:
        rooms_start.place(np.arange(sim.num_worlds))
    for step in range(arguments.steps + 1):
        if step > 0:
            act(step)
            sim.step()
            if rooms_start:
                rooms_start.place(np.flatnonzero(sim.dones.copy_to_host().any(axis=(1, 2))))
            progress.update(step, "")
        if step >= arguments.skip:
            yield step


def _actor(sim: doorstep.Simulator, policy: str, recording: NDArray[np.int32] | None) -> Callable[[int], None]:
    """Writes the actions of a step; steps are counted from 1."""
    if recording is not None:
        return lambda step: sim.actions.copy_from_host(recording[step - 1])
    if policy == "idle":
        return lambda _: None
    table, actions = ActionTable(sim.seed), np.empty(sim.actions.shape, sim.actions.dtype)

    def act_at_random(step: int) -> None:
        table.copy_into(actions, step)
        sim.actions.copy_from_host(actions)

    return act_at_random


# ---- What is written

_Write = Callable[[doorstep.Simulator, Moments, argparse.Namespace], str]


def _writer(output: Path) -> _Write:
    """Fails before the work rather than after it."""
    check_output(output)
    ending = output.suffix.lower()
    if ending in VIDEO_ENDINGS:
        load_av()
    try:
        return _WRITERS[ending]
    except KeyError:
        raise ArgumentError(f"--output {output} must end in one of {', '.join(_WRITERS)}.", argument="output") from None


def _write_picture(sim: doorstep.Simulator, moments: Moments, arguments: argparse.Namespace) -> str:
    drawing = _drawing(sim, arguments)
    for step in moments:
        last = step
    frame = _draw(sim, drawing, arguments.show)
    write_png(arguments.output, frame)
    return f"{frame.shape[1]} x {frame.shape[0]} pixels, after step {last:,}"


def _write_video(sim: doorstep.Simulator, moments: Moments, arguments: argparse.Namespace) -> str:
    drawing = _drawing(sim, arguments)
    frames = (_draw(sim, drawing, arguments.show) for _ in moments)
    written = write_video(arguments.output, frames, arguments.fps)
    return f"{count(written, 'frame')}, {arguments.fps:g} a second"


def _write_replay(sim: doorstep.Simulator, moments: Moments, arguments: argparse.Namespace) -> str:
    next(moments)
    replay = Replay(sim, arguments.show, title=_title(sim, arguments))
    for _ in moments:
        replay.record()
    replay.save(arguments.output)
    return f"{count(len(replay), 'moment')} of {count(len(arguments.show), 'world')}"


_WRITERS: dict[str, _Write] = {
    ".png": _write_picture,
    ".html": _write_replay,
    **dict.fromkeys(VIDEO_ENDINGS, _write_video),
}


def _title(sim: doorstep.Simulator, arguments: argparse.Namespace) -> str:
    acting = arguments.actions.name if arguments.actions else f"{arguments.policy} actions"
    return f"{acting}, seed {sim.seed}"


def _drawing(sim: doorstep.Simulator, arguments: argparse.Namespace) -> Drawing:
    width, height = arguments.size
    return Drawing(
        arguments.camera, arguments.agent, sim.num_agents, width, height, arguments.samples, arguments.shadows
    )


def _draw(sim: doorstep.Simulator, drawing: Drawing, worlds: list[int]) -> Picture:
    return side_by_side([drawing.draw(snapshot) for snapshot in take_snapshots(sim, worlds)])


def side_by_side(pictures: list[Picture]) -> Picture:
    """Pictures of one size in rows, so that the whole is about as wide as high."""
    height, width = pictures[0].shape[:2]
    columns = min(len(pictures), math.ceil(math.sqrt(len(pictures) * height / width)))
    rows = math.ceil(len(pictures) / columns)
    shape = (rows * (height + _GAP) - _GAP, columns * (width + _GAP) - _GAP, 3)
    whole: Picture = np.full(shape, _GAP_COLOUR, np.uint8)
    places = itertools.product(range(0, shape[0], height + _GAP), range(0, shape[1], width + _GAP))
    for picture, (top, left) in zip(pictures, places, strict=False):
        whole[top : top + height, left : left + width] = picture
    return whole


# ---- Types of options


def _slots(text: str) -> list[int]:
    slots = [non_negative_integer(part) for part in text.split(",")]
    if len(set(slots)) < len(slots):
        raise argparse.ArgumentTypeError(f"{text!r} names a world twice")
    return slots


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,6})x(\d{1,6})", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; give width and height as 640x480")
    return int(match[1]), int(match[2])
