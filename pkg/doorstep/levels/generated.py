"""`GeneratedLevel`: the reference's generator as a level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, final, get_args

from doorstep._arguments import check_choice, refuse
from doorstep._native._generated import LEVEL_GENERATED_ROOMS
from doorstep.levels.document import Document
from doorstep.levels.level import check_rules
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
        goal: ends the episode; None: only the step limit does.
        rewards: what agents are rewarded for.
        physics: constants of the physics.
        episode_length: steps; (low, high): drawn at every reset, both inclusive; None: the simulator's.
        name: for people.
        description: for people.

    Raises:
        ArgumentError: a value is refused; the message names the field.
    """

    room_types: Sequence[RoomTypeName] = ("double_button", "cube_blocking", "cube_buttons")
    goal: Goal | None = None
    rewards: Rewards = REFERENCE_REWARDS
    physics: Physics = REFERENCE_PHYSICS
    episode_length: int | tuple[int, int] | None = None
    name: str = ""
    description: str = ""

    _kind: ClassVar[str] = "generated level"
    _values: ClassVar[Mapping[str, type]] = {"goal": Goal, "rewards": Rewards, "physics": Physics}

    def __post_init__(self) -> None:
        types = self.room_types
        if not isinstance(types, Sequence) or isinstance(types, str) or len(types) != LEVEL_GENERATED_ROOMS:
            refuse("room_types", f"{LEVEL_GENERATED_ROOMS} names of room types", types)
        checked = tuple(check_choice(f"room_types[{i}]", name, ROOM_TYPES) for i, name in enumerate(types))
        object.__setattr__(self, "room_types", checked)
        check_rules(self)

    @property
    def room_ends(self) -> tuple[float, ...]:
        """Where each room ends, metres along y."""
        return ROOM_ENDS

    @property
    def exit(self) -> float:
        """The y beyond its last door, metres."""
        return ROOM_ENDS[-1]


def reference() -> GeneratedLevel:
    """The reference's generator with its rewards and physics: what a simulator without levels steps."""
    return GeneratedLevel(name="reference", description="Three rooms with two buttons each, drawn at every reset.")
