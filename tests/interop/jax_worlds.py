"""Worlds inside JAX programs, generated or of levels, and comparisons of their bits. Needs jax."""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from tests.scenes import random_actions

import doorstep.jax
from doorstep import levels
from doorstep._batches import INPUTS, LEVEL_NAMES, NAMES
from doorstep.levels import Button, Cube, Door, GeneratedLevel, Goal, Level, Physics, Room, Spawn

EVERYTHING = tuple(name for name in NAMES if name not in (*INPUTS, *LEVEL_NAMES))
SOME = ("rewards", "dones", "lidar", "final_lidar", "episode_returns")  # programs with fewer outputs compile faster
KINDS = ("generated", "levels")


@functools.cache
def table_of(num_agents=2):
    """Two halls, the generator with other rules, and a level that comes with doorstep or another hall."""
    spawns = tuple(Spawn(x=4.0 * i - 14, y=(0, 2)) for i in range(num_agents))
    hall = Level(spawns=spawns, rooms=(Room(0, 40),), physics=Physics(friction=(0.5, 1.5)), episode_length=(2, 6))
    parts = {"cubes": (Cube(0, 8),), "doors": (Door(0, 20),), "buttons": (Button(-5, 2, 0),)}
    curated = levels.curated()["one door"] if num_agents <= 2 else replace(hall, goal=Goal(-50, 50, 3, 60))
    return [hall, replace(hall, **parts), GeneratedLevel(room_types=("any", "any", "any")), curated]


def functions(num_worlds, outputs=EVERYTHING, kind="generated", **options):
    """What `make()` gives for worlds of one of KINDS."""
    if kind == "levels":
        options = {"max_levels": 4, "levels": table_of(options.get("num_agents", 2)), **options}
        outputs = (*outputs, "level_indices") if outputs is EVERYTHING else outputs
    return doorstep.jax.make(num_worlds, outputs=outputs, **options)


def actions_of(steps, num_worlds, num_agents=2, seed=1):
    """Random actions, int32 [steps, num_worlds, num_agents, 4]."""
    return jnp.asarray(random_actions(seed, steps, num_worlds, num_agents))


def assert_same(state, other):
    """Two trees have the same bytes."""
    leaves, others = jax.tree_util.tree_leaves(state), jax.tree_util.tree_leaves(other)
    assert len(leaves) == len(others)
    for leaf, expected in zip(leaves, others, strict=True):
        assert np.asarray(leaf).tobytes() == np.asarray(expected).tobytes()


def part_of(state, index):
    """The rows of a tree at an index of its first axes."""
    return jax.tree_util.tree_map(lambda array: jnp.asarray(np.asarray(array)[index]), state)  # without compilations


def same_bits_as(sim, state):
    """The tensors of a state are those of a simulator."""
    for name, tensor in state.tensors.items():
        assert np.asarray(tensor).tobytes() == sim.tensors[name].to_numpy().tobytes(), name
