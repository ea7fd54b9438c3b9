"""Worlds with levels to draw: one with as many of everything as there can be, and simulators in which world i plays
level i of a table."""

import numpy as np

import doorstep
from doorstep import levels
from doorstep.levels import Button, Cube, Door, Goal, Level, Spawn, Wall


def full_level(num_agents):
    """All that a level can have, most of it in sight of the agents."""
    steps = (Wall(side * (3 + 4 * i), 44 - i, 1, 1, 2 + 0.5 * i) for i in range(6) for side in (-1, 1))
    floating = (Wall(4 * i - 20, 30, 0.5, 2, 1, z=1 + 0.5 * i) for i in range(11))
    things = {
        "walls": [Wall(0, -3, 44, 1), *steps, *floating],
        "doors": [Door(5 * i - 17.5, 36, 3) for i in range(8)],
        "buttons": [Button(3 * i - 16.5, 26 + i % 2, i % 8) for i in range(12)],
        "cubes": [Cube(5 * (i % 6) - 12.5, 8 + 4.5 * (i // 6), 0.1 * i) for i in range(24)],
        "spawns": [Spawn(3 * i - 10.5, (0, 1), (-0.3, 0.3)) for i in range(num_agents)],
    }
    return Level(**things, goal=Goal(-10, 10, 38, 42, agents="all"), name="full")


def mixed_levels(num_agents):
    """The reference's level, a full one, and all curated ones that have room for the agents."""
    fitting = [level for level in levels.curated().values() if len(level.spawns) >= num_agents]
    return [levels.reference(), full_level(num_agents), *fitting]


def playing(table, num_worlds=None, **settings):
    """A simulator whose world i plays level i, and those after the last level the first ones again."""
    count = num_worlds or len(table)
    sim = doorstep.Simulator(count, max_levels=len(table), **settings)
    sim.set_levels(table)
    sim.level_weights.copy_from_host(np.eye(len(table), dtype=np.float32)[np.arange(count) % len(table)])
    sim.reset()
    return sim
