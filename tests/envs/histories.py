"""Episodes as a plain simulator tells them, to compare environments with: it resets nothing by itself."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from tests.scenes import random_actions

import doorstep

Array = npt.NDArray[Any]

PARTS = (
    "steps_remaining",
    "self_observations",
    "partner_observations",
    "room_entity_observations",
    "door_observations",
    "lidar",
)


class Told(NamedTuple):
    """What a step did, by world; observations are before any reset of this step."""

    observations: dict[str, Array]
    rewards: Array
    ended: Array
    returns: Array
    lengths: Array


class Worlds:
    """A simulator with sums of rewards and steps of the running episodes."""

    def __init__(self, num_worlds: int, **rules: Any) -> None:
        self.sim = doorstep.Simulator(num_worlds, auto_reset=False, num_threads=1, **rules)
        self.returns = np.zeros((num_worlds, self.sim.num_agents), np.float32)
        self.lengths = np.zeros(num_worlds, np.int32)

    def observe(self) -> dict[str, Array]:
        """Copies of all observations, [N, A, ...] by name."""
        return {name: np.array(self.sim.tensors[name]) for name in ("observations", *PARTS)}

    def step(self, actions: Array) -> Told:
        self.sim.actions = actions
        self.sim.step()
        rewards = np.array(self.sim.rewards)[..., 0]
        self.returns += rewards
        self.lengths += 1
        ended = np.array(self.sim.dones)[:, 0, 0] != 0
        return Told(self.observe(), rewards, ended, self.returns.copy(), self.lengths.copy())

    def reset(self, worlds: Array) -> None:
        """Begins episodes in the worlds of a mask."""
        if worlds.any():
            self.sim.reset(worlds)
        self.returns[worlds] = 0
        self.lengths[worlds] = 0


class History:
    """What an environment has to return in an autoreset mode, by world and agent, with `step()` and `reset()`.

    Attributes:
        final: with same_step: the observations of the episodes that ended in this step, else None.
    """

    def __init__(self, autoreset: str, num_worlds: int, **rules: Any) -> None:
        self.autoreset = autoreset
        self.worlds = Worlds(num_worlds, **rules)
        self.ended = np.zeros(num_worlds, bool)
        self.final: dict[str, Array] | None = None

    def reset(self, worlds: Array | None = None) -> dict[str, Array]:
        chosen = np.ones(len(self.ended), bool) if worlds is None else worlds
        self.worlds.reset(chosen)
        self.ended &= ~chosen
        return self.worlds.observe()

    def step(self, actions: Array) -> Told:
        told = self.worlds.step(actions)
        if self.autoreset == "next_step":
            told = self._begin_those_that_ended(told)
        elif self.autoreset == "same_step":
            self.final = told.observations
            self.worlds.reset(told.ended)
            told = told._replace(observations=self.worlds.observe())
        self.ended = told.ended
        return told

    def _begin_those_that_ended(self, told: Told) -> Told:
        begun = self.ended
        self.worlds.reset(begun)
        told.rewards[begun] = 0
        return told._replace(observations=self.worlds.observe(), ended=told.ended & ~begun)


def some_worlds(generator: np.random.Generator, num_worlds: int) -> Array:
    """A mask with at least one world."""
    mask = generator.random(num_worlds) < 0.4
    mask[generator.integers(num_worlds)] = True
    return mask


def actions_of(seed: int, steps: int, num_worlds: int, num_agents: int) -> Array:
    """Actions [steps, N, A, 4] that walk ahead more often than not, so that there are rewards."""
    actions = random_actions(seed, steps, num_worlds, num_agents)
    actions[..., 0] = np.maximum(actions[..., 0], 2)
    actions[..., 1] = np.where(actions[..., 1] < 4, 0, actions[..., 1])
    return actions


def equal(found: Any, expected: Any) -> None:
    """The same values, dtypes, shapes and keys."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for name in expected:
            equal(found[name], expected[name])
    else:
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)
