"""Episodes as plain simulators tell them, to compare environments with: they reset nothing by themselves."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tests.scenes import FINAL_OBSERVATIONS as PARTS
from tests.scenes import random_actions

import doorstep
from doorstep.levels import Goal, Level, Room, Spawn

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
REORDERED = ("agent_index", ("lidar", 0.5), "physics", "steps_remaining", ("self_observations", 3))

# Agents that walk ahead are in the goal of the first one after some steps, if they have the time; the second has none.
NEAR = Level(
    spawns=(Spawn(-5, 0), Spawn(5, 0), Spawn(0, 0)),
    rooms=(Room(0, 9),),
    goal=Goal(min_x=-20, max_x=20, min_y=1.5, max_y=9),
    episode_length=(3, 7),
)
FAR = NEAR.replace(goal=None, episode_length=(1, 6))
ALIKE = NEAR.replace(episode_length=6)  # every episode of it begins alike: those of JAX are counted from another one


class Told(NamedTuple):
    """What a step did, by world; None: an environment does not say it. Rewards and returns are [N, A], or [N, 1] where
    an environment tells the mean; returns and lengths count where an episode has ended."""

    observations: dict
    rewards: np.ndarray
    ended: np.ndarray
    terminated: np.ndarray | None = None
    truncated: np.ndarray | None = None
    returns: np.ndarray | None = None
    lengths: np.ndarray | None = None
    final: dict | None = None  # the last observations of the episodes


class Worlds:
    """A simulator, or several of one world, with sums of rewards and steps of the running episodes."""

    def __init__(self, num_worlds, seeds=None, **rules):
        rules = {"num_threads": 1, "auto_reset": False, **rules}
        of_sims = [(num_worlds, rules)] if seeds is None else [(1, {**rules, "seed": seed}) for seed in seeds]
        self.sims = [doorstep.Simulator(count, **own) for count, own in of_sims]
        self.returns = np.zeros((num_worlds, self.sims[0].num_agents), np.float32)
        self.lengths = np.zeros(num_worlds, np.int32)

    def tensor(self, name):
        return np.concatenate([np.array(sim.tensors[name]) for sim in self.sims])

    def observe(self):
        """Copies of all observations, [N, A, ...] by name."""
        return {name: self.tensor(name) for name in ("observations", *PARTS) if name in self.sims[0].tensors}

    def step(self, actions):
        for sim, given in zip(self.sims, np.split(actions, len(self.sims)), strict=True):
            sim.actions = given
            sim.step()
        rewards = self.tensor("rewards")[..., 0]
        self.returns += rewards
        self.lengths += 1
        ended, *flags = (self.tensor(name)[:, 0, 0] != 0 for name in ("dones", "terminations", "truncations"))
        return Told(self.observe(), rewards, ended, *flags, self.returns.copy(), self.lengths.copy())

    def reset(self, worlds):
        """Begins episodes in the worlds of a mask."""
        for sim, chosen in zip(self.sims, np.split(worlds, len(self.sims)), strict=True):
            if chosen.any():
                sim.reset(chosen)
        self.returns[worlds] = 0
        self.lengths[worlds] = 0


class History:
    """What an environment has to return in an autoreset mode, by world and agent, with `step()` and `reset()`.

    seeds_of: makes the seeds of worlds that have simulators of their own.
    """

    def __init__(self, autoreset, num_worlds, seeds_of=None, **rules):
        self.autoreset, self.num_worlds, self.seeds_of, self.rules = autoreset, num_worlds, seeds_of, rules
        self.reset(seed=rules.get("seed", 0))

    def reset(self, worlds=None, seed=None):
        chosen = np.ones(self.num_worlds, bool) if worlds is None else worlds
        if seed is not None:  # a new simulator is what a seeded reset has to equal
            seeds = None if self.seeds_of is None else self.seeds_of(seed)
            self.worlds = Worlds(self.num_worlds, seeds, **{**self.rules, "seed": seed})
            self.ended = ~chosen
        else:
            self.worlds.reset(chosen)
        self.ended = self.ended & ~chosen
        return self.worlds.observe()

    def step(self, actions):
        told = self.worlds.step(actions)
        if self.autoreset == "next_step":
            begun = self.ended
            self.worlds.reset(begun)
            told.rewards[begun] = 0
            flags = (flag & ~begun for flag in (told.ended, told.terminated, told.truncated))
            told = Told(self.worlds.observe(), told.rewards, *flags, told.returns, told.lengths)
        elif self.autoreset == "same_step":
            self.worlds.reset(told.ended)
            told = told._replace(observations=self.worlds.observe(), final=told.observations)
        self.ended = told.ended
        return told


def some_worlds(generator, num_worlds):
    """A mask with at least one world."""
    mask = generator.random(num_worlds) < 0.4
    mask[generator.integers(num_worlds)] = True
    return mask


def actions_of(seed, steps, num_worlds, num_agents):
    """Actions [steps, N, A, 4] that walk ahead more often than not, so that there are rewards."""
    actions = random_actions(seed, steps, num_worlds, num_agents)
    actions[..., 0] = np.maximum(actions[..., 0], 2)
    actions[..., 1] = np.where(actions[..., 1] < 4, 0, actions[..., 1])
    return actions


def output_of_example(name, *, warns=False, **variables):
    """What a program of docs/examples prints. warns: the framework does."""
    command, environment = [sys.executable, str(EXAMPLES / name)], {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert warns or done.stderr == ""
    return done.stdout


def assert_example_learns(name, gain=0.2, **how):
    """By the mean returns that it prints."""
    lines = [line for line in output_of_example(name, **how).splitlines() if "mean return" in line]
    assert float(lines[-1].split()[-1]) > float(lines[0].split()[-1]) + gain, lines


def same_where_set(found, expected):
    """Infos of gymnasium, whose masks begin with an underscore."""
    assert set(found) == set(expected)
    for name, value in expected.items():
        if isinstance(value, dict):
            same_where_set(found[name], value)
            continue
        for row in np.flatnonzero(expected["_" + name.removeprefix("_")]):
            np.testing.assert_array_equal(found[name][row], value[row])


def equal(found, expected):
    """The same values, dtypes, shapes and keys."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for name in expected:
            equal(found[name], expected[name])
    else:
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)
