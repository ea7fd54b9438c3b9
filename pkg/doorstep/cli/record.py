"""`doorstep record`: steps worlds under a policy and records them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

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
from doorstep.recording.record import take_steps
from doorstep.recording.writer import whole_recording

SUMMARY = "Step worlds and record them, for replay, view and render."

EXAMPLES = ("doorstep record --policy trained --worlds 16 --steps 400 --output run.rec",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    add_simulator_arguments(parser)
    add_play_arguments(parser)
    add("--steps", **COUNT, default=1000, help="number of steps (1000)")
    add("--episode-length", **COUNT, default=200, help="steps of an episode (200)")
    add("--output", **FILE, default=Path("doorstep.rec"), help="the recording (doorstep.rec)")
    said = "steps from one record of all worlds' hashes, which a replay compares, to the next (64)"
    add("--hash-interval", **COUNT, default=64, help=said)


def run(arguments: argparse.Namespace) -> int:
    """Steps and records. After Ctrl-C the file has all steps that were taken."""
    check_output(arguments.output)
    policy = policy_of(arguments)
    with simulator_of(arguments, observations_for(policy)) as sim:
        player = Player(policy, sim, arguments.policy)
        rooms_start = RoomsStart(sim, arguments.start)
        rooms_start.before_steps()
        with (
            whole_recording(arguments.output, sim, hash_interval=arguments.hash_interval) as writer,
            Progress(arguments.steps, sys.stderr) as progress,
        ):
            for step in take_steps(sim, writer, player.act, arguments.steps):
                if rooms_start.after_step():
                    writer.checkpoint()
                progress.update(step)
    what = f"{count(arguments.steps, 'step')} of {count(arguments.worlds, 'world')}"
    print(f"{arguments.output}: {what}, {count(arguments.output.stat().st_size, 'byte')}")
    return 0
