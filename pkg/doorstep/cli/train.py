"""`doorstep train`: trains agents with PPO."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doorstep._arguments import count
from doorstep._configs.changes import split_changes
from doorstep._reward import split_reward
from doorstep.cli.argument_types import LEVELS, REWARDS, load_reward, positive_integer, reward_text
from doorstep.cli.training_screen import TrainingScreen
from doorstep.errors import ArgumentError

if TYPE_CHECKING:
    from doorstep.levels import Rewards
    from doorstep.training import TrainingConfig

SUMMARY = "Train agents with PPO, and write a checkpoint that can be played and resumed."

EXAMPLES = (
    "doorstep train --run-dir rooms --minutes 10",
    "doorstep train --run-dir rooms --resume --minutes 10 gamma=0.998",
    "doorstep train --run-dir mine --levels mine.json --worlds 128 learning_rate=5e-4",
)

# What they are for.
PRESETS = {
    "default": "the reference's rooms, some 18 minutes of one CPU core",
    "general": "rooms of all types and the curated levels",
    "reference": "as the reference's authors train, on a GPU",
    "pixels": "agents that see pixels alone",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    said = "change a field of the config, such as learning_rate=1e-3 or widths=64,64"
    add("changes", nargs="*", metavar="KEY=VALUE", help=said)
    described = "; ".join(f"{name}: {use}" for name, use in PRESETS.items())
    add("--preset", choices=PRESETS, help=f"the config to begin with (default). {described}")
    said = "a config to begin with: a .json, .yaml or .yml file, such as the config.json of a run"
    add("--config", type=Path, metavar="FILE", help=said)
    add("--levels", metavar="LEVELS", help=f"short for levels=LEVELS: {LEVELS}")
    said = f"{REWARDS}, or of a function of a step's tensors. Terms are short for reward=TERMS"
    add("--reward", metavar="REWARD", help=said)
    add("--worlds", type=positive_integer, metavar="N", help="short for simulator.num_worlds=N (the config's)")
    add("--num-updates", type=positive_integer, metavar="N", help="short for num_updates=N (the config's)")
    add("--minutes", type=float, metavar="X", help="write a checkpoint and end after so many minutes of the clock")
    add("--device", metavar="DEVICE", help="short for simulator.device=DEVICE: cpu, cuda or cuda:K (the config's)")
    add("--seed", type=int, metavar="N", help="short for seed=N simulator.seed=N (the config's)")
    add("--run-dir", type=Path, default=Path("run"), metavar="DIR", help="folder for the files of the run (run)")
    add("--resume", action="store_true", help="go on with the run in --run-dir, from its last checkpoint")
    add(
        "--auto-resume",
        action="store_true",
        help="go on with the run in --run-dir if it has a checkpoint, otherwise begin it, with this command's config; "
        "for torchrun --max-restarts and queued jobs",
    )
    add("--tensorboard", action="store_true", help="also write for TensorBoard, below --run-dir")
    add("--print-config", action="store_true", help="print the config as JSON, and train nothing")


def run(arguments: argparse.Namespace) -> int:
    """Trains, showing how it goes. Ctrl-C writes a checkpoint and ends the run after the present update."""
    from doorstep import training  # here: it imports PyTorch

    terms, function = split_reward(load_reward(arguments.reward))
    changes = changes_of(arguments, terms)
    if arguments.resume and (arguments.preset or arguments.config):
        raise ArgumentError("--resume is given with --preset or --config; a run keeps its config.", argument="resume")
    if arguments.resume and arguments.auto_resume:
        raise ArgumentError("--resume and --auto-resume are both given; give one.", argument="resume")
    if arguments.print_config or not arguments.resume:
        config = config_of(arguments).changed(*changes)
    if arguments.print_config:
        print(config.to_json(indent=2))
        return 0
    with interruptions() as should_stop, TrainingScreen(sys.stdout, arguments.minutes) as screen:
        options: dict[str, Any] = {
            "minutes": arguments.minutes,
            "on_begin": screen.begin,
            "on_update": screen.show,
            "should_stop": should_stop,
            "tensorboard": arguments.tensorboard,
        }
        rewarded: dict[str, Any] = {} if function is None else {"reward": function}
        if arguments.resume:
            trainer = training.resume(arguments.run_dir, **options, **{**split_changes(changes), **rewarded})
        else:
            options["auto_resume"] = arguments.auto_resume
            trainer = training.train(arguments.run_dir, config=config, **options, **rewarded)
        was_interrupted = should_stop()
    report(trainer, arguments.run_dir)
    return 130 if was_interrupted and trainer.updates < trainer.config.num_updates else 0


def config_of(arguments: argparse.Namespace) -> TrainingConfig:
    """The config of --config or --preset."""
    from doorstep.training import TrainingConfig, preset

    if arguments.config is None:
        return preset(arguments.preset or "default")
    if arguments.preset is not None:
        raise ArgumentError("--config and --preset are both given; give one.", argument="config")
    return TrainingConfig.load(arguments.config)


def changes_of(arguments: argparse.Namespace, reward: Rewards | None) -> list[str]:
    """The changes that short options stand for, then those written out.

    reward: the terms of --reward; None if it has none, as where it names a function, which replaces the config's.
    """
    short = {
        "levels": arguments.levels,
        "reward": None if arguments.reward is None else reward_text(reward),
        "simulator.num_worlds": arguments.worlds,
        "num_updates": arguments.num_updates,
        "simulator.device": arguments.device,
        "seed": arguments.seed,
        "simulator.seed": arguments.seed,
    }
    return [*(f"{name}={value}" for name, value in short.items() if value is not None), *arguments.changes]


@contextlib.contextmanager
def interruptions() -> Iterator[Callable[[], bool]]:
    """Whether the run was asked to stop, by Ctrl-C or SIGTERM. A second Ctrl-C interrupts at once."""
    asked = False

    def ask(number: int, _: object) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def report(trainer: Any, folder: Path) -> None:
    """Says where the result is, in the first process."""
    done, total = trainer.updates, trainer.config.num_updates
    steps = count(trainer.world_steps, "world-step")
    if trainer.ranks.is_first:
        print(f"{count(done, 'update')}, {steps}: {folder / 'checkpoint.safetensors'}")
        if done < total:
            print(f"stopped before update {total:,}; go on with: doorstep train --resume --run-dir {folder}")
