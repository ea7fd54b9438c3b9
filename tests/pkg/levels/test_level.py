"""Level and GeneratedLevel: what they refuse, and by which name."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

import doorstep
from doorstep import levels
from doorstep._native import _generated as native
from doorstep.levels import Button, Cube, Door, GeneratedLevel, Goal, Level, Physics, Rewards, Room, Spawn, Wall

SPAWNS = (Spawn(0, 3),)
DOORS = (Door(0, 20),)
BUTTONS = (Button(0, 10, 0),)


def row(cls: Any, count: int, distance: float = 10, **fields: Any) -> list[Any]:
    """Parts that do not overlap."""
    return [cls(x=-400 + distance * i, y=100, **fields) for i in range(count)]


MOST: dict[str, dict[str, Any]] = {
    "walls": {"walls": row(Wall, native.LEVEL_MAX_STATICS, size_x=1, size_y=1)},
    "buttons": {"doors": DOORS, "buttons": row(Button, native.LEVEL_MAX_BUTTONS, door=0)},
    "cubes": {"cubes": row(Cube, native.LEVEL_MAX_CUBES)},
    "spawns": {"spawns": row(Spawn, native.MAX_AGENTS)},
    "rooms": {"rooms": [Room(i, i + 1) for i in range(native.LEVEL_MAX_ROOMS)]},
}
ONE_MORE = {
    "walls": Wall(0, 200, 1, 1),
    "buttons": Button(0, 200, 0),
    "cubes": Cube(0, 200),
    "spawns": Spawn(0, 200),
    "rooms": Room(native.LEVEL_MAX_ROOMS, native.LEVEL_MAX_ROOMS + 1),
}


@pytest.mark.parametrize("name", MOST)
def test_capacities_are_those_of_the_c_api(name: str) -> None:
    level = Level(**{"spawns": SPAWNS, **MOST[name]})
    with pytest.raises(doorstep.ArgumentError, match=rf"^{name} is .* to \d+ {name} \(there are \d+\)") as caught:
        level.replace(**{name: (*getattr(level, name), ONE_MORE[name])})
    assert caught.value.argument == name


def test_doors_have_a_capacity_and_share_that_of_walls() -> None:
    doors, buttons = row(Door, 8, size_x=4), [Button(0, 10, i) for i in range(8)]
    level = Level(spawns=SPAWNS, doors=doors, buttons=buttons, walls=row(Wall, 24, size_x=1, size_y=1))
    with pytest.raises(doorstep.ArgumentError, match=r"^walls and doors together are 33; a level has at most 32"):
        level.replace(walls=[*level.walls, Wall(0, 200, 1, 1)])
    with pytest.raises(doorstep.ArgumentError, match=r"^doors is .*; .* a sequence of 0 to 8 doors \(there are 9\)"):
        level.replace(doors=[*doors, Door(0, 200)])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"spawns": ()}, r"spawns is \(\); it must be a sequence of 1 to 8 spawns"),
        ({"buttons": ()}, r"doors\[0\] has no button; it would never open \(add a Button\(x, y, door=0\), or make"),
        ({"buttons": [*BUTTONS, Button(5, 5, 1)]}, r"buttons\[1\].door is 1; it must be the index of one of 1 doors"),
        ({"walls": [Wall(0, 10, 1, 1)]}, r"buttons\[0\] is inside walls\[0\]; nobody can stand on it"),
        ({"walls": [(1, 2, 3, 4)]}, r"walls\[0\] is \(1, 2, 3, 4\); it must be a doorstep.levels.Wall"),
        ({"walls": Wall(0, 0, 1, 1)}, r"walls is Wall.*; it must be a sequence of 0 to 32 walls"),
        ({"cubes": "OO"}, "cubes is 'OO'; it must be a sequence of 0 to 24 cubes"),
        ({"goal": (0, 1, 0, 1)}, r"goal is \(0, 1, 0, 1\); it must be a doorstep.levels.Goal or None"),
        ({"rewards": None}, "rewards is None; it must be a doorstep.levels.Rewards"),
        ({"physics": 3}, "physics is 3; it must be a doorstep.levels.Physics"),
        ({"name": 3}, "name is 3; it must be a text"),
        ({"name": "\ud800"}, r"name is '\\ud800'; it must be a text that UTF-8 can hold \(remove the lone surrogates"),
        ({"description": "\udc80"}, r"description is '\\udc80'; it must be a text that UTF-8 can hold"),
        ({"episode_length": 0}, "episode_length is 0; it must be an integer, 1 to 1000000"),
        ({"episode_length": (9, 3)}, r"episode_length is \(9, 3\); it must be a range \(low, high\) with low <= high"),
        ({"episode_length": (1, 2.5)}, r"episode_length\[1\] is 2.5; it must be an integer, 1 to 1000000"),
        ({"episode_length": (1,)}, r"episode_length is \(1,\); it must be one value or a range"),
        ({"rooms": [Room(0, 5, door=1)]}, r"rooms\[0\].door is 1; it must be None or the index of one of 1 doors"),
        ({"rooms": [Room(0, 5), Room(6, 9)]}, r"rooms\[1\].start is 6.0; it must be the end of rooms\[0\], 5"),
        ({"rooms": [Room(5, 9), Room(0, 5)]}, r"rooms\[1\].start is 0.0; it must be the end of rooms\[0\], 9"),
    ],
)
def test_what_is_wrong_is_refused_by_its_name(changes: dict[str, Any], says: str) -> None:
    level = Level(doors=DOORS, buttons=BUTTONS, spawns=SPAWNS)
    with pytest.raises(doorstep.ArgumentError, match=f"^{says}") as caught:
        level.replace(**changes)
    assert str(caught.value).startswith(caught.value.argument)


def test_sequences_become_tuples_and_levels_do_not_change() -> None:
    walls = [Wall(0, 50, 1, 1)]
    level = Level(spawns=SPAWNS, walls=walls)
    walls.clear()
    assert level.walls == (Wall(0, 50, 1, 1),)
    assert hash(level) == hash(level.replace())
    assert pickle.loads(pickle.dumps(level)) == level
    with pytest.raises(dataclasses.FrozenInstanceError):
        level.walls = ()  # type: ignore[misc]


def test_a_level_has_the_references_rules_by_default() -> None:
    level = Level(spawns=SPAWNS)
    assert (level.rewards, level.physics) == (Rewards(), Physics())
    assert (level.goal, level.episode_length) == (None, None)
    assert levels.reference().room_types == ("double_button", "cube_blocking", "cube_buttons")


def test_room_types_are_those_of_the_c_api() -> None:
    for member in native.RoomType:
        assert GeneratedLevel(room_types=(member.name.lower(),) * 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"room_types": ("any", "any")}, "room_types is .*; it must be a sequence of 3 names of room types"),
        ({"room_types": "any"}, "room_types is 'any'; it must be a sequence of 3 names"),
        ({"room_types": ("any", "x", "any")}, r"room_types\[1\] is 'x'; it must be one of 'any', 'single_button'"),
        ({"first_room": 3}, "first_room is 3; it must be an integer, 0 to 2"),
        ({"first_room": 1.5}, "first_room is 1.5"),
        ({"cubes_near_buttons": 1.25}, "cubes_near_buttons is 1.25; it must be a number, 0 to 1"),
        ({"cubes_near_buttons": float("nan")}, "cubes_near_buttons is nan"),
        ({"goal": 3}, "goal is 3; it must be a doorstep.levels.Goal or None"),
        ({"episode_length": -1}, "episode_length is -1"),
    ],
)
def test_generated_levels_are_checked(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=f"^{says}"):
        GeneratedLevel(**fields)


def test_a_generated_level_has_a_goal_and_rules_of_its_own() -> None:
    goal = Goal(-10, 10, 39, 60)
    level = GeneratedLevel(room_types=["any", "any", "any"], goal=goal, episode_length=[50, 60])  # type: ignore[arg-type]
    assert (level.room_types, level.goal, level.episode_length) == (("any",) * 3, goal, (50, 60))
