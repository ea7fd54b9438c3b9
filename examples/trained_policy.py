"""Trains the policy that comes with doorstep.

    python examples/trained_policy.py [--run-dir trained] [--output FILE] [--shorten N]

It adds levels that begin in the last room to what `doorstep train` does.

The run has stages: each goes on with the weights and moments of the one before, with other levels and schedules. It
took about 18 minutes of CPU time on one core of an AMD EPYC. Another machine gives other bits, and about the same
shares: see docs/explanation/training.md.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from doorstep.errors import ArgumentError
from doorstep.levels import Button, Cube, Door, GeneratedLevel, Goal, Level, Rewards, Room, Spawn, Wall
from doorstep.policy import SamplingParams
from doorstep.training import Checkpoint, Trainer, export_policy, preset, save_checkpoint

ROOM = 40 / 3  # metres along y
SLOT = 20 / 3  # metres along x: the opening for a door
GOAL = Goal(min_x=-50, max_x=50, min_y=42, max_y=90)  # behind the last door
NUM_DRAWN = 256  # levels of a kind that this file draws
TEMPERATURE = 0.7


@dataclass(frozen=True)
class Stage:
    """levels: how likely each kind is. retries: share of the episodes that begin in the middle of a failed one.
    schedule: the updates after which schedules end; updates: those made."""

    levels: Mapping[str, float]
    retries: float
    updates: int
    schedule: int
    changes: Sequence[str]


STAGES = (
    Stage({"reference": 0.5, "soon": 0.1, "last": 0.25, "last, cube at a wall": 0.15}, 0.4, 760, 4000,
          ["ppo.entropy_coefficient=0.004", "ppo.final_entropy_coefficient=0.0005"]),
    Stage({"reference": 0.6, "last": 0.2, "last, cube at a wall": 0.2}, 0.25, 1200, 2200,
          ["ppo.entropy_coefficient=0.0018", "ppo.final_entropy_coefficient=0.0004", "ppo.final_learning_rate=1e-4"]),
    Stage({"reference": 0.6, "last": 0.1, "last, cube at a wall": 0.1, "last, cube at the end": 0.2}, 0.4, 1200, 1200,
          ["ppo.entropy_coefficient=0.0018", "ppo.final_entropy_coefficient=0.0003",
           "ppo.learning_rate=1.3e-3", "ppo.final_learning_rate=5e-5"]),
)  # fmt: skip
CHANGES = ("learning_rate=1.5e-3", "final_learning_rate=2e-4")


# ---- Levels


def levels_of(kind: str) -> list[GeneratedLevel | Level]:
    """The levels of a kind, all equally likely."""
    if kind == "reference":
        return [GeneratedLevel(goal=GOAL)]
    if kind == "soon":
        types = ("single_button", "single_button", "cube_buttons")
        return [GeneratedLevel(room_types=types, goal=GOAL)]
    generator = np.random.default_rng(1)
    return [draw_last_room(generator, kind) for _ in range(NUM_DRAWN)]


def draw_last_room(generator: np.random.Generator, kind: str) -> Level:
    """A level whose agents begin in the last room."""
    while True:
        with contextlib.suppress(ArgumentError):  # something overlaps
            return last_room(generator, kind)


def last_room(generator: np.random.Generator, kind: str) -> Level:
    """The last room as the reference's generator draws it, but with cubes anywhere between their buttons and where the
    generator puts them. kind: one of them may stand at the side wall instead, before or behind its button, or at the
    wall at the end, from where it can only be dragged."""
    draw = generator.uniform
    walls = [Wall(x=0, y=-0.5, size_x=22, size_y=1, height=5)]
    walls += [Wall(x=side, y=20, size_x=1, size_y=40, height=5) for side in (10.5, -10.5)]
    doors = []
    for room in range(3):
        door, y = draw(0.75 * SLOT, 20 - 0.75 * SLOT), ROOM * (room + 1) - 0.5
        left, right = door - SLOT / 2, 20 - door - SLOT / 2
        walls.append(Wall(x=left / 2 - 10, y=y, size_x=left, size_y=1))
        walls.append(Wall(x=10 - right / 2, y=y, size_x=right, size_y=1))
        doors.append(Door(x=door - 10, y=y, size_x=0.8 * SLOT, persistent=room < 2))
    start, end = 2 * ROOM, 3 * ROOM
    buttons = [Button(x=4 * side, y=3 + ROOM * room, door=room) for room in (0, 1) for side in (-1, 1)]
    last = [(side * draw(6.3, 8.7), draw(start + 1.3, end - ROOM / 4)) for side in (-1, 1)]
    buttons += [Button(x=x, y=y, door=2) for x, y in last]
    cubes, low, high = [], start + 1.6, end - 2.6
    elsewhere = int(generator.integers(2)) if "cube at" in kind else -1
    for index, (side, (x, y)) in enumerate(zip((-1, 1), last, strict=True)):
        near = np.array((np.clip(x + draw(-1, 1), -8.4, 8.4), np.clip(y + draw(-1, 1), low, high)))
        far = np.array((side * draw(1.5, 5), draw(start + 2, end - 3)))
        on_button = generator.random() < (0.3 if elsewhere < 0 else 0.6)
        share = 0.0 if on_button else min(1.0, draw(0, 1.6))
        if index == elsewhere and "end" in kind:
            far, share = np.array((side * draw(4, 8.45), high + draw(-0.4, 0.05))), 1.0
        elif index == elsewhere:
            along = draw(2.3, 7) * generator.choice((-1, 1))
            far, share = np.array((side * draw(7.9, 8.45), np.clip(y + along, low, high))), 1.0
        place = near + share * (far - near)
        cubes.append(Cube(x=place[0], y=place[1]))
    spawns = [Spawn(x=draw(-8.5, 8.5), y=draw(start + 1.5, end - 2.6), yaw=(-3.1, 3.1)) for _ in range(2)]
    rooms = [Room(ROOM * room, ROOM * (room + 1), room) for room in range(3)]
    return Level(walls=walls, doors=doors, buttons=buttons, cubes=cubes, spawns=spawns, rooms=rooms, goal=GOAL)


# ---- Training


def train_stage(number: int, stage: Stage, before: Checkpoint | None, shorten: int, path: Path) -> Checkpoint:
    """Trains a stage, beginning with the network of the one before, and saves it now and then, and at the end."""
    kinds = {kind: levels_of(kind) for kind in stage.levels}
    config = preset("default").changed(
        *CHANGES,
        *stage.changes,
        levels=[level for drawn in kinds.values() for level in drawn],
        level_weights=[stage.levels[kind] / len(drawn) for kind, drawn in kinds.items() for _ in drawn],
        reward=Rewards(cube_approach=0.25, goal=2),
        retries=stage.retries,
        num_updates=stage.schedule,
        **{"seed": number, "simulator.seed": number},
    )
    trainer = Trainer(config)
    if before is not None:
        trainer.begin_with(before)
    last = max(1, stage.updates // shorten)
    for update in range(1, last + 1):
        record = trainer.update()
        if update % 100 == 0 or update == last:
            save_checkpoint(path, trainer.checkpoint())
            print(f"stage {number}, update {update}: {record.success:.0%}, the mean over all levels", flush=True)
    return trainer.checkpoint()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run-dir", type=Path, default=Path("trained"), help="folder for a checkpoint of each stage")
    parser.add_argument("--output", type=Path, help="the policy (policy.safetensors in --run-dir)")
    parser.add_argument("--shorten", type=int, default=1, metavar="N", help="make an Nth of the updates, to try it out")
    options = parser.parse_args()
    options.run_dir.mkdir(parents=True, exist_ok=True)
    checkpoint = None
    for number, stage in enumerate(STAGES):
        path = options.run_dir / f"stage_{number}.safetensors"
        checkpoint = train_stage(number, stage, checkpoint, options.shorten, path)
    output = options.output or options.run_dir / "policy.safetensors"
    export_policy(path, output, sampling=SamplingParams(temperature=TEMPERATURE))


if __name__ == "__main__":
    main()
