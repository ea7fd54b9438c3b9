"""What a level consists of: walls, doors, buttons, cubes, the agents' spawns, rooms and the goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from doorstep._arguments import refuse, to_single
from doorstep._configs import Checked, Integer, Number
from doorstep._native._generated import LEVEL_MAX_DOORS
from doorstep.levels.numbers import MAX_COORDINATE, Coordinate, DrawnCoordinate, DrawnYaw, Size, Yaw

GoalAgentsName: TypeAlias = Literal["all", "any"]

DoorIndex: TypeAlias = Annotated[int, Integer(0, LEVEL_MAX_DOORS - 1)]

AGENT_SIZE, CUBE_SIZE = 2.0, 3.0  # metres, in x, y and z
BUTTON_SIZE = 1.3  # metres, in x and y
MIN_LENGTH = 0.1  # metres; of a room, by whose length agents' places in it are divided
WALL_HEIGHT = 4.375  # metres; of the reference's walls between rooms, and of its doors
DOOR_WIDTH = 16 / 3  # metres; of the reference's doors
REFERENCE_END = 40.0  # metres; y at which the reference's last room ends


@dataclass(frozen=True)
class Wall(Checked):
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

    x: Coordinate
    y: Coordinate
    size_x: Size
    size_y: Size
    height: Size = WALL_HEIGHT
    z: Annotated[float, Number(0, MAX_COORDINATE, unit="metres")] = 0.0


@dataclass(frozen=True)
class Door(Checked):
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

    x: Coordinate
    y: Coordinate
    size_x: Size = DOOR_WIDTH
    size_y: Size = 1.0
    height: Size = WALL_HEIGHT
    persistent: bool = True


@dataclass(frozen=True)
class Button(Checked):
    """A plate of 1.3 x 1.3 m on the floor, pressed while an agent or a cube is on it.

    Attributes:
        x: of its centre, metres.
        y: of its centre, metres.
        door: index of the door that it opens, with all other buttons of that door.

    Raises:
        ArgumentError: a number is not finite or out of range; the message names the field.
    """

    x: Coordinate
    y: Coordinate
    door: DoorIndex


@dataclass(frozen=True)
class Cube(Checked):
    """A cube of 3 x 3 x 3 m on the floor, which agents push, grab and carry.

    Attributes:
        x: of its centre, metres.
        y: of its centre, metres.
        yaw: radians, counter-clockwise seen from above.

    Raises:
        ArgumentError: a number is not finite or out of range; the message names the field.
    """

    x: Coordinate
    y: Coordinate
    yaw: Yaw = 0.0


@dataclass(frozen=True)
class Spawn(Checked):
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

    x: DrawnCoordinate
    y: DrawnCoordinate
    yaw: DrawnYaw = 0.0


@dataclass(frozen=True)
class Room(Checked):
    """A stretch along y. It decides what agents observe: the door, and the first six buttons and cubes of their room.

    Attributes:
        start: y in metres. The first room of a level also holds everything below.
        end: y in metres, the start of the next room. The last room also holds everything beyond.
        door: index of the door that agents observe here, or None.

    Raises:
        ArgumentError: a number is out of range, or the end is not beyond the start; the message names the field.
    """

    start: Coordinate
    end: Coordinate
    door: DoorIndex | None = None

    def _check(self) -> None:
        if self.end < self.start + MIN_LENGTH:
            refuse("end", f"at least {MIN_LENGTH:g} m beyond start, {self.start:g}", self.end)


@dataclass(frozen=True)
class Goal(Checked):
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

    min_x: Coordinate
    max_x: Coordinate
    min_y: Coordinate
    max_y: Coordinate
    agents: GoalAgentsName = "all"

    def _check(self) -> None:
        for axis, low, high in (("x", self.min_x, self.max_x), ("y", self.min_y, self.max_y)):
            if to_single(high) <= to_single(low):  # which simulators compare
                hint = "a goal without area is never reached"
                refuse(f"max_{axis}", f"more than min_{axis}, {low:g}, in single precision", high, hint)

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

