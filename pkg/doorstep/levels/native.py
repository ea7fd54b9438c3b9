"""Levels as the native library takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doorstep._native import _generated as native
from doorstep.errors import ArgumentError
from doorstep.levels.files import AnyLevel, check_levels
from doorstep.levels.level import Level
from doorstep.levels.numbers import NumberOrRange, ends_of
from doorstep.levels.parts import Door, Goal, Room, Spawn, Wall
from doorstep.levels.rules import Physics, Rewards


def to_native(level: AnyLevel) -> native.Level:
    """The ds_level of a level."""
    goal, rewards, physics = _goal(level.goal), to_native_rewards(level.rewards), _physics(level.physics)
    struct = native.Level(goal=goal, rewards=rewards, physics=physics)
    struct.struct_size = memoryview(struct).nbytes
    struct.min_episode_length, struct.max_episode_length = _episode_lengths(level.episode_length)
    if isinstance(level, Level):
        _place_parts(level, struct)
    else:
        struct.source = native.LevelSource.GENERATED
        struct.room_types[:] = [native.RoomType[name.upper()] for name in level.room_types]
        struct.first_room = level.first_room
        struct.cubes_near_buttons = level.cubes_near_buttons
    return struct


def to_native_rewards(rewards: Rewards) -> native.LevelRewards:
    """The ds_level_rewards of rewards."""
    return native.LevelRewards(**vars(rewards))


def to_native_array(levels: Sequence[AnyLevel]) -> Any:
    """Levels one after the other in memory: a ctypes array.

    Raises:
        ArgumentError: there is none, or one is something else.
    """
    check_levels(levels)
    return (native.Level * len(levels))(*map(to_native, levels))


def check_spawns(levels: Sequence[AnyLevel], num_agents: int) -> None:
    """Refuses levels with fewer spawns than the worlds that play them have agents."""
    for index, level in enumerate(levels):
        if isinstance(level, Level) and len(level.spawns) < num_agents:
            raise ArgumentError(
                f"levels[{index}] has {len(level.spawns)} spawns; it must have at least {num_agents}",
                argument="levels",
                hint="add spawns, or play it with fewer agents",
            )


def _place_parts(level: Level, struct: native.Level) -> None:
    struct.source = native.LevelSource.FIXED
    _fill(struct, "walls", [_box(wall) for wall in level.walls])
    _fill(struct, "doors", [native.LevelDoor(_box(door), door.persistent) for door in level.doors])
    _fill(struct, "buttons", [native.LevelButton(button.x, button.y, button.door) for button in level.buttons])
    _fill(struct, "cubes", [native.LevelCube(cube.x, cube.y, cube.yaw) for cube in level.cubes])
    _fill(struct, "agents", [_agent(spawn) for spawn in level.spawns])
    _fill(struct, "rooms", _rooms(level.rooms))


def _fill(struct: native.Level, name: str, parts: list[Any]) -> None:
    getattr(struct, name)[: len(parts)] = parts
    setattr(struct, f"num_{name}", len(parts))


def _box(box: Wall | Door) -> native.LevelBox:
    z = box.z if isinstance(box, Wall) else 0.0
    return native.LevelBox(box.x, box.y, z, box.size_x, box.size_y, box.height)


def _agent(spawn: Spawn) -> native.LevelAgent:
    return native.LevelAgent(_range(spawn.x), _range(spawn.y), _range(spawn.yaw))


def _rooms(rooms: Sequence[Room]) -> list[native.LevelRoom]:
    """Each begins exactly where the one before it ends."""
    starts = [rooms[0].start, *(room.end for room in rooms[:-1])]
    doors = [-1 if room.door is None else room.door for room in rooms]
    return [native.LevelRoom(start, room.end, door) for start, room, door in zip(starts, rooms, doors, strict=True)]


def _goal(goal: Goal | None) -> native.LevelGoal:
    if goal is None:
        return native.LevelGoal(native.GoalAgents.NONE)
    return native.LevelGoal(native.GoalAgents[goal.agents.upper()], goal.min_x, goal.max_x, goal.min_y, goal.max_y)


def _physics(physics: Physics) -> native.LevelPhysics:
    return native.LevelPhysics(**{name: _range(value) for name, value in vars(physics).items()})


def _range(value: NumberOrRange) -> native.Range:
    return native.Range(*ends_of(value))


def _episode_lengths(length: int | tuple[int, int] | None) -> tuple[int, int]:
    if length is None:
        return 0, 0
    return length if isinstance(length, tuple) else (length, length)
