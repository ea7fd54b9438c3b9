"""The numbers of parts and rules of levels are checked where they are written."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import doorstep
from doorstep.levels import Button, Cube, Door, Goal, Physics, Rewards, Room, Spawn, Wall

SOUND: dict[type, dict[str, Any]] = {
    Wall: {"x": 1, "y": 2, "size_x": 3, "size_y": 4, "height": 5, "z": 6},
    Door: {"x": 1, "y": 2, "size_x": 3, "size_y": 4, "height": 5, "persistent": False},
    Button: {"x": 1, "y": 2, "door": 3},
    Cube: {"x": 1, "y": 2, "yaw": 3},
    Spawn: {"x": (1, 2), "y": 2, "yaw": (-1, 1)},
    Room: {"start": 1, "end": 2, "door": 3},
    Goal: {"min_x": 1, "max_x": 2, "min_y": 3, "max_y": 4, "agents": "any"},
    Rewards: dict.fromkeys(("progress", "idle", "bonus_factor", "bonus_distance", "room", "goal", "max_y"), 2),
    Physics: {"cube_mass": 2, "friction": (0, 1), "walking_force": 3, "turning_torque": 4, "door_speed": 5},
}
NO_NUMBERS = [math.nan, math.inf, -math.inf, 1e39, 10**5000, "1", None, True, 1j, [1, 2, 3], np.zeros(1)]


@pytest.mark.parametrize("cls", SOUND, ids=lambda cls: cls.__name__)
def test_parts_hold_what_they_were_given(cls: type) -> None:
    part = cls(**SOUND[cls])
    assert {name: getattr(part, name) for name in SOUND[cls]} == SOUND[cls]
    assert part == cls(**SOUND[cls])
    assert hash(part) == hash(cls(**SOUND[cls]))


@pytest.mark.parametrize(
    ("cls", "name"), [(cls, name) for cls, fields in SOUND.items() for name in fields], ids=lambda value: str(value)
)
def test_every_field_refuses_what_is_no_number_by_its_name(cls: type, name: str) -> None:
    for value in NO_NUMBERS:
        if (value is True and name == "persistent") or (value is None and (cls, name) == (Room, "door")):
            continue
        with pytest.raises(doorstep.ArgumentError, match=f"^{name} is .*; it must be ") as caught:
            cls(**{**SOUND[cls], name: value})
        assert caught.value.argument == name


@pytest.mark.parametrize(
    ("cls", "name", "value", "says"),
    [
        (Wall, "size_x", 0, "size_x is 0; it must be a number of metres, 0.01 to 1000"),
        (Door, "size_y", -1, "size_y is -1; it must be a number of metres, 0.01 to 1000"),
        (Wall, "height", 1e-60, "height is 1e-60; it must be a number of metres, 0.01"),
        (Wall, "z", -1, "z is -1; it must be a number of metres, 0 to 1000"),
        (Rewards, "goal", 2e6, r"goal is 2000000.0; it must be a number of reward, -1e\+06 to 1e\+06"),
        (Wall, "x", 1001, "x is 1001; it must be a number of metres, -1000 to 1000"),
        (Button, "door", 8, "door is 8; it must be an integer, 0 to 7"),
        (Button, "door", -1, "door is -1; it must be an integer, 0 to 7"),
        (Cube, "yaw", 90, r"yaw is 90; .* -6.28319 to 6.28319 \(math.radians\(\) converts degrees\)"),
        (Cube, "yaw", (0, 1), r"yaw is \(0, 1\); it must be a number of radians"),
        (Spawn, "x", (2, 1), r"x is \(2, 1\); it must be a range \(low, high\) with low <= high \(exchange the two\)"),
        (Spawn, "y", (0, 1, 2), r"y is \(0, 1, 2\); it must be one value or a range \(low, high\)"),
        (Spawn, "yaw", (0, math.nan), r"yaw\[1\] is nan; it must be a number of radians"),
        (Room, "end", 1, "end is 1.0; it must be at least 0.1 m beyond start, 1"),
        (Goal, "max_x", 1, r"max_x is 1.0; it must be more than min_x, 1, .*\(a goal without area is never reached\)"),
        (Goal, "max_x", 1 + 1e-9, "max_x is 1.000000001; it must be more than min_x, 1, in single precision"),
        (Goal, "max_y", -3, "max_y is -3.0; it must be more than min_y, 3"),
        (Goal, "agents", "both", "agents is 'both'; it must be one of 'all', 'any'"),
        (Rewards, "bonus_distance", -1, r"bonus_distance is -1; it must be a number of metres, 0 to 1e\+06"),
        (Door, "persistent", 1, "persistent is 1; it must be True or False"),
    ],
)
def test_values_out_of_range_are_refused(cls: type, name: str, value: Any, says: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=f"^{says}") as caught:
        cls(**{**SOUND[cls], name: value})
    assert caught.value.argument.partition("[")[0] == name


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("cube_mass", 1, 1000),
        ("friction", 0, 2),
        ("walking_force", 0, 2000),
        ("turning_torque", 0, 640),
        ("door_speed", 0.1, 100),
    ],
)
def test_the_limits_of_the_physics_are_inclusive(name: str, low: float, high: float) -> None:
    assert getattr(Physics(**{name: (low, high)}), name) == (low, high)
    for value in (low - 0.01, high + 0.01, (low - 0.01, high), (low, high + 0.01)):
        with pytest.raises(doorstep.ArgumentError, match=rf"^{name}(\[[01]\])? is .*, {low:g} to {high:g}"):
            Physics(**{name: value})


def test_numbers_of_numpy_become_pythons() -> None:
    spawn = Spawn(np.float32(0.5), [np.int64(1), 2])  # type: ignore[arg-type]
    assert spawn == Spawn(0.5, (1, 2))
    assert type(spawn.x) is float
    assert isinstance(spawn.y, tuple)
    assert [type(end) for end in spawn.y] == [float, float]


def test_sparse_rewards_are_those_of_the_goal_alone() -> None:
    rewards = Rewards.sparse(3)
    assert rewards.goal == 3
    assert (rewards.progress, rewards.idle, rewards.room) == (0, 0, 0)
