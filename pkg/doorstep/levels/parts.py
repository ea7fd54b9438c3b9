"""What a level consists of: walls, doors, buttons, cubes, the agents' spawns, rooms and the goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from doorstep._arguments import check_choice, check_flag, check_integer, refuse, to_single
from doorstep._native._generated import LEVEL_MAX_DOORS
from doorstep.levels.numbers import (
    MAX_COORDINATE,
    NumberOrRange,
    check_coordinate,
    check_number,
    check_range,
    check_size,
    check_yaw,
)

GoalAgentsName: TypeAlias = Literal["all", "any"]

GOAL_AGENTS = ("all", "any")

AGENT_SIZE, CUBE_SIZE = 2.0, 3.0  # metres, in x, y and z
BUTTON_SIZE = 1.3  # metres, in x and y
MIN_LENGTH = 0.1  # metres; of a room, by whose length agents' places in it are divided
WALL_HEIGHT = 4.375  # metres; of the reference's walls between rooms, and of its doors
DOOR_WIDTH = 16 / 3  # metres; of the reference's doors
REFERENCE_END = 40.0  # metres; y at which the reference's last room ends


@dataclass(frozen=True)
class Wall:
    """A box that nothing moves, with its sides along the axes.

    >>> from doorstep.levels import Wall
    >>> Wall(x=0, y=-0.5, size_x=22, size_y=1)
    Wall(x=0.0, y=-0.5, size_x=22.0, size_y=1.0, height=4.375, z=0.0)

    Attributes:
        x: of its centre, metres.
        y: of its centre, metres.
        size_x: full extent along x, metres.
        size_y: full extent along y, metres.
        height: full extent along z, metres.
        z: of its bottom, metres, not negative; agents, who are 2 high, walk below a wall with z = 2 or more.

    Raises:
        ArgumentError: a number is not finite or out of range; the message names the field.
    """

    x: float
    y: float
    size_x: float
    size_y: float
    height: float = WALL_HEIGHT
    z: float = 0.0

    def __post_init__(self) -> None:
        _check_box(self)
        _set(self, z=check_number("z", self.z, 0, MAX_COORDINATE, "metres"))


@dataclass(frozen=True)
class Door:
    """A box that stands on the floor and sinks into it while all of its buttons are pressed.

    Attributes:
        x: of its centre, metres.
        y: of its centre, metres.
        size_x: full extent along x, metres.
        size_y: full extent along y, metres.
        height: full extent along z, metres.
        persistent: whether it stays open once it was opened.

    Raises:
        ArgumentError: a number is not finite or out of range; the message names the field.
    """

    x: float
    y: float
    size_x: float = DOOR_WIDTH
    size_y: float = 1.0
    height: float = WALL_HEIGHT
    persistent: bool = True

    def __post_init__(self) -> None:
        _check_box(self)
        _set(self, persistent=check_flag("persistent", self.persistent))


@dataclass(frozen=True)
class Button:
    """A plate of 1.3 x 1.3 m on the floor, pressed while an agent or a cube is on it.

    Attributes:
        x: of its centre, metres.
        y: of its centre, metres.
        door: index of the door that it opens, with all other buttons of that door.

    Raises:
        ArgumentError: a number is not finite or out of range; the message names the field.
    """

    x: float
    y: float
    door: int

    def __post_init__(self) -> None:
        door = check_integer("door", self.door, 0, LEVEL_MAX_DOORS - 1)
        _set(self, x=check_coordinate("x", self.x), y=check_coordinate("y", self.y), door=door)


@dataclass(frozen=True)
class Cube:
    """A cube of 3 x 3 x 3 m on the floor, which agents push, grab and carry.

    Attributes:
        x: of its centre, metres.
        y: of its centre, metres.
        yaw: radians, counter-clockwise seen from above.

    Raises:
        ArgumentError: a number is not finite or out of range; the message names the field.
    """

    x: float
    y: float
    yaw: float = 0.0

    def __post_init__(self) -> None:
        yaw = check_yaw("yaw", self.yaw)
        if isinstance(yaw, tuple):
            refuse("yaw", "a number", self.yaw, "only those of spawns are drawn")
        _set(self, x=check_coordinate("x", self.x), y=check_coordinate("y", self.y), yaw=yaw)


@dataclass(frozen=True)
class Spawn:
    """Where an agent starts: each a number, or a range (low, high) from which it is drawn at every reset.

    >>> from doorstep.levels import Spawn
    >>> Spawn(x=(-8, -2), y=3)
    Spawn(x=(-8.0, -2.0), y=3.0, yaw=0.0)

    Attributes:
        x: of its centre, metres. An agent is 2 x 2 x 2 m.
        y: of its centre, metres.
        yaw: radians, counter-clockwise seen from above; 0 looks along +y.

    Raises:
        ArgumentError: a number is not finite or out of range, or a range is reversed; the message names the field.
    """

    x: NumberOrRange
    y: NumberOrRange
    yaw: NumberOrRange = 0.0

    def __post_init__(self) -> None:
        _set(
            self,
            x=check_range("x", self.x, -MAX_COORDINATE, MAX_COORDINATE, "metres"),
            y=check_range("y", self.y, -MAX_COORDINATE, MAX_COORDINATE, "metres"),
            yaw=check_yaw("yaw", self.yaw),
        )


@dataclass(frozen=True)
class Room:
    """A stretch along y. It decides what agents observe: the door, and the first six buttons and cubes of their room.

    Attributes:
        start: y in metres. The first room of a level also holds everything below.
        end: y in metres, the start of the next room. The last room also holds everything beyond.
        door: index of the door that agents observe here, or None.

    Raises:
        ArgumentError: a number is out of range, or the end is not beyond the start; the message names the field.
    """

    start: float
    end: float
    door: int | None = None

    def __post_init__(self) -> None:
        start = check_coordinate("start", self.start)
        end = check_coordinate("end", self.end)
        if end < start + MIN_LENGTH:
            refuse("end", f"at least {MIN_LENGTH:g} m beyond start, {start:g}", self.end)
        door = None if self.door is None else check_integer("door", self.door, 0, LEVEL_MAX_DOORS - 1)
        _set(self, start=start, end=end, door=door)


@dataclass(frozen=True)
class Goal:
    """A rectangle on the floor that ends the episode; an agent is in it when its centre is.

    Attributes:
        min_x: metres.
        max_x: metres.
        min_y: metres.
        max_y: metres.
        agents: "all": it ends when all agents are in it at once; "any": when one is.

    Raises:
        ArgumentError: a number is out of range, or the rectangle has no area; the message names the field.
    """

    min_x: float
    max_x: float
    min_y: float
    max_y: float
    agents: GoalAgentsName = "all"

    def __post_init__(self) -> None:
        numbers = {name: check_coordinate(name, getattr(self, name)) for name in ("min_x", "max_x", "min_y", "max_y")}
        for axis in "xy":
            low, high = numbers[f"min_{axis}"], numbers[f"max_{axis}"]
            if to_single(high) <= to_single(low):  # which simulators compare
                hint = "a goal without area is never reached"
                refuse(f"max_{axis}", f"more than min_{axis}, {low:g}, in single precision", high, hint)
        _set(self, **numbers, agents=check_choice("agents", self.agents, GOAL_AGENTS))

    @classmethod
    def all_out(cls, end: float = REFERENCE_END) -> Goal:
        """The episode ends when all agents are beyond the last room at once.

        >>> import doorstep
        >>> level = doorstep.levels.GeneratedLevel(goal=doorstep.levels.Goal.all_out())

        Args:
            end: y in metres at which the last room ends; by default that of the reference's rooms.

        Raises:
            ArgumentError: `end` is not within +-1000.
        """
        return cls(-MAX_COORDINATE, MAX_COORDINATE, end, MAX_COORDINATE)


def _check_box(box: Wall | Door) -> None:
    _set(
        box,
        x=check_coordinate("x", box.x),
        y=check_coordinate("y", box.y),
        size_x=check_size("size_x", box.size_x),
        size_y=check_size("size_y", box.size_y),
        height=check_size("height", box.height),
    )


def _set(part: object, **fields: Any) -> None:
    for name, value in fields.items():
        object.__setattr__(part, name, value)
