"""The built-in policies play every curated level: one acts at random, one plans, which is never worse."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

import doorstep
from doorstep import levels
from doorstep.cli import main
from doorstep.policy import load_policy
from doorstep.policy.playing import Player
from doorstep.recording import Recording

CURATED = levels.curated()
WORLDS = 2  # of each level
BASELINES = ("random", "scripted")


@functools.cache
def returns(policy: str) -> dict[str, tuple[float, float]]:
    """Of each level, the mean return of the agents' first episodes, and the share that the goal ended."""
    table, count = list(CURATED.values()), WORLDS * len(CURATED)
    with doorstep.Simulator(count, seed=4, max_levels=len(table), auto_reset=False) as sim:
        sim.set_levels(table)
        sim.level_weights[...] = np.repeat(np.eye(len(table), dtype=np.float32), WORLDS, axis=0)
        sim.reset()
        act = Player(load_policy(policy), sim).act
        summed, solved, ended = np.zeros(count), np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        while not ended.all():
            act()
            sim.step()
            summed += np.where(ended, 0, sim.rewards.to_numpy().mean(axis=(1, 2)))
            solved |= ~ended & sim.terminations.to_numpy().all(axis=(1, 2))
            ended |= sim.dones.to_numpy().all(axis=(1, 2))
    by_level = (values.reshape(-1, WORLDS).mean(axis=1).tolist() for values in (summed, solved))
    return dict(zip(CURATED, zip(*by_level, strict=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", CURATED)
def test_the_scripted_policy_is_better_than_random_actions(name: str) -> None:
    (random_return, random_share), (scripted_return, scripted_share) = (returns(policy)[name] for policy in BASELINES)
    assert scripted_share >= random_share
    assert scripted_return > random_return
    assert scripted_share > 0


@pytest.mark.slow
@pytest.mark.parametrize("policy", BASELINES)
def test_the_curated_levels_are_recorded_under_both(policy: str, tmp_path: Path) -> None:
    collection, path = tmp_path / "curated.json", tmp_path / "run.rec"
    levels.save_levels(collection, list(CURATED.values()))
    options = ["--levels", str(collection), "--policy", policy, "--worlds", "40", "--steps", "30", "--seed", "3"]
    assert main(["record", *options, "--output", str(path)]) == 0
    with Recording(path) as recording, doorstep.Simulator.from_config(recording.config) as sim:
        recording.replay(sim)
        assert sim.levels == tuple(CURATED.values())
        assert len(set(sim.level_indices.to_numpy().ravel().tolist())) > 10
