"""Trains the policy that comes with doorstep.

    python examples/trained_policy.py [--run-dir trained] [--output FILE] [--shorten N]

A run in stages: each goes on with the weights and moments of the one before, with other levels, worlds and schedules.
It took about 35 minutes of CPU time on one core of an AMD EPYC. Another machine gives other bits, and
about the same shares: see docs/explanation/training.md.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from doorstep.errors import ArgumentError
from doorstep.levels import Button, Cube, Door, GeneratedLevel, Level, Physics, Room, Spawn, Wall, reference
from doorstep.policy import SamplingParams
from doorstep.training import Checkpoint, Trainer, export_policy, preset, save_checkpoint

ROOM = 40 / 3  # metres along y
SLOT = 20 / 3  # metres along x: the opening for a door
NUM_DRAWN = 512  # levels of a kind that this file draws
TEMPERATURE = 0.7


@dataclass(frozen=True)
class Stage:
    """levels: how likely each kind is. schedule: the updates after which schedules end; updates: those made."""

    levels: Mapping[str, float]
    updates: int
    schedule: int
    changes: Sequence[str]


EARLY = {"reference": 0.6, "cubes": 0.2, "soon": 0.2}
STAGES = (
    Stage(EARLY, 2716, 100_000, ["ppo.entropy_weight=0.006", "ppo.final_entropy_weight=none",
                                 "ppo.final_learning_rate=none"]),
    Stage(EARLY, 1342, 8000, ["ppo.learning_rate=1.5e-3", "ppo.final_learning_rate=1e-4",
                              "ppo.entropy_weight=0.002", "ppo.final_entropy_weight=0.0003"]),
    Stage({"reference": 0.5, "soon, fast doors": 0.2, "last, fast doors": 0.3}, 3689, 7000,
          ["ppo.learning_rate=1.4e-3", "ppo.final_learning_rate=1e-4",
           "ppo.entropy_weight=0.0017", "ppo.final_entropy_weight=0.0002"]),
    Stage({"reference": 0.6, "soon": 0.1, "last": 0.3}, 712, 1600,
          ["simulator.num_worlds=512", "ppo.learning_rate=7e-4", "ppo.final_learning_rate=3e-5",
           "ppo.entropy_weight=0.001", "ppo.final_entropy_weight=0.0001"]),
    Stage({"reference": 0.55, "last": 0.15, "last, cube at a wall": 0.3}, 724, 3000,
          ["simulator.num_worlds=512", "ppo.learning_rate=8e-4", "ppo.final_learning_rate=5e-5",
           "ppo.entropy_weight=0.001", "ppo.final_entropy_weight=0.0001"]),
    Stage({"reference": 0.4, "last": 0.2, "last, cube at a wall": 0.4}, 2000, 2000,
          ["simulator.num_worlds=512", "ppo.learning_rate=1.5e-3", "ppo.final_learning_rate=5e-5",
           "ppo.entropy_weight=0.003", "ppo.final_entropy_weight=0.0002"]),
    Stage({"reference": 0.4, "last": 0.2, "last, cube at a wall": 0.4}, 1000, 1000,
          ["simulator.num_worlds=512", "ppo.learning_rate=1.5e-3", "ppo.final_learning_rate=2e-4",
           "ppo.entropy_weight=0.003", "ppo.final_entropy_weight=0.0005"]),
)  # fmt: skip


# ---- Levels


def levels_of(kind: str) -> list[GeneratedLevel | Level]:
    """The levels of a kind, all equally likely."""
    physics = Physics(door_speed=100 if "fast doors" in kind else 30)
    if kind == "reference":
        return [reference()]
    if kind == "cubes":
        return [GeneratedLevel(room_types=("cube_buttons",) * 3)]
    if kind.startswith("soon"):
        return [GeneratedLevel(room_types=("single_button", "single_button", "cube_buttons"), physics=physics)]
    generator = np.random.default_rng(1)
    return [draw_last_room(generator, physics, "at a wall" in kind) for _ in range(NUM_DRAWN)]


def draw_last_room(generator: np.random.Generator, physics: Physics, at_a_wall: bool) -> Level:
    """A level whose agents begin in the last room."""
    while True:
        with contextlib.suppress(ArgumentError):  # something overlaps
            return last_room(generator, physics, at_a_wall)


def last_room(generator: np.random.Generator, physics: Physics, at_a_wall: bool) -> Level:
    """The last room as the reference's generator draws it, but with cubes anywhere between their buttons and where the
    generator puts them. at_a_wall: one of the cubes stands at the side wall instead."""
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
    wall = int(generator.integers(2)) if at_a_wall else -1
    for index, (side, (x, y)) in enumerate(zip((-1, 1), last, strict=True)):
        near = np.array((np.clip(x + draw(-1, 1), -8.4, 8.4), np.clip(y + draw(-1, 1), low, high)))
        far = np.array((side * draw(1.5, 5), draw(start + 2, end - 3)))
        on_button = generator.random() < (0.6 if at_a_wall else 0.3)
        share = 0.0 if on_button else min(1.0, draw(0, 1.6))
        if index == wall:
            far, share = np.array((side * draw(7.9, 8.45), y + draw(-1, 1) * generator.choice([3, 6, 10]))), 1.0
        place = near + share * (far - near)
        cubes.append(Cube(x=place[0], y=np.clip(place[1], low, high)))
    spawns = [Spawn(x=draw(-8.5, 8.5), y=draw(start + 1.5, end - 2.6), yaw=(-3.1, 3.1)) for _ in range(2)]
    rooms = [Room(ROOM * room, ROOM * (room + 1), room) for room in range(3)]
    return Level(
        walls=walls, doors=doors, buttons=buttons, cubes=cubes, spawns=spawns, rooms=rooms, physics=physics
    )


# ---- Training


def train_stage(number: int, stage: Stage, before: Checkpoint | None, shorten: int) -> Checkpoint:
    """Trains a stage, beginning with the network of the one before."""
    kinds = {kind: levels_of(kind) for kind in stage.levels}
    levels = [level for drawn in kinds.values() for level in drawn]
    config = preset("default").changed(
        "rollout.practice_worlds=0", f"simulator.max_levels={len(levels)}", f"num_updates={stage.schedule}",
        f"seed={number}", f"simulator.seed={number}", *stage.changes,
    )  # fmt: skip
    trainer = Trainer(config)
    weights = [stage.levels[kind] / len(drawn) for kind, drawn in kinds.items() for _ in drawn]
    trainer.worlds.sim.set_levels(levels, weights=weights)
    trainer.worlds.stagger()
    if before is not None:
        trainer.begin_with(before)
    for update in range(1, max(1, stage.updates // shorten) + 1):
        record = trainer.update()
        if update % 100 == 0 and record.episodes:
            print(f"stage {number}, update {update}: return {record.mean_return:.2f}", flush=True)
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
        checkpoint = train_stage(number, stage, checkpoint, options.shorten)
        save_checkpoint(options.run_dir / f"stage_{number}.safetensors", checkpoint)
    last = options.run_dir / f"stage_{len(STAGES) - 1}.safetensors"
    output = options.output or options.run_dir / "policy.safetensors"
    export_policy(last, output, sampling=SamplingParams(temperature=TEMPERATURE))


if __name__ == "__main__":
    main()
