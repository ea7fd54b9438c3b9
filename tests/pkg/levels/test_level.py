"""Levels and their parts: what they hold and refuse, by which name; rooms of levels that name none."""

import dataclasses
import math
import pickle
import random

import numpy as np
import pytest
from tests.refuses import assert_refused, refuses

import doorstep
from doorstep._native import _generated as native
from doorstep.levels import Button, Cube, Door, GeneratedLevel, Goal, Level, Physics, Rewards, Room, Spawn, Wall
from doorstep.levels.native import to_native

SPAWNS = (Spawn(0, 3),)
DOORS = (Door(0, 20),)
BUTTONS = (Button(0, 10, 0),)
SOUND = {
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


# ---- Parts


def test_parts_hold_what_they_were_given_and_refuse_what_is_no_number_by_its_name():
    for cls, fields in SOUND.items():
        part = cls(**fields)
        assert {name: getattr(part, name) for name in fields} == fields
        assert part == cls(**fields)
        assert hash(part) == hash(cls(**fields))
        for name in fields:
            for value in NO_NUMBERS:
                if (value is True and name == "persistent") or (value is None and (cls, name) == (Room, "door")):
                    continue
                refuses(f"^{name} is .*; it must be ", cls, **{**fields, name: value}, argument=name)


def test_values_out_of_range_are_refused():
    rows = [
        (Wall, "size_x", 0, "size_x is 0; it must be a number of metres, 0.01 to 1000"),
        (Wall, "z", -1, "z is -1; it must be a number of metres, 0 to 1000"),
        (Wall, "x", 1001, "x is 1001; it must be a number of metres, -1000 to 1000"),
        (Rewards, "goal", 2e6, "goal is 2000000.0; it must be a number of reward, -1e+06 to 1e+06"),
        (Rewards, "bonus_distance", -1, "bonus_distance is -1; it must be a number of metres, 0 to 1e+06"),
        (Button, "door", 8, "door is 8; it must be an integer, 0 to 7"),
        (Cube, "yaw", 90, "yaw is 90; ... -6.28319 to 6.28319 (math.radians() converts degrees)"),
        (Cube, "yaw", (0, 1), "yaw is (0, 1); it must be a number of radians"),
        (Spawn, "x", (2, 1), "x is (2, 1); it must be a range (low, high) with low <= high (exchange the two)"),
        (Spawn, "y", (0, 1, 2), "y is (0, 1, 2); it must be one value or a range (low, high)"),
        (Spawn, "yaw", (0, math.nan), "yaw[1] is nan; it must be a number of radians"),
        (Room, "end", 1, "end is 1.0; it must be at least 0.1 m beyond start, 1"),
        (Goal, "max_x", 1, "max_x is 1.0; it must be more than min_x, 1, ... (a goal without area is never reached)"),
        (Goal, "max_x", 1 + 1e-9, "max_x is 1.000000001; it must be more than min_x, 1, in single precision"),
        (Goal, "max_y", -3, "max_y is -3.0; it must be more than min_y, 3"),
        (Goal, "agents", "both", "agents is 'both'; it must be one of 'all', 'any'"),
        (Door, "persistent", 1, "persistent is 1; it must be True or False"),
    ]
    for cls, name, value, says in rows:
        assert_refused(cls, [({**SOUND[cls], name: value}, says)])
    limits = {"cube_mass": (1, 1000), "friction": (0, 2), "walking_force": (0, 2000), "turning_torque": (0, 640),
              "door_speed": (0.1, 100)}  # fmt: skip
    for name, (low, high) in limits.items():  # which are inclusive
        assert getattr(Physics(**{name: (low, high)}), name) == (low, high)
        for value in (low - 0.01, high + 0.01, (low - 0.01, high), (low, high + 0.01)):
            assert_refused(Physics, [({name: value}, f"{low:g} to {high:g}")])


def test_numbers_of_numpy_become_pythons():
    spawn = Spawn(np.float32(0.5), [np.int64(1), 2])
    assert spawn == Spawn(0.5, (1, 2))
    assert [type(value) for value in (spawn.x, spawn.y, *spawn.y)] == [float, tuple, float, float]


# ---- Levels


def row(cls, count, y, **fields):
    """Parts that do not overlap."""
    return [cls(x=-400 + 10 * i, y=y, **fields) for i in range(count)]


def test_capacities_are_those_of_the_c_api():
    buttons = row(Button, native.LEVEL_MAX_BUTTONS, 30, door=0)
    most = {
        "walls": (row(Wall, native.LEVEL_MAX_STATICS - 8, 10, size_x=1, size_y=1), Wall(0, 99, 1, 1)),
        "doors": (row(Door, 8, 20, size_x=4), Door(0, 99)),
        "buttons": ([dataclasses.replace(one, door=i % 8) for i, one in enumerate(buttons)], Button(0, 99, 0)),
        "cubes": (row(Cube, native.LEVEL_MAX_CUBES, 40), Cube(0, 99)),
        "spawns": (row(Spawn, native.MAX_AGENTS, 50), Spawn(0, 99)),
        "rooms": ([Room(i, i + 1) for i in range(native.LEVEL_MAX_ROOMS)], Room(8, 9)),
    }
    level = Level(**{name: parts for name, (parts, _) in most.items()})
    for name, (parts, one_more) in most.items():
        says = rf"^(walls and doors together are 33|{name} is .* to \d+ {name} \(there are \d+\))"
        refuses(says, level.replace, **{name: (*parts, one_more)}, argument=name)


def test_what_is_wrong_is_refused_by_its_name():
    rows = [
        ({"spawns": ()}, "spawns is (); it must be a sequence of 1 to 8 spawns"),
        ({"buttons": ()}, "doors[0] has no button; it would never open (add a Button(x, y, door=0), or make"),
        ({"buttons": [*BUTTONS, Button(5, 5, 1)]}, "buttons[1].door is 1; it must be the index of one of 1 doors"),
        ({"walls": [Wall(0, 10, 1, 1)]}, "buttons[0] is inside walls[0]; nobody can stand on it"),
        ({"walls": [(1, 2, 3, 4)]}, "walls[0] is (1, 2, 3, 4); it must be a doorstep.levels.Wall"),
        ({"goal": (0, 1, 0, 1)}, "goal is (0, 1, 0, 1); it must be a doorstep.levels.Goal or None"),
        ({"physics": 3}, "physics is 3; it must be a doorstep.levels.Physics"),
        ({"name": 3}, "name is 3; it must be a text"),
        ({"name": "\ud800"}, r"name is '\ud800'; it must be a text that UTF-8 can hold (remove the lone surrogates"),
        ({"episode_length": 0}, "episode_length is 0; it must be an integer, 1 to 1000000"),
        ({"episode_length": (9, 3)}, "episode_length is (9, 3); it must be a range (low, high) with low <= high"),
        ({"rooms": [Room(0, 5, door=1)]}, "rooms[0].door is 1; it must be None or the index of one of 1 doors"),
        ({"rooms": [Room(0, 5), Room(6, 9)]}, "rooms[1].start is 6.0; it must be the end of rooms[0], 5"),
    ]
    assert_refused(Level(doors=DOORS, buttons=BUTTONS, spawns=SPAWNS).replace, rows)
    rows = [
        ({"room_types": ("any", "any")}, "room_types is ... ; it must be a sequence of 3 names of room types"),
        ({"room_types": ("any", "x", "any")}, "room_types[1] is 'x'; it must be one of 'any', 'single_button'"),
        ({"first_room": 3}, "first_room is 3; it must be an integer, 0 to 2"),
        ({"cubes_near_buttons": 1.25}, "cubes_near_buttons is 1.25; it must be a number, 0 to 1"),
        ({"episode_length": -1}, "episode_length is -1"),
    ]
    assert_refused(GeneratedLevel, rows)


def test_sequences_become_tuples_and_levels_do_not_change():
    walls = [Wall(0, 50, 1, 1)]
    level = Level(spawns=SPAWNS, walls=walls)
    walls.clear()
    assert level.walls == (Wall(0, 50, 1, 1),)
    assert hash(level) == hash(level.replace())
    assert pickle.loads(pickle.dumps(level)) == level
    with pytest.raises(dataclasses.FrozenInstanceError):
        level.walls = ()
    goal = Goal(-10, 10, 39, 60)
    generated = GeneratedLevel(room_types=["any", "any", "any"], goal=goal, episode_length=[50, 60])
    assert (generated.room_types, generated.goal, generated.episode_length) == (("any",) * 3, goal, (50, 60))


def test_sparse_rewards_are_of_the_goal_alone():
    of_agents = Rewards(progress=0, idle=0, bonus_factor=1, cube_approach=0, room=0, exit=0, goal=3)
    assert Rewards.sparse(3) == of_agents


# ---- What overlaps is refused, and nothing else: compared with poses and points that are tried one by one

CLEAR = 0.12  # metres: poses and points are tried so far apart that overlaps of less may not be found
FAR_AWAY = Spawn(500, 500)
SQUARE = np.stack(np.meshgrid(np.linspace(-0.5, 0.5, 31), np.linspace(-0.5, 0.5, 31)), -1).reshape(-1, 2)


def has_common_points(a, b, depth):
    """Whether some point of a rectangle (x, y, size_x, size_y, yaw) is inside another by this depth, or of that one."""
    for (x, y, size_x, size_y, yaw), other in ((a, b), (b, a)):
        turn = np.array([[math.cos(yaw), -math.sin(yaw)], [math.sin(yaw), math.cos(yaw)]])  # counter-clockwise
        points = (SQUARE * (size_x, size_y)) @ turn.T + (x, y)
        to_x, to_y, size_x, size_y, yaw = other
        turn = np.array([[math.cos(yaw), math.sin(yaw)], [-math.sin(yaw), math.cos(yaw)]])
        local = np.abs((points - (to_x, to_y)) @ turn.T)
        if ((local[:, 0] < size_x / 2 - depth) & (local[:, 1] < size_y / 2 - depth)).any():
            return True
    return False


def poses(spawn):
    """Agents that may be drawn, the ends of the ranges included."""

    def tried(value, count):
        return np.linspace(value[0], value[1], count).tolist() if isinstance(value, tuple) else [value]

    return [(x, y, 2.0, 2.0, yaw) for x in tried(spawn.x, 3) for y in tried(spawn.y, 3) for yaw in tried(spawn.yaw, 7)]


def test_a_spawn_is_refused_exactly_if_an_agent_of_its_ranges_has_points_in_a_wall_or_cube():
    for seed in range(300):
        generator = random.Random(seed)
        x, y = generator.uniform(-2, 2), generator.uniform(-2, 2)
        yaw, choose = generator.uniform(-3, 3), generator.choice
        spawn = Spawn(
            choose([x, (x - generator.random(), x + generator.random())]),
            choose([y, (y - generator.random(), y + generator.random())]),
            choose([yaw, (yaw, yaw + generator.uniform(0, 3))]),
        )
        angle, distance = generator.uniform(0, 6.3), generator.uniform(1.5, 4.5)
        x, y = x + distance * math.cos(angle), y + distance * math.sin(angle)
        if seed % 2:
            box = (x, y, generator.uniform(0.7, 4), generator.uniform(0.7, 4), 0.0)
            placed = {"walls": [Wall(*box[:4])]}
        else:
            box = (x, y, 3.0, 3.0, generator.uniform(-3, 3))
            placed = {"cubes": [Cube(x, y, box[4])]}
        try:
            Level(**placed, spawns=[spawn])
            is_refused = False
        except doorstep.ArgumentError as error:
            is_refused = "overlap" in str(error)
        assert is_refused or not any(has_common_points(pose, box, 2e-3) for pose in poses(spawn)), seed
        assert not is_refused or any(has_common_points(pose, box, -CLEAR) for pose in poses(spawn)), seed


def test_the_message_of_an_overlap_names_both_and_how_deep():
    wall, cube = {"walls": [Wall(0, 5, 4, 1)]}, {"cubes": [Cube(0, 5)]}
    door = {"doors": [Door(0, 5)], "buttons": [Button(0, 0, 0)]}
    rows = [
        ({**wall, "spawns": [Spawn(0, 4)]}, "spawns[0] overlaps walls[0] by 0.5 m"),
        ({**wall, "spawns": [Spawn(0, (1, 4))]}, "spawns[0] can overlap walls[0] by 0.5 m; ... (move it, or narrow it"),
        ({**wall, "spawns": [Spawn(0, 3.5 - 0.2, (0, math.pi))]}, "spawns[0] can overlap walls[0] by 0.21 m"),
        ({**wall, "spawns": [Spawn(0, 3.2, (1.2, 2.5))]}, "spawns[0] can overlap walls[0] by 0.11 m"),  # at 135 degrees
        ({**door, "spawns": [Spawn(0, 4)]}, "spawns[0] overlaps doors[0] by 0.5 m"),
        ({**cube, "spawns": [Spawn(0, 3)]}, "spawns[0] overlaps cubes[0] by 0.5 m"),
        ({"spawns": [Spawn(0, 3), Spawn(1, 3)]}, "spawns[1] overlaps spawns[0] by 1 m"),
        ({"spawns": [Spawn((0, 3), 3), Spawn(4, 3)]}, "spawns[1] can overlap spawns[0] by 1 m"),
        ({"cubes": [Cube(0, 5), Cube(2, 5)], "spawns": [FAR_AWAY]}, "cubes[1] overlaps cubes[0] by 1 m"),
        ({**cube, "walls": [Wall(0, 7, 9, 2)], "spawns": [FAR_AWAY]}, "cubes[0] overlaps walls[0]"),
    ]
    assert_refused(Level, rows)


def test_touching_is_allowed_and_so_is_what_does_no_harm():
    wall, far = {"walls": [Wall(0, 5, 4, 1)]}, {"spawns": [Spawn(0, 2)]}
    Level(**wall, spawns=[Spawn(0, 3.5)])
    Level(**wall, spawns=[Spawn(0, 4.5 - math.sqrt(2), math.pi / 4)])  # touches with a corner
    Level(**wall, spawns=[Spawn(0, 3.2, (1.2, 1.9))])  # turns without
    Level(walls=[Wall(0, 3, 4, 1, z=2)], spawns=[Spawn(0, 3)])  # below
    Level(cubes=[Cube(-3, 24), Cube(0, 24), Cube(3, 24)], walls=[Wall(0, 26, 20, 1)], **far)
    Level(cubes=[Cube(0, 5)], doors=[Door(0, 9)], buttons=[Button(0, 5, 0)], **far)  # a button below a cube
    Level(walls=[Wall(0, 5, 4, 4), Wall(1, 5, 4, 4)], spawns=[Spawn(0, 0)])


# ---- Rooms of a level that names none

GOAL = Goal(-1, 1, 12, 15)


def level_with(*doors, walls=(), goal=None):
    buttons = [Button(5, 5, i) for i in range(len(doors))]
    return Level(walls=walls, doors=doors, buttons=buttons, spawns=SPAWNS, goal=goal)


def test_every_row_of_doors_ends_a_room_at_its_far_side_as_in_the_reference():
    side, three = Wall(10.5, 20, 1, 40), (Door(0, 12.5, size_y=1), Door(0, 25.5), Door(0, 39.5))
    rows = [  # rooms that begin with the lowest thing and end with the highest, which may be a goal
        (Level(spawns=SPAWNS, walls=[Wall(0, 10, 5, 1)]), [Room(2, 10.5)]),
        (Level(spawns=[Spawn(0, (1, 5))]), [Room(0, 6)]),
        (level_with(*three, walls=(side,)), [Room(0, 13, 0), Room(13, 26, 1), Room(26, 40, 2)]),
        (level_with(Door(0, 9.5), goal=GOAL), [Room(2, 10, 0), Room(10, 15)]),
        # Doors in the order of y; those side by side end one room, which shows the first of them.
        (level_with(Door(0, 19.5), Door(-5, 9.5), Door(5, 9.7)), [Room(2, 10.2, 1), Room(10.2, 20, 0)]),
        (level_with(Door(5, 9.7), Door(0, 19.5), Door(-5, 9.5)), [Room(2, 10.2, 0), Room(10.2, 20, 1)]),
        (level_with(Door(-5, 9.5), Door(5, 10.5)), [Room(2, 10, 0), Room(10, 11, 1)]),  # 1 m further: another row
        (level_with(Door(0, 9, 2, 2)), [Room(2, 10, 0)]),
        # A door in a side wall, deeper than wide, ends none.
        (level_with(Door(0, 9.5), Door(4, 15, 1, 4), walls=(Wall(0, 30, 5, 1),)), [Room(2, 10, 0), Room(10, 30.5, 1)]),
        (Level(spawns=SPAWNS, rooms=[Room(-5, 3), Room(3, 8)]), [Room(-5, 3), Room(3, 8)]),
    ]
    for level, rooms in rows:
        assert list(level.rooms) == rooms
        assert Level.from_dict(level.to_dict()).rooms == level.rooms
    for y, room in ((0.01, (0.005, 0.105)), (-1000, (-1000, -999.9))):  # a thin door that is the lowest thing
        level = Level(doors=[Door(0, y, 5, 0.01)], buttons=[Button(5, 5, 0)], spawns=[Spawn(0, 9)])
        first, second = level.rooms
        assert (first.start, first.end) == pytest.approx(room)
        assert (first.door, second) == (0, Room(first.end, 10))


def test_the_exit_is_beyond_the_last_door_unless_a_goal_ends_episodes():
    assert (level_with().exit, level_with(Door(0, 9.5), Door(0, 19.5)).exit) == (math.inf, 20.0)
    assert level_with(Door(0, 9.5), goal=GOAL).exit == math.inf
    assert (GeneratedLevel().exit, GeneratedLevel(goal=GOAL).exit) == (40.0, math.inf)


def test_more_rooms_than_a_level_can_have_are_refused():
    doors = [Door(0, 10 * i) for i in range(1, 9)]
    assert len(level_with(*doors).rooms) == 8
    refuses(r"^rooms are 9; a level has at most 8 \(.*pass rooms=\)", level_with, *doors, goal=Goal(-1, 1, 90, 95))
    given = level_with(*doors).replace(rooms=[Room(0, 99)], goal=Goal(-1, 1, 90, 95))
    assert given.replace(name="other").rooms == (Room(0, 99),)


def test_rooms_follow_changes_of_the_doors_unless_they_were_given():
    derived = level_with(Door(0, 9.5))
    assert derived.replace(doors=[Door(0, 19.5)]).rooms == (Room(2, 20, 0),)
    assert derived.replace(doors=(), buttons=()).rooms == (Room(2, 4),)
    assert derived.replace(rooms=[Room(0, 5)]).replace(doors=[Door(0, 19.5)]).rooms == (Room(0, 5),)


def test_rooms_may_have_gaps_of_rounding_only():
    level = Level(spawns=SPAWNS, rooms=[Room(0, 0.3), Room(0.1 + 0.2, 1)])
    rooms = to_native(level).rooms
    assert rooms[0].end == rooms[1].start
    refuses(r"rooms\[1\].start is 0.31", level.replace, rooms=[Room(0, 0.3), Room(0.31, 1)])
