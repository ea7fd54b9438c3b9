"""Writes the replays that pages of the documentation show live."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import doorstep
from doorstep import levels
from doorstep.policy import load_policy
from doorstep.policy.playing import Player
from doorstep.recording.film import Film

SEED = 5
STEPS = 199  # of an episode: the next step begins another
WORLDS = 6  # of the trained policy


def trained_page(path: Path) -> None:
    """Worlds of the trained policy."""
    with doorstep.Simulator(WORLDS, seed=SEED) as sim:
        _write(path, sim, "trained", "the trained policy")


def curated_page(path: Path) -> None:
    """Every curated level, solved by the scripted policy."""
    table = list(levels.curated().values())
    with doorstep.Simulator(len(table), seed=SEED, levels=table) as sim:
        sim.level_weights.copy_from_host(np.eye(len(table), dtype=np.float32))  # world k plays level k
        sim.reset()
        _write(path, sim, "scripted", "twenty levels, solved")


def _write(path: Path, sim: doorstep.Simulator, policy: str, title: str) -> None:
    """A replay of all worlds, each until its agents are out."""
    player = Player(load_policy(policy), sim)

    def moments() -> Iterator[int]:
        yield 0
        for step in range(1, STEPS + 1):
            player.act()
            sim.step()
            yield step

    Film(range(sim.num_worlds), until="out").write(path, sim, moments(), title)
