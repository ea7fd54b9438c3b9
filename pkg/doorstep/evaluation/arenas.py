"""The levels of an evaluation and their names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from doorstep._arguments import check_text, refuse
from doorstep.errors import ArgumentError
from doorstep.levels import AnyLevel, GeneratedLevel, Level, curated, load_levels
from doorstep.levels.generated import ROOM_ENDS, ROOM_TYPES

# "reference", "room_types", "curated", the path of a file, a level, a sequence of levels, or a mapping of names to
# levels.
AnyLevels: TypeAlias = "str | os.PathLike[str] | AnyLevel | Sequence[AnyLevel] | Mapping[str, AnyLevel]"

REFERENCE = "reference"
_REQUIREMENT = (
    "'reference', 'room_types', 'curated', the path of a file, a level, a sequence of levels or a mapping of names to"
    " levels"
)


class Arena(NamedTuple):
    """A level and its name in the results; level: None for the reference's."""

    name: str
    level: AnyLevel | None

    @property
    def has_goal(self) -> bool:
        """Whether an episode can end with success."""
        return self.level is not None and self.level.goal is not None

    @property
    def has_three_rooms(self) -> bool:
        """Whether it has the rooms of the reference's levels."""
        return self.level is None or isinstance(self.level, GeneratedLevel)


def find_arenas(levels: object, num_agents: int) -> list[Arena]:
    """The levels of an argument. Equal names get a number, levels without one are called "level 1", "level 2", ...

    Raises:
        ArgumentError: there is none, one is refused, or has too few spawns for the agents.
        OSError: the file cannot be read.
    """
    if isinstance(levels, str) and levels == REFERENCE:
        return [Arena(REFERENCE, None)]
    named = _named(levels)
    if not named:
        refuse("levels", _REQUIREMENT, levels)
    arenas = [_arena(name, level, num_agents) for name, level in named]
    return [Arena(name, arena.level) for name, arena in zip(_distinct(arenas), arenas, strict=True)]


def _named(levels: object) -> list[tuple[str, object]]:
    if isinstance(levels, (Level, GeneratedLevel)):
        levels = [levels]
    elif isinstance(levels, str) and levels == "curated":
        levels = curated()
    elif isinstance(levels, str) and levels == "room_types":
        levels = {name: GeneratedLevel(room_types=(name,) * len(ROOM_ENDS)) for name in ROOM_TYPES if name != "any"}
    elif isinstance(levels, (str, os.PathLike)):
        levels = load_levels(levels)
    if isinstance(levels, Mapping):
        return list(levels.items())
    if not isinstance(levels, Sequence):
        refuse("levels", _REQUIREMENT, levels)
    return [(getattr(level, "name", "") or f"level {number}", level) for number, level in enumerate(levels, 1)]


def _arena(name: object, level: object, num_agents: int) -> Arena:
    if not isinstance(name, str) or not name:
        refuse("levels", "a mapping with texts as names", name)
    check_text("levels", name)
    if not isinstance(level, (Level, GeneratedLevel)):
        refuse("levels", _REQUIREMENT, level)
    if isinstance(level, Level) and len(level.spawns) < num_agents:
        raise ArgumentError(
            f"level {name!r} has {len(level.spawns)} spawns; it must have at least {num_agents}",
            argument="levels",
            hint="add spawns, or evaluate with fewer agents",
        )
    return Arena(name, level)


def _distinct(arenas: Sequence[Arena]) -> list[str]:
    taken: list[str] = []
    for arena in arenas:
        name, number = arena.name, 1
        while name in taken:
            number += 1
            name = f"{arena.name} ({number})"
        taken.append(name)
    return taken
