"""Levels made by hand, from easy to hard, for two agents: examples, and a curriculum to begin with.

`curated.txt` has them: arguments of `Level.from_ascii()`, then the map.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from doorstep._arguments import nearest, shown
from doorstep.levels.level import Level
from doorstep.levels.rules import Rewards

CELL = (1.0, 2.0)  # metres: what is 22 characters wide and 22 lines high is 22 x 44 m


def curated() -> dict[str, Level]:
    """Twenty levels for two agents by their names, from easy to hard; in most of them all agents must reach the goal.

    The reference's rewards, and 1 for the goal. Each fits into 22 x 44 m and its description says what it is about.

    >>> from doorstep import levels
    >>> level = levels.curated()["let me in"]
    >>> level.description
    'One agent holds the left door for the other, who opens the right one for both.'
    >>> [door.persistent for door in level.doors]
    [False, True]
    """
    common: dict[str, Any] = {"cell": CELL, "spawn_yaw": (-0.3, 0.3), "rewards": Rewards(goal=1.0)}
    return _Curated((sketch["name"], Level.from_ascii(**sketch, **common)) for sketch in sketches())


class _Curated(dict[str, Level]):
    """Its error names the level that was meant."""

    def __missing__(self, name: object) -> NoReturn:
        raise KeyError(f"{shown(name)} is not a curated level; {nearest(name, self, 'they are')}")


def sketches() -> list[dict[str, Any]]:
    """The arguments of `Level.from_ascii()` that are the levels' own."""
    blocks = Path(__file__).with_suffix(".txt").read_text("utf-8").split("\n\n")
    return [_arguments_of(*block.partition("\n#")) for block in blocks]


def _arguments_of(settings: str, border: str, rest: str) -> dict[str, Any]:
    given: dict[str, Any] = dict(line.split(" = ") for line in settings.splitlines())
    return {**given, "text": border + rest, "episode_length": int(given.get("episode_length", 200))}
