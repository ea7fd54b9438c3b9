"""`doorstep replay`: replays a recording and compares its worlds."""

from __future__ import annotations

import argparse
import sys

from doorstep._arguments import count
from doorstep.cli.argument_types import FILE, add_device_argument, add_incomplete_argument, add_threads_argument
from doorstep.cli.terminal import Progress
from doorstep.recording import Recording, Replay
from doorstep.simulator import Simulator

SUMMARY = "Replay a recording, and check that the same worlds result."

EXAMPLES = ("doorstep replay doorstep.rec",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument("recording", **FILE, help="a file of doorstep record or a RecordingWriter")
    add_device_argument(parser)
    add_threads_argument(parser)
    add_incomplete_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Replays to the end, or to the first difference, which is exit code 3."""
    with Recording(arguments.recording, incomplete=arguments.incomplete) as recording:
        config = recording.config.replace(device=arguments.device, num_threads=arguments.threads)
        with Simulator.from_config(config, reward=recording.reward) as sim:
            play = Replay(recording, sim)
            with Progress(recording.num_steps, sys.stderr) as progress:
                while play.position < recording.num_steps:
                    play.step()
                    progress.update(play.position)
            what = f"{count(recording.num_steps, 'step')} of {count(sim.num_worlds, 'world')}"
            compared = f"all worlds equal in {count(play.comparisons, 'comparison')}"
            print(f"{arguments.recording}: {what} replayed on {sim.device}, {compared}")
    return 0
