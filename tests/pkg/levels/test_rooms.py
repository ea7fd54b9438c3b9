"""Rooms of a level that names none."""

from __future__ import annotations

import math
import random

import pytest

import doorstep
from doorstep.levels import Button, Door, GeneratedLevel, Goal, Level, Room, Spawn, Wall
from doorstep.levels.files import AnyLevel
from doorstep.levels.native import to_native

SPAWNS = (Spawn(0, 3),)
GOAL = Goal(-1, 1, 12, 15)


def level_with(*doors: Door, walls: tuple[Wall, ...] = (), goal: Goal | None = None) -> Level:
    buttons = [Button(5, 5, i) for i in range(len(doors))]
    return Level(walls=walls, doors=doors, buttons=buttons, spawns=SPAWNS, goal=goal)


def test_a_level_without_doors_is_one_room() -> None:
    assert Level(spawns=SPAWNS, walls=[Wall(0, 10, 5, 1)]).rooms == (Room(2, 10.5),)
    assert Level(spawns=[Spawn(0, (1, 5))]).rooms == (Room(0, 6),)


def test_every_row_of_doors_ends_a_room_at_its_far_side_as_in_the_reference() -> None:
    side = Wall(10.5, 20, 1, 40)
    level = level_with(Door(0, 12.5, size_y=1), Door(0, 25.5), Door(0, 39.5), walls=(side,))
    assert level.rooms == (Room(0, 13, 0), Room(13, 26, 1), Room(26, 40, 2))


@pytest.mark.parametrize(("y", "room"), [(0.01, (0.005, 0.105)), (-1000, (-1000, -999.9))])
def test_a_thin_door_that_is_the_lowest_thing_ends_a_room(y: float, room: tuple[float, float]) -> None:
    level = Level(doors=[Door(0, y, 5, 0.01)], buttons=[Button(5, 5, 0)], spawns=[Spawn(0, 9)])
    first, second = level.rooms
    assert (first.start, first.end) == pytest.approx(room)
    assert first.door == 0
    assert second == Room(first.end, 10)


def test_what_lies_behind_the_last_door_is_a_room() -> None:
    assert level_with(Door(0, 9.5), goal=Goal(-1, 1, 12, 15)).rooms == (Room(2, 10, 0), Room(10, 15))


def test_doors_are_in_the_order_of_y_and_those_side_by_side_end_one_room() -> None:
    level = level_with(Door(0, 19.5), Door(-5, 9.5), Door(5, 9.7))
    assert level.rooms == (Room(2, 10.2, 1), Room(10.2, 20, 0))


@pytest.mark.parametrize(
    ("level", "exit"),
    [
        (level_with(), math.inf),
        (level_with(Door(0, 9.5), Door(0, 19.5)), 20.0),
        (level_with(Door(0, 9.5), goal=GOAL), math.inf),
        (GeneratedLevel(), 40.0),
        (GeneratedLevel(goal=GOAL), math.inf),
    ],
)
def test_the_exit_is_beyond_the_last_door_unless_a_goal_ends_episodes(level: AnyLevel, exit: float) -> None:
    assert level.exit == exit


def test_side_doors_end_no_room() -> None:
    side = Door(4, 15, size_x=1, size_y=4)
    level = level_with(Door(0, 9.5), side, walls=(Wall(0, 30, 5, 1),))
    assert level.rooms == (Room(2, 10, 0), Room(10, 30.5, 1))


def test_more_rooms_than_a_level_can_have_are_refused() -> None:
    doors = [Door(0, 10 * i) for i in range(1, 9)]
    assert len(level_with(*doors).rooms) == 8
    with pytest.raises(doorstep.ArgumentError, match=r"^rooms are 9; a level has at most 8 \(.*pass rooms=\)"):
        level_with(*doors, goal=Goal(-1, 1, 90, 95))
    given = level_with(*doors).replace(rooms=[Room(0, 99)], goal=Goal(-1, 1, 90, 95))
    assert given.replace(name="other").rooms == (Room(0, 99),)


def test_rooms_that_are_given_stay() -> None:
    rooms = (Room(-5, 3), Room(3, 8))
    assert Level(spawns=SPAWNS, rooms=rooms).rooms == rooms


def test_rooms_follow_changes_of_the_doors_unless_they_were_given() -> None:
    derived = level_with(Door(0, 9.5))
    assert derived.replace(doors=[Door(0, 19.5)]).rooms == (Room(2, 20, 0),)
    assert derived.replace(doors=(), buttons=()).rooms == (Room(2, 4),)
    given = derived.replace(rooms=[Room(0, 5)])
    assert given.replace(doors=[Door(0, 19.5)]).rooms == (Room(0, 5),)


def test_rooms_may_have_gaps_of_rounding_only() -> None:
    level = Level(spawns=SPAWNS, rooms=[Room(0, 0.3), Room(0.1 + 0.2, 1)])
    native = to_native(level).rooms
    assert native[0].end == native[1].start
    with pytest.raises(doorstep.ArgumentError, match=r"rooms\[1\].start is 0.31"):
        level.replace(rooms=[Room(0, 0.3), Room(0.31, 1)])


@pytest.mark.parametrize("seed", range(10))
def test_rooms_follow_each_other_without_gaps_and_hold_everything(seed: int) -> None:
    generator = random.Random(seed)
    doors = [Door(generator.uniform(-9, 9), generator.uniform(10, 40)) for _ in range(generator.randint(1, 6))]
    level = level_with(*doors, walls=(Wall(0, 45, 20, 1),))
    assert all(room.end == following.start for room, following in zip(level.rooms, level.rooms[1:], strict=False))
    assert (level.rooms[0].start, level.rooms[-1].end) == (2, 45.5)
    assert Level.from_dict(level.to_dict()).rooms == level.rooms
