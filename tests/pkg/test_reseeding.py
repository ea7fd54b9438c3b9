"""Reseeded worlds are those of a new simulator, in the same memory; copies go on as the original does."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import doorstep

RULES: list[dict[str, Any]] = [
    {},
    {"num_agents": 3, "world_offset": 5, "episode_length": 3},
    {"levels": "curated", "level_weights": range(1, 21)},
]


def walk(sim: doorstep.Simulator, steps: int) -> None:
    for _ in range(steps):
        sim.actions[:] = (3, 0, 2, 0)
        sim.step()


def assert_equal(one: doorstep.Simulator, other: doorstep.Simulator, finals: bool = False) -> None:
    assert one.hash() == other.hash()
    for name, tensor in one.tensors.items():
        if finals or not name.startswith("final_"):
            np.testing.assert_array_equal(tensor.to_numpy(), other.tensors[name].to_numpy(), name)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_worlds_are_those_of_a_new_simulator(rules: dict[str, Any]) -> None:
    sim = doorstep.Simulator(4, seed=1, **rules)
    walk(sim, 4)
    sim.resets[:2] = 1
    sim.reset(seed=9)
    new = doorstep.Simulator(4, seed=9, **rules)
    assert (sim.seed, sim.config) == (9, new.config)
    for _ in range(3):
        assert_equal(sim, new)
        walk(sim, 2)
        walk(new, 2)


def test_tensors_stay_and_bound_memory_stays_bound() -> None:
    sim = doorstep.Simulator(4)
    rewards, lidar = np.zeros((4, 2), np.float32), sim.lidar.to_numpy()
    sim.bind(rewards=rewards)
    before = lidar.copy()
    sim.reset(seed=3)
    assert np.shares_memory(sim.rewards.to_numpy(), rewards)
    assert np.shares_memory(sim.lidar.to_numpy(), lidar)
    assert (lidar != before).any()


def test_levels_and_weights_of_later_stay() -> None:
    sim = doorstep.Simulator(4, max_levels=2)
    sim.set_levels([doorstep.levels.reference(), doorstep.levels.curated()["one door"]])
    sim.level_weights[:] = ((0, 1), (1, 0), (0, 1), (1, 0))
    sim.reset(seed=3)
    assert sim.level_indices[:, 0].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    "arguments", [{"seed": -1}, {"seed": 0.5}, {"seed": 2**32}, {"seed": 1, "worlds": [0]}], ids=str
)
def test_what_is_refused_changes_nothing(arguments: dict[str, Any]) -> None:
    sim = doorstep.Simulator(4, seed=7)
    walk(sim, 2)
    before = sim.hash()
    with pytest.raises(doorstep.ArgumentError) as caught:
        sim.reset(**arguments)
    assert caught.value.argument == "seed"
    assert (sim.hash(), sim.seed) == (before, 7)


def test_a_closed_simulator_is_not_reseeded() -> None:
    sim = doorstep.Simulator(1)
    sim.close()
    with pytest.raises(doorstep.ClosedError):
        sim.reset(seed=1)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda sim: pickle.loads(pickle.dumps(sim))], ids=["copy", "pickle"])
@pytest.mark.parametrize("rules", RULES, ids=str)
def test_copies_go_on_as_the_original_does(rules: dict[str, Any], copied: Any) -> None:
    sim = doorstep.Simulator(4, seed=1, **rules)
    walk(sim, 4)
    sim.actions[:] = (1, 2, 3, 1)
    sim.resets[1:] = 1
    other = copied(sim)
    assert other.config == sim.config
    for _ in range(4):
        assert_equal(sim, other, finals=True)
        sim.step()
        other.step()


def test_a_copy_goes_on_counting_errors() -> None:
    sim = doorstep.Simulator(3)
    sim.actions[1, 0] = (9, 9, 0, 0)
    sim.step()
    other = copy.deepcopy(sim)
    assert other.health == sim.health
    assert other.health.clamped_actions == 2
    other.step()
    assert other.health.clamped_actions == 4
    assert copy.deepcopy(other).health == other.health
    assert sim.health.clamped_actions == 2


def test_a_copy_has_memory_of_its_own() -> None:
    sim = doorstep.Simulator(2, episode_length=2)
    walk(sim, 2)
    other = copy.deepcopy(sim)
    kept = other.final_lidar.copy_to_host()
    assert kept.any()
    walk(sim, 2)
    assert (other.final_lidar.to_numpy() == kept).all()
    assert not (sim.final_lidar.to_numpy() == kept).all()
