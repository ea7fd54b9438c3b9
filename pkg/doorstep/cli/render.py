"""`doorstep render`: a picture, a video or a replay of worlds, under random actions or those of an action dump."""

from __future__ import annotations

import argparse
import itertools
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import doorstep
from doorstep.action_dump import read_action_dump
from doorstep.cli.argument_types import (
    add_policy_argument,
    add_recording_arguments,
    add_simulator_arguments,
    check_output,
    count,
    non_negative_integer,
    positive_integer,
    simulator_of,
)
from doorstep.cli.random_actions import acting
from doorstep.cli.rooms_start import RoomsStart
from doorstep.cli.terminal import Progress
from doorstep.errors import ArgumentError
from doorstep.policies import find_policy
from doorstep.render import write_png
from doorstep.render.camera import NAMED_CAMERAS
from doorstep.render.drawing import Drawing
from doorstep.replay import Recorder
from doorstep.video import FRAMES_PER_SECOND, VIDEO_ENDINGS, load_av, write_video

SUMMARY = "Draw worlds: a picture (.png), a video (.mp4, .gif) or a replay for the browser (.html)."

Image = NDArray[np.uint8]  # [H, W, 3]

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
        help="the file: .png shows the last moment, .mp4 and .gif all moments, .html is a replay (doorstep.png)",
    )
    add_policy_argument(parser)
    add_recording_arguments(parser)
    add(
        "--steps",
        type=non_negative_integer,
        metavar="N",
        help="steps to take; without it all steps of --actions, or one episode",
    )
    add(
        "--skip",
        type=non_negative_integer,
        default=0,
        metavar="N",
        help="steps to take before the first moment shown (0)",
    )
    add("--show", type=_slots, default=[0], metavar="K[,K...]", help="which worlds to show, side by side (0)")
    add("--camera", choices=NAMED_CAMERAS, default="top", help="the camera (top); a replay has all of them")
    add(
        "--agent",
        type=non_negative_integer,
        metavar="K",
        help="the agent of the cameras follow and agent; without it the one that got furthest",
    )
    add("--size", type=_size, default=(640, 480), metavar="WxH", help="pixels of the picture of each world (640x480)")
    add("--fps", type=float, default=FRAMES_PER_SECOND, metavar="F", help="moments shown per second; 25 is real time")
    add("--samples", type=positive_integer, default=2, metavar="N", help="N x N rays for each pixel, 1-8 (2)")
    add("--no-shadows", dest="shadows", action="store_false", help="without shadows")


def run(arguments: argparse.Namespace) -> int:
    """Simulates, draws and writes."""
    write = _writer(arguments.output)
    dump = _read_dump(arguments)
    policy = find_policy(arguments.policy)
    arguments.steps = _number_of_steps(arguments, dump)
    with simulator_of(arguments, policy, arguments.episode_length) as sim:
        _check_shown(sim, arguments)
        with Progress(arguments.steps, sys.stderr) as progress:
            act = acting(policy, sim) if dump is None else _playing(dump, sim)
            written = write(sim, _moments(sim, arguments, act, progress), arguments)
        if dump is not None:
            _report_clamped(sim, arguments.actions)
    print(f"{arguments.output}: {written}")
    return 0


# ---- Steps

Moments = Iterator[int]  # the number of steps taken; the simulator steps when the next one is asked for
Act = Callable[[int], None]  # sets the actions of a step; steps are counted from 1


def _read_dump(arguments: argparse.Namespace) -> NDArray[np.int32] | None:
    if arguments.actions is None:
        return None
    dump = read_action_dump(arguments.actions, arguments.worlds, arguments.agents)
    if not len(dump):
        raise ArgumentError(f"--actions {arguments.actions} has no steps.", argument="actions")
    return dump


def _number_of_steps(arguments: argparse.Namespace, dump: NDArray[np.int32] | None) -> int:
    # The last step of an episode already shows the next one.
    available = arguments.episode_length - 1 if dump is None else len(dump)
    steps: int = available if arguments.steps is None else arguments.steps
    if dump is not None and steps > available:
        raise ArgumentError(
            f"--steps is {steps}, but {arguments.actions} has {count(available, 'step')}.", argument="steps"
        )
    if arguments.skip > steps:
        taken = f"{count(steps, 'step')} {'is' if steps == 1 else 'are'} taken"
        raise ArgumentError(f"--skip is {arguments.skip}, but only {taken}.", argument="skip")
    return steps


