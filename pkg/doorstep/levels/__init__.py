"""Levels as data: what stands where in a world, and by which rules it is played.

A `Level` is one room or several, made in Python, from a map of characters (`Level.from_ascii`) or from JSON. A
`GeneratedLevel` is drawn anew at every reset, as the reference's levels are. `Simulator.set_levels` gives both to a
simulator, whose worlds draw from them.
"""

from __future__ import annotations

from doorstep.levels.curated import curated
from doorstep.levels.files import load_levels, save_levels
from doorstep.levels.generated import GeneratedLevel, reference
from doorstep.levels.level import Level
from doorstep.levels.parts import Button, Cube, Door, Goal, Room, Spawn, Wall
from doorstep.levels.rules import Physics, Rewards

__all__ = [
    "Button",
    "Cube",
    "Door",
    "GeneratedLevel",
    "Goal",
    "Level",
    "Physics",
    "Rewards",
    "Room",
    "Spawn",
    "Wall",
    "curated",
    "load_levels",
    "reference",
    "save_levels",
]
