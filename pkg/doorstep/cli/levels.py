"""`doorstep levels`: lists levels, shows their maps, draws them, and checks whether they can be solved."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import doorstep
from doorstep._arguments import count
from doorstep.cli.argument_types import COUNT, LEVELS, check_output
from doorstep.cli.terminal import Progress
from doorstep.evaluation.scores import Score
from doorstep.levels import Level
from doorstep.levels.choice import find_levels
from doorstep.levels.files import AnyLevel
from doorstep.recording.grid import side_by_side
from doorstep.recording.panel import Image
from doorstep.render import write_png

SUMMARY = "List levels, show their maps, draw them, and check whether they can be solved."

EXAMPLES = (
    "doorstep levels",
    'doorstep levels "let me in" --map',
    "doorstep levels curated --output levels.png",
    "doorstep levels mine.json --check",
)

_Camera: TypeAlias = Literal["top", "overview"]
_WIDTH, _HEIGHT = 360, 300  # pixels of the picture of a level
_POLICY = "scripted"
_NOT_SOLVED = 3  # exit code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add = parser.add_argument
    add("levels", nargs="?", default="curated", metavar="LEVELS", help=f"{LEVELS} (curated)")
    add("--map", action="store_true", help="print the map of each level")
    add("--output", type=Path, metavar="PATH", help="draw the levels: into a .png file, or one each into a folder")
    add("--camera", choices=get_args(_Camera), default="overview", help="the camera of the drawing (overview)")
    add("--check", action="store_true", help="let the scripted policy play each level; exit code 3 if it fails")
    add("--episodes", **COUNT, default=4, help="episodes of --check in each level (4)")


def run(arguments: argparse.Namespace) -> int:
    """Lists the levels, or does what options ask for."""
    if arguments.output is not None and not arguments.output.is_dir():
        check_output(arguments.output, (".png",))
    levels = find_levels(arguments.levels)
    if not (arguments.map or arguments.output or arguments.check):
        _list(levels)
    if arguments.map:
        print("\n\n".join(map(repr, levels.values())))
    if arguments.output is not None:
        _write_pictures(levels, arguments.output, arguments.camera)
    return _check(levels, arguments.episodes) if arguments.check else 0


def _list(levels: Mapping[str, AnyLevel]) -> None:
    """A line for each level: its parts, steps, name and description."""
    print("agents doors buttons cubes steps  name")
    width = max(map(len, levels))
    for name, level in levels.items():
        counts = [""] * 4  # of what is drawn at every reset
        if isinstance(level, Level):
            counts = [str(len(parts)) for parts in (level.spawns, level.doors, level.buttons, level.cubes)]
        agents, doors, buttons, cubes = counts
        steps = "" if level.episode_length is None else str(level.episode_length)
        line = f"{agents:>6} {doors:>5} {buttons:>7} {cubes:>5} {steps:>5}  {name:<{width}}  {level.description}"
        print(line.rstrip())


# ---- Pictures


def _write_pictures(levels: Mapping[str, AnyLevel], output: Path, camera: _Camera) -> None:
    images = {name: _draw(level, camera) for name, level in levels.items()}
    if not output.is_dir():
        write_png(output, side_by_side([*images.values()]))
        print(f"{output}: {count(len(images), 'level')}")
        return
    for name, image in images.items():
        file = output / (re.sub(r"\W+", "_", name).strip("_") + ".png")
        write_png(file, image)
        print(f"{file}: {name}")


def _draw(level: AnyLevel, camera: _Camera) -> Image:
    with doorstep.Simulator(1, num_agents=_agents_of(level), levels=level, num_threads=1) as sim:
        return sim.render(0, camera, width=_WIDTH, height=_HEIGHT)


def _agents_of(level: AnyLevel) -> int:
    """As many as there are spawns."""
    return len(level.spawns) if isinstance(level, Level) else 2


# ---- Whether they can be solved


def _check(levels: Mapping[str, AnyLevel], episodes: int) -> int:
    """Plays the levels one after the other, and prints a line for each."""
    width, all_solved = max(map(len, levels)), True
    with Progress(len(levels), sys.stderr, "level") as progress:
        for number, (name, level) in enumerate(levels.items(), 1):
            evaluation = doorstep.evaluate(
                _POLICY, levels={name: level}, episodes=episodes, num_agents=_agents_of(level)
            )
            score = evaluation.score(_POLICY)
            all_solved &= _solved(score) > 0
            progress.update(number, name)
            print(f"{name:<{width}}  {_verdict(score)}", flush=True)
    return 0 if all_solved else _NOT_SOLVED


def _solved(score: Score) -> float:
    """The share of episodes that reached the goal, or in the reference's rooms without one, in which all got out."""
    if score.success is not None:
        return score.success.value
    return score.rooms[-1].all.value if score.rooms else 0.0


def _verdict(score: Score) -> str:
    if score.success is None and not score.rooms:
        return "not solved: it has no goal"
    solved = round(_solved(score) * score.episodes)
    steps = f", {score.mean_length.value:.0f} steps on average" if solved else ""
    return f"{'solved' if solved else 'not solved'} in {solved} of {count(score.episodes, 'episode')}{steps}"