def _check_shown(sim: doorstep.Simulator, arguments: argparse.Namespace) -> None:
    outside = [world for world in arguments.show if world >= sim.num_worlds]
    if outside:
        raise ArgumentError(
            f"--show names world {outside[0]} of {count(sim.num_worlds, 'world')}, counted from 0.",
            argument="show",
            hint="Give more --worlds.",
        )
    Drawing(num_agents=sim.num_agents, **_view(arguments))  # refuses what render() would refuse after the steps


def _moments(sim: doorstep.Simulator, arguments: argparse.Namespace, act: Act, progress: Progress) -> Moments:
    """Every moment that is shown, from before the first step to after the last."""
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


def _playing(dump: NDArray[np.int32], sim: doorstep.Simulator) -> Act:
    return lambda step: sim.actions.copy_from_host(dump[step - 1])


def _report_clamped(sim: doorstep.Simulator, path: Path) -> None:
    clamped = sim.health.clamped_actions
    if clamped:
        values = f"{count(clamped, 'action value')} of {path} {'was' if clamped == 1 else 'were'}"
        print(f"doorstep render: note: {values} out of range and clamped", file=sys.stderr)


# ---- Files

# Takes the steps, writes the file and returns a description of it.
_Write = Callable[[doorstep.Simulator, Moments, argparse.Namespace], str]


def _writer(output: Path) -> _Write:
    """Refuses an impossible output before the steps are taken."""
    ending = check_output(output, _WRITERS)
    if ending in VIDEO_ENDINGS:
        load_av()
    return _WRITERS[ending]


def _write_picture(sim: doorstep.Simulator, moments: Moments, arguments: argparse.Namespace) -> str:
    for step in moments:
        last = step
    image = _draw(sim, arguments)
    write_png(arguments.output, image)
    return f"{image.shape[1]} x {image.shape[0]} pixels, after step {last:,}"


def _write_video(sim: doorstep.Simulator, moments: Moments, arguments: argparse.Namespace) -> str:
    written = write_video(arguments.output, (_draw(sim, arguments) for _ in moments), arguments.fps)
    return f"{count(written, 'frame')}, {arguments.fps:g} a second"


def _write_replay(sim: doorstep.Simulator, moments: Moments, arguments: argparse.Namespace) -> str:
    next(moments)
    recorder = Recorder(sim, arguments.show, title=_title(sim, arguments))
    for _ in moments:
        recorder.record()
    recorder.save(arguments.output)
    return f"{count(len(recorder), 'moment')} of {count(len(arguments.show), 'world')}"


_WRITERS: dict[str, _Write] = {
    ".png": _write_picture,
    ".html": _write_replay,
    **dict.fromkeys(VIDEO_ENDINGS, _write_video),
}


def _title(sim: doorstep.Simulator, arguments: argparse.Namespace) -> str:
    acting = arguments.actions.name if arguments.actions else f"policy {arguments.policy}"
    return f"{acting}, seed {sim.seed}"


def _view(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `Simulator.render` but the world."""
    width, height = arguments.size
    view = {name: getattr(arguments, name) for name in ("camera", "agent", "samples", "shadows")}
    return {**view, "width": width, "height": height}


def _draw(sim: doorstep.Simulator, arguments: argparse.Namespace) -> Image:
    return side_by_side([sim.render(world, **_view(arguments)) for world in arguments.show])


def side_by_side(images: list[Image]) -> Image:
    """Images of one size in rows, so that the whole is about as wide as high."""
    height, width = images[0].shape[:2]
    columns = min(len(images), math.ceil(math.sqrt(len(images) * height / width)))
    rows = math.ceil(len(images) / columns)
    shape = (rows * (height + _GAP) - _GAP, columns * (width + _GAP) - _GAP, 3)
    whole: Image = np.full(shape, _GAP_COLOUR, np.uint8)
    places = itertools.product(range(0, shape[0], height + _GAP), range(0, shape[1], width + _GAP))
    for image, (top, left) in zip(images, places, strict=False):
        whole[top : top + height, left : left + width] = image
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
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; give width and height as 640x480")
    return int(match[1]), int(match[2])
