"""Writes the replays in docs/images/, which the pages of the documentation show live: `make docs-images`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import doorstep
from doorstep import levels
from doorstep.policy import load_policy
from doorstep.policy.playing import Player
from doorstep.recording.film import Film

IMAGES = Path(__file__).parent / "images"
SEED = 5
STEPS = 200
WORLDS = 6  # of the trained policy


def write(name: str, sim: doorstep.Simulator, policy: str, title: str) -> None:
    """Writes a replay of all worlds of a simulator, each until its agents are out."""
    path = IMAGES / name
    player = Player(load_policy(policy), sim)

    def moments() -> Iterator[int]:
        yield 0
        for step in range(1, STEPS):
            player.act()
            sim.step()
            yield step

    written = Film(range(sim.num_worlds), until="out").write(path, sim, moments(), title)
    print(f"docs/images/{name}: {written}, {path.stat().st_size:,} bytes", flush=True)


def trained() -> None:
    """Six worlds of the trained policy."""
    with doorstep.Simulator(WORLDS, seed=SEED) as sim:
        write("trained.html", sim, "trained", "the trained policy")


def curated() -> None:
    """Every curated level, solved by the scripted policy."""
    table = list(levels.curated().values())
    with doorstep.Simulator(len(table), seed=SEED, levels=table) as sim:
        sim.level_weights.copy_from_host(np.eye(len(table), dtype=np.float32))  # world k plays level k
        sim.reset()
        write("levels.html", sim, "scripted", "twenty levels, solved")


if __name__ == "__main__":
    trained()
    curated()
