"""The levels of an evaluation and their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

from doorstep._arguments import shown
from doorstep._configs import Checked
from doorstep._level_table import REFERENCE, is_reference
from doorstep.errors import ArgumentError
from doorstep.levels import GeneratedLevel, Level
from doorstep.levels.choice import find_levels
from doorstep.levels.field import OneLevel
from doorstep.levels.files import AnyLevel
from doorstep.levels.rules import check_reward


@final
@dataclass(frozen=True)
class Arena(Checked):
    """A level and its name in the results; level: None for the reference's."""

    name: str
    level: Annotated[AnyLevel | None, OneLevel()]

    @property
    def has_goal(self) -> bool:
        """Whether an episode can end with success."""
        return self.level is not None and self.level.goal is not None

    @property
    def has_three_rooms(self) -> bool:
        """Whether it has the rooms of the reference's levels."""
        return self.level is None or isinstance(self.level, GeneratedLevel)


def find_arenas(levels: object, num_agents: int, reward: object = None) -> list[Arena]:
    """The levels of an argument, as `find_levels()` names them, with `Rewards` in place of theirs if there are any.

    Raises:
        ArgumentError: there are no levels, `reward` is something else, or a level is refused or has too few spawns for
            the agents.
        OSError: the file cannot be read.
    """
    given = check_reward(reward)
    if is_reference(levels) and given is None:
        return [Arena(REFERENCE, None)]
    played = find_levels(levels).items()
    for name, level in played:
        if isinstance(level, Level) and len(level.spawns) < num_agents:
            raise ArgumentError(
                f"level {shown(name)} has {len(level.spawns)} spawns; it must have at least {num_agents}",
                argument="levels",
                hint="add spawns, or evaluate with fewer agents",
            )
    return [Arena(name, level if given is None else level.replace(rewards=given)) for name, level in played]
