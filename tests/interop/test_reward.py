"""Rewards in place of those of levels, in the worlds of JAX and PyTorch: as a simulator's."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from tests.scenes import random_actions

import doorstep
from doorstep.errors import ArgumentError
from doorstep.levels import Rewards, reference

REWARD = Rewards(progress=0.3, idle=-0.1, room=1.0, exit=2.0, cube_approach=0.5)
OTHERS = [reference(), reference().replace(rewards=Rewards(idle=7.0))]


def rewards_of_a_simulator() -> list[np.ndarray]:
    sim = doorstep.Simulator(12, seed=4, reward=REWARD)
    seen = []
    for actions in random_actions(8, 40, 12, 2):
        sim.actions[:] = actions
        sim.step()
        seen.append(sim.rewards.copy_to_host())
    return seen


def module_of(library: str) -> Any:
    pytest.importorskip(library)
    return importlib.import_module(f"doorstep.{library}")


def rewards_of(library: str, **options: object) -> list[np.ndarray]:
    module = module_of(library)
    if library == "jax":
        rooms = module.make(12, seed=4, outputs=("rewards",), **options)
        convert = np.asarray
    else:
        rooms, convert = module.make(12, seed=4, **options), importlib.import_module("torch").from_numpy
    state, seen = rooms.init(), []
    for actions in random_actions(8, 40, 12, 2):
        state = rooms.step(state, convert(np.ascontiguousarray(actions)))
        seen.append(np.asarray(state.rewards).copy())
    return seen


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_worlds_outside_a_simulator_are_rewarded_as_in_one(library: str) -> None:
    np.testing.assert_array_equal(rewards_of(library, reward=REWARD), rewards_of_a_simulator())


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_they_replace_the_rewards_of_every_level(library: str) -> None:
    expected = rewards_of(library, levels=[reference().replace(rewards=REWARD)] * 2)
    np.testing.assert_array_equal(rewards_of(library, levels=OTHERS, reward=REWARD), expected)


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_functions_are_refused_where_no_function_can_be_applied(library: str) -> None:
    module = module_of(library)
    with pytest.raises(ArgumentError, match="environments and train") as caught:
        module.make(2, reward=lambda step: step.rewards)
    assert caught.value.argument == "reward"
