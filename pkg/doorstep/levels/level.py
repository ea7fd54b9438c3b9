"""`Level`: an escape room as data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias, final

from doorstep._arguments import named, refuse
from doorstep._configs import Document, Integer, Items, Part, Range
from doorstep._native._generated import (
    LEVEL_MAX_BUTTONS,
    LEVEL_MAX_CUBES,
    LEVEL_MAX_DOORS,
    LEVEL_MAX_ROOMS,
    LEVEL_MAX_STATICS,
    MAX_AGENTS,
    MAX_EPISODE_LENGTH,
)
from doorstep.errors import ArgumentError
from doorstep.levels.ascii_map import read_map
from doorstep.levels.map_text import map_of
from doorstep.levels.numbers import NumberOrRange
from doorstep.levels.overlap import check_overlaps
from doorstep.levels.parts import WALL_HEIGHT, Button, Cube, Door, Goal, GoalAgentsName, Room, Spawn, Wall
from doorstep.levels.rooms import check_rooms, derive_rooms
from doorstep.levels.rules import REFERENCE_PHYSICS, REFERENCE_REWARDS, Physics, Rewards

EpisodeLength: TypeAlias = Annotated["int | tuple[int, int]", Range(Integer(1, MAX_EPISODE_LENGTH))]


@final
@dataclass(frozen=True, kw_only=True)
class Level(Document):
    """An escape room: what stands where, and by which rules. Checked when it is made.

    >>> import doorstep
    >>> from doorstep.levels import Button, Cube, Door, Goal, Spawn, Wall
    >>> level = doorstep.Level(
    ...     walls=[Wall(x=-6, y=10, size_x=8, size_y=1), Wall(x=6, y=10, size_x=8, size_y=1)],
    ...     doors=[Door(x=0, y=10, size_x=4)],
    ...     buttons=[Button(x=-5, y=6, door=0)],
    ...     cubes=[Cube(x=5, y=5)],
    ...     spawns=[Spawn(x=(-8, -2), y=2), Spawn(x=(2, 8), y=2)],
    ...     goal=Goal(min_x=-10, max_x=10, min_y=12, max_y=16),
    ... )
    >>> level.rooms
    (Room(start=1.0, end=10.5, door=0), Room(start=10.5, end=16.0, door=None))
    >>> doorstep.Level.from_json(level.to_json()) == level
    True
    >>> level
    Level '', a character is 1 x 2 m:
    XXXXXXXXXXXXXXXXXXXX
    XXXXXXXXXXXXXXXXXXXX
    ....................
    ########AAAA########
    ....................
    .....a.........O....
    ....................
    ..1111111...2222222.

    Attributes:
        walls: at most 32 together with the doors.
        doors: at most 8; each has a button.
        buttons: at most 12. They may be below cubes.
        cubes: at most 24.
        spawns: of agents 0, 1, ..., 1 to 8 of them: at least as many as the simulators that use the level have agents.
        rooms: at most 8, in the order of y. Empty: a room ends at the far side of each row of doors.
        goal: ends the episode; None: only the step limit does.
        rewards: what agents are rewarded for.
        physics: constants of the physics.
        episode_length: steps; (low, high): drawn at every reset, both inclusive; None: the simulator's.
        name: for people.
        description: for people.

    Raises:
        ArgumentError: a value is out of range, there is too much of something, something refers to what does not exist,
            or a cube or an agent would start inside something; the message names the field, as in `walls[3]`.
    """

    walls: Annotated[Sequence[Wall], Items(Part(Wall), "walls", most=LEVEL_MAX_STATICS)] = ()
    doors: Annotated[Sequence[Door], Items(Part(Door), "doors", most=LEVEL_MAX_DOORS)] = ()
    buttons: Annotated[Sequence[Button], Items(Part(Button), "buttons", most=LEVEL_MAX_BUTTONS)] = ()
    cubes: Annotated[Sequence[Cube], Items(Part(Cube), "cubes", most=LEVEL_MAX_CUBES)] = ()
    spawns: Annotated[Sequence[Spawn], Items(Part(Spawn), "spawns", least=1, most=MAX_AGENTS)]
    rooms: Annotated[Sequence[Room], Items(Part(Room), "rooms", most=LEVEL_MAX_ROOMS)] = ()
    goal: Goal | None = None
    rewards: Rewards = REFERENCE_REWARDS
    physics: Physics = REFERENCE_PHYSICS
    episode_length: EpisodeLength | None = None
    name: str = ""
    description: str = ""

    kind: ClassVar[str] = "level"

    def _check(self) -> None:
        if len(self.walls) + len(self.doors) > LEVEL_MAX_STATICS:
            what = f"walls and doors together are {len(self.walls) + len(self.doors)}"
            message = f"{what}; a level has at most {LEVEL_MAX_STATICS}"
            raise ArgumentError(message, argument="walls", hint="use fewer and longer walls")
        self._check_buttons()
        self._settle_rooms()
        check_overlaps(self.walls, self.doors, self.cubes, self.spawns)

    def __repr__(self) -> str:
        """The level's map, in the characters of `from_ascii()`; see `map_of()` for what has no place on the grid."""
        text, (cell_x, cell_y) = map_of(self)
        return f"Level {self.name!r}, a character is {cell_x:g} x {cell_y:g} m:\n{text}"

    @classmethod
    @named
    def from_ascii(
        cls,
        text: str,
        *,
        cell: float | tuple[float, float] = 1.0,
        origin: tuple[float, float] | None = None,
        height: float = WALL_HEIGHT,
        closing_doors: str = "",
        spawn_yaw: NumberOrRange = 0.0,
        goal_agents: GoalAgentsName = "all",
        rooms: Sequence[Room] = (),
        rewards: Rewards = REFERENCE_REWARDS,
        physics: Physics = REFERENCE_PHYSICS,
        episode_length: int | tuple[int, int] | None = None,
        name: str = "",
        description: str = "",
    ) -> Level:
        """The level of a map, seen from above with +y upwards.

        `#` is wall, `.` or a space floor. `A` to `H` are doors: the cells of a letter form one rectangle. `a` to `h`
        are buttons of these doors, a button for each letter. `O` is the centre of a cube. `1` to `8` are the spawns of
        the agents; the cells of a digit form one rectangle, between whose cells' centres the spawn is drawn. `X` is the
        goal, one rectangle. Doors are numbered in the order of their letters. Empty lines before and after the map, and
        indentation that all lines share, do not count. What a line lacks at its end is floor, which must not be a hole
        in the wall around a spawn.

        >>> import doorstep
        >>> level = doorstep.Level.from_ascii('''
        ...     ###########
        ...     #XXXXXXXXX#
        ...     #XXXXXXXXX#
        ...     ###AAAAA###
        ...     #.........#
        ...     #.a.....a.#
        ...     #.........#
        ...     #..1...2..#
        ...     #.........#
        ...     ###########
        ... ''')
        >>> level.doors
        (Door(x=0.0, y=5.5, size_x=5.0, size_y=1.0, height=4.375, persistent=True),)
        >>> len(level.walls), level.goal
        (6, Goal(min_x=-4.5, max_x=4.5, min_y=6.0, max_y=8.0, agents='all'))

        Args:
            text: the map.
            cell: metres of the sides of a character's cell, or (width, height): (1, 2) looks right in most fonts.
            origin: (x, y) of the map's lower left corner. None: x = 0 is the map's middle, y = 0 the upper side of its
                lowest line, which is usually a wall.
            height: of walls and doors, metres.
            closing_doors: letters of the doors that close again when a button is released.
            spawn_yaw: of all spawns, radians, or a range.
            goal_agents: "all" or "any", as in `Goal`.
            rooms: as in `Level`.
            rewards: as in `Level`.
            physics: as in `Level`.
            episode_length: as in `Level`.
            name: as in `Level`.
            description: as in `Level`.

        Raises:
            ArgumentError: as `Level`, a character or a rectangle is not as above, a line ends before the wall around a
                spawn, or a spawn has nothing but walls around it; the message names the line and the column, counted
                from 1, blank lines and indentation of `text` included.
        """
        found = read_map(text, cell, origin, height, closing_doors, spawn_yaw, goal_agents)
        rules: dict[str, Any] = {"rewards": rewards, "physics": physics, "episode_length": episode_length}
        try:
            return cls(**found.parts, **rules, rooms=rooms, name=name, description=description)
        except ArgumentError as error:
            raise found.located(error) from None

    def replace(self, **changes: Any) -> Level:
        """A level with other values of some fields. Rooms that follow from the doors follow from the new ones.

        Raises:
            ArgumentError: a name is not a field, or a value is refused.
        """
        if "rooms" not in changes and self.rooms == self._derived_rooms():
            changes["rooms"] = ()
        return super().replace(**changes)

    @property
    def room_ends(self) -> tuple[float, ...]:
        """Where each room ends, metres along y."""
        return tuple(room.end for room in self.rooms)

    @property
    def exit(self) -> float:
        """The y beyond its last door, metres: agents that have been beyond it are out, and an episode whose agents all
        are has succeeded. Infinite with a goal, which ends episodes instead, and without a door."""
        ends = [room.end for room in self.rooms if room.door is not None]
        return max(ends, default=math.inf) if self.goal is None else math.inf

    def _check_buttons(self) -> None:
        for i, button in enumerate(self.buttons):
            if button.door >= len(self.doors):
                refuse(f"buttons[{i}].door", f"the index of one of {len(self.doors)} doors", button.door)
            for k, wall in enumerate(self.walls):
                if _is_inside(button, wall):
                    message = f"buttons[{i}] is inside walls[{k}]; nobody can stand on it"
                    raise ArgumentError(message, argument=f"buttons[{i}]", hint="move it")
        for i in set(range(len(self.doors))) - {button.door for button in self.buttons}:
            hint = f"add a Button(x, y, door={i}), or make it a Wall"
            raise ArgumentError(f"doors[{i}] has no button; it would never open", argument=f"doors[{i}]", hint=hint)

    def _settle_rooms(self) -> None:
        if self.rooms:
            check_rooms(self.rooms, len(self.doors))
            return
        rooms = self._derived_rooms()
        if len(rooms) > LEVEL_MAX_ROOMS:
            message = f"rooms are {len(rooms)}; a level has at most {LEVEL_MAX_ROOMS}"
            raise ArgumentError(message, argument="rooms", hint="doors in rows end rooms; pass rooms=")
        object.__setattr__(self, "rooms", rooms)

    def _derived_rooms(self) -> tuple[Room, ...]:
        parts: tuple[Any, ...] = (*self.walls, *self.doors, *self.buttons, *self.cubes, *self.spawns)
        return derive_rooms(parts, self.doors, self.goal)


def _is_inside(button: Button, wall: Wall) -> bool:
    across, along = abs(button.x - wall.x) < wall.size_x / 2, abs(button.y - wall.y) < wall.size_y / 2
    return across and along and wall.z < 2
