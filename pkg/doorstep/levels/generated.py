"""`GeneratedLevel`: the reference's generator as a level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias, final, get_args

from doorstep._configs import Choice, Document, Integer, Items, Number
from doorstep._native._generated import LEVEL_GENERATED_ROOMS
from doorstep.levels.level import EpisodeLength
from doorstep.levels.parts import Goal
from doorstep.levels.rules import REFERENCE_PHYSICS, REFERENCE_REWARDS, Physics, Rewards

# A type of the reference's rooms, or any.
RoomTypeName: TypeAlias = Literal["any", "single_button", "double_button", "cube_blocking", "cube_buttons"]
ROOM_TYPES: tuple[RoomTypeName, ...] = get_args(RoomTypeName)
ROOM_LENGTH = 40 / 3  # metres along y
ROOM_ENDS = tuple(number * ROOM_LENGTH for number in range(1, LEVEL_GENERATED_ROOMS + 1))


@final
@dataclass(frozen=True, kw_only=True)
class GeneratedLevel(Document):
    """Three rooms that are drawn anew at every reset, as the reference does.

    >>> from doorstep.levels import GeneratedLevel, Physics
    >>> level = GeneratedLevel(room_types=("single_button", "any", "any"), physics=Physics(cube_mass=(5, 20)))
    >>> GeneratedLevel.from_json(level.to_json()) == level
    True

    Attributes:
        room_types: of the three rooms, each 40 / 3 m along y; "any": drawn at every reset, all equally likely.
        first_room: where agents begin: 0, as the reference's do; 1 or 2: anywhere in this room that is free, facing any
            way. The doors behind them are closed.
        cubes_near_buttons: 0 to 1, how likely each cube of a "cube_buttons" room is moved from where the reference's
            generator puts it to anywhere on the way to the button on its side.
        goal: ends the episode; None: only the step limit does.
        rewards: what agents are rewarded for.
        physics: constants of the physics.
        episode_length: steps; (low, high): drawn at every reset, both inclusive; None: the simulator's.
        name: for people.
        description: for people.

    Raises:
        ArgumentError: a value is refused; the message names the field.
    """

    room_types: Annotated[
        Sequence[RoomTypeName],
        Items(Choice(ROOM_TYPES), "names of room types", LEVEL_GENERATED_ROOMS, LEVEL_GENERATED_ROOMS),
    ] = ("double_button", "cube_blocking", "cube_buttons")
    first_room: Annotated[int, Integer(0, LEVEL_GENERATED_ROOMS - 1)] = 0
    cubes_near_buttons: Annotated[float, Number(0, 1)] = 0.0
    goal: Goal | None = None
    rewards: Rewards = REFERENCE_REWARDS
    physics: Physics = REFERENCE_PHYSICS
    episode_length: EpisodeLength | None = None
    name: str = ""
    description: str = ""

    kind: ClassVar[str] = "generated level"

    @property
    def room_ends(self) -> tuple[float, ...]:
        """Where each room ends, metres along y."""
        return ROOM_ENDS

    @property
    def exit(self) -> float:
        """The y beyond its last door, metres, as of `Level`; infinite with a goal."""
        return ROOM_ENDS[-1] if self.goal is None else math.inf


def reference() -> GeneratedLevel:
    """The reference's generator with its rewards and physics: what a simulator without levels steps."""
    return GeneratedLevel(name="reference", description="Three rooms with two buttons each, drawn at every reset.")
