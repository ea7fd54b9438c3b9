"""The levels of an evaluation and their names."""

from __future__ import annotations

from typing import NamedTuple

from doorstep.errors import ArgumentError
from doorstep.levels import AnyLevel, GeneratedLevel, Level
from doorstep.levels.choice import REFERENCE, find_levels, is_reference


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
    """The levels of an argument, as `find_levels()` names them.

    Raises:
        ArgumentError: there is none, one is refused, or has too few spawns for the agents.
        OSError: the file cannot be read.
    """
    if is_reference(levels):
        return [Arena(REFERENCE, None)]
    arenas = [Arena(name, level) for name, level in find_levels(levels).items()]
    for name, level in arenas:
        if isinstance(level, Level) and len(level.spawns) < num_agents:
            raise ArgumentError(
                f"level {name!r} has {len(level.spawns)} spawns; it must have at least {num_agents}",
                argument="levels",
                hint="add spawns, or evaluate with fewer agents",
            )
    return arenas
