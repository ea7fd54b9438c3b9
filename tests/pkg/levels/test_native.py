"""Levels as structs of the C API: every field arrives."""

import ctypes
import math

from tests.refuses import assert_refused

import doorstep
from doorstep import levels
from doorstep._native import _generated as native
from doorstep.levels import Button, Cube, Door, GeneratedLevel, Goal, Level, Physics, Rewards, Room, Spawn, Wall
from doorstep.levels.native import to_native, to_native_array

LEVEL = Level(
    walls=[Wall(1, 20, 3, 4, 5, 6), Wall(1.5, 30.25, 3, 4)],
    doors=[Door(10, 20, 3, 2, 1, persistent=False), Door(-10, 20)],
    buttons=[Button(0, 5, 1), Button(1, 6, 0)],
    cubes=[Cube(7, 7, 0.25)],
    spawns=[Spawn((-3, -1), (2, 3), (-0.5, 0.5)), Spawn(1.5, 3)],
    rooms=[Room(0, 5, 1), Room(5, 9)],
    goal=Goal(0, 1, 2, 3, "any"),
    rewards=Rewards(1, 2, 3, 4, 5, 6, 7, 8, 9),
    physics=Physics(2, (0, 1), 3, 4, (5, 6)),
    episode_length=(7, 8),
)


def plain(value):
    """A struct as tuples."""
    if isinstance(value, ctypes.Structure):
        return tuple(plain(getattr(value, name)) for name, *_ in value._fields_)
    return [plain(element) for element in value] if isinstance(value, ctypes.Array) else value


def test_every_part_of_a_level_arrives():
    struct = to_native(LEVEL)
    assert struct.struct_size == ctypes.sizeof(native.Level)
    assert struct.source == native.LevelSource.FIXED
    counts = (struct.num_walls, struct.num_doors, struct.num_buttons, struct.num_cubes)
    assert (*counts, struct.num_agents, struct.num_rooms) == (2, 2, 2, 1, 2, 2)
    assert plain(struct.walls)[:3] == [(1, 20, 6, 3, 4, 5), (1.5, 30.25, 0, 3, 4, 4.375), (0,) * 6]
    width = ctypes.c_float(16 / 3).value
    assert plain(struct.doors)[:2] == [((10, 20, 0, 3, 2, 1), 0), ((-10, 20, 0, width, 1, 4.375), 1)]
    assert plain(struct.buttons)[:3] == [(0, 5, 1), (1, 6, 0), (0, 0, 0)]
    assert plain(struct.cubes)[:2] == [(7, 7, 0.25), (0, 0, 0)]
    assert plain(struct.agents)[:2] == [((-3, -1), (2, 3), (-0.5, 0.5)), ((1.5, 1.5), (3, 3), (0, 0))]
    assert plain(struct.rooms)[:2] == [(0, 5, 1), (5, 9, -1)]
    assert plain(struct.goal) == (native.GoalAgents.ANY, 0, 1, 2, 3)
    assert plain(struct.rewards) == (1, 2, 3, 4, 5, 6, 7, 8, 9)
    assert plain(struct.physics) == ((2, 2), (0, 1), (3, 3), (4, 4), (5, 6))
    assert (struct.min_episode_length, struct.max_episode_length) == (7, 8)
    assert [name for name, _ in native.LevelRewards._fields_] == list(vars(Rewards()))
    assert [name for name, _ in native.LevelPhysics._fields_] == list(vars(Physics()))


def test_a_generated_level_arrives():
    level = GeneratedLevel(room_types=("any", "single_button", "cube_buttons"), goal=Goal(0, 1, 2, 3), episode_length=9)
    level = level.replace(first_room=2, cubes_near_buttons=0.75)
    struct = to_native(level)
    assert struct.source == native.LevelSource.GENERATED
    assert list(struct.room_types) == [-1, 0, 3]
    assert (struct.first_room, struct.cubes_near_buttons) == (2, 0.75)
    assert plain(struct.goal) == (native.GoalAgents.ALL, 0, 1, 2, 3)
    assert (struct.min_episode_length, struct.max_episode_length) == (9, 9)
    assert (struct.num_walls, struct.num_agents, struct.num_rooms) == (0, 0, 0)
    struct = to_native(levels.reference())
    assert struct.goal.agents == native.GoalAgents.NONE
    assert (struct.min_episode_length, struct.max_episode_length) == (0, 0)


def test_several_levels_lie_one_after_the_other():
    several = (LEVEL, levels.reference(), LEVEL)
    array = to_native_array(several)
    assert ctypes.sizeof(array) == 3 * ctypes.sizeof(native.Level)
    assert [plain(struct) for struct in array] == [plain(to_native(level)) for level in several]
    assert_refused(to_native_array, [([], "levels is "), (None, "levels is "), ([LEVEL, 3], "levels[1] is ")])


FAR = 1000.0
EXTREMES = [
    {"walls": [Wall(FAR, -FAR, 0.01, FAR, 0.01, FAR), Wall(-FAR, FAR, FAR, 0.01)]},
    {"doors": [Door(FAR, FAR, 0.01, FAR, FAR)], "buttons": [Button(-FAR, -FAR, 0)]},
    {"cubes": [Cube(FAR, -FAR, 6.283), Cube(-FAR, FAR, -6.283)]},
    {"spawns": [Spawn((-FAR, FAR), (-FAR, 0), (-6.283, 6.283)), Spawn(FAR, FAR)]},
    {"spawns": [Spawn(0, 3, (-2 * math.pi, 2 * math.pi)), Spawn(5, 3, -6.2831853), Spawn(9, 3, 1 / 3)]},
    {"rooms": [Room(-FAR, -FAR + 0.1), Room(-FAR + 0.1, FAR)]},
    {"rooms": [Room(0, 0.3), Room(0.1 + 0.2, 1)]},
    {"goal": Goal(-FAR, FAR, -FAR, FAR)},
    {"rewards": Rewards(-1e6, 1e6, -1e6, 1e6, -1e6, 1e6, -1e6)},
    {"rewards": Rewards(bonus_distance=0)},
    {"physics": Physics((1, 1000), (0, 2), (0, 2000), (0, 640), (0.1, 100))},
    {"episode_length": (1, native.MAX_EPISODE_LENGTH)},
]


def test_the_native_library_takes_what_a_level_may_hold():
    with doorstep.Simulator(1, max_levels=2) as sim:
        for fields in EXTREMES:  # limits stay where they are when they are rounded to single precision
            sim.set_levels([Level(**{"spawns": [Spawn(0, 3), Spawn(5, 3)], **fields})])
