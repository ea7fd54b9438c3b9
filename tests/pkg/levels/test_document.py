"""Levels as dictionaries, JSON, files and structs of the C API, and rewards as text of an option."""

import json
import math
import random

import pytest
from tests.pkg.damaged import damaged
from tests.refuses import assert_refused

import doorstep
from doorstep import levels
from doorstep._native import _generated as native
from doorstep.evaluation.config import EvaluationConfig
from doorstep.levels import Button, Cube, Door, GeneratedLevel, Goal, Level, Physics, Rewards, Room, Spawn, Wall
from doorstep.levels.reward_terms import RewardTerms

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
FULL = LEVEL.replace(name="full", description="All fields, with \u00fc.", cubes=[Cube(7 + 1 / 3, 7 + 1e-9)])
GENERATED = GeneratedLevel(room_types=("any", "single_button", "cube_buttons"), goal=Goal(0, 1, 2, 3), name="drawn")
GENERATED = GENERATED.replace(first_room=1, cubes_near_buttons=0.5)


def test_dictionaries_json_and_files_hold_everything_to_the_last_bit(tmp_path):
    path = tmp_path / "level.json"
    for level in (FULL, Level(spawns=[Spawn(0, 3)]), GENERATED, levels.reference()):
        cls = type(level)
        assert (cls.from_dict(level.to_dict()), cls.from_json(level.to_json())) == (level, level)
        assert json.loads(level.to_json()) == level.to_dict()
        level.save(path)
        assert cls.load(path) == cls.load(str(path)) == level
        assert levels.load_levels(path) == [level]
    levels.save_levels(path, [FULL, GENERATED])
    assert levels.load_levels(path) == [FULL, GENERATED]
    assert [entry.name for entry in tmp_path.iterdir()] == ["level.json"]
    assert '\n    {"x": 1.0, "y": 6.0, "door": 0}\n' in FULL.to_json()  # a line for each part
    text = '{"doorstep": "level", "version": 1, "spawns": [{"x": 0, "y": 3}], "physics": {"friction": [0, 1]}}'
    assert Level.from_json(text) == Level(spawns=[Spawn(0, 3)], physics=Physics(friction=(0, 1)))


def changed(**fields):
    return {**FULL.to_dict(), **fields}


def test_what_is_no_level_is_refused_by_the_path_of_its_field():
    wall = {"x": 1, "y": 2, "size_x": 3}
    rows = [
        (3, "values is 3; it must be a dictionary of a level", "values"),
        ({}, 'the document is without its kind; it must have "doorstep": "level"', "doorstep"),
        (GENERATED.to_dict(), "the document is of a 'generated level'; it must have", "doorstep"),
        (changed(version=2), "version is 2; this release of doorstep reads version 1 (install a later", "version"),
        (changed(wals=[]), "'wals' is not a field of Level (did you mean 'walls'", "wals"),
        (changed(walls=3), "walls is 3; it must be a sequence of 0 to 32 walls", "walls"),
        (changed(walls=[3]), "walls[0] is 3; it must be a doorstep.levels.Wall", "walls[0]"),
        (changed(cubes=[{"x": 1, "y": 2}, {"x": 1}]), "cubes[1].y is absent; it must be given", "cubes[1].y"),
        (changed(walls=[{**wall, "sizey": 3}]), "walls[0]: 'sizey' is not a field of Wall (did", "walls[0].sizey"),
        (changed(walls=[{**wall, "size_y": 0}]), "walls[0].size_y is 0; it must be a number", "walls[0].size_y"),
        (changed(physics={"friction": 3}), "physics.friction is 3; it must be a number", "physics.friction"),
        (changed(goal={"min_x": 0}), "goal.max_x is absent", "goal.max_x"),
        (changed(rewards=None), "rewards is None; it must be a doorstep.levels.Rewards", "rewards"),
        ({"doorstep": "level", "version": 1}, "spawns is absent; it must be given", "spawns"),
    ]
    for values, says, argument in rows:
        assert_refused(Level.from_dict, [({"values": values}, says)], argument=argument)


def test_damaged_documents_are_levels_or_refused(tmp_path):
    generator, path, refused = random.Random(1), tmp_path / "levels.json", 0
    file = {"doorstep": "levels", "version": 1, "levels": [FULL.to_dict(), GENERATED.to_dict()]}
    for _ in range(300):
        path.write_text(json.dumps(damaged(generator.choice([file, FULL.to_dict(), GENERATED.to_dict()]), generator)))
        try:
            assert levels.load_levels(path)
        except doorstep.ArgumentError as error:
            refused += str(error).startswith(f"{path}: ")
    assert refused > 150


def test_a_file_without_levels_is_refused(tmp_path):
    path, header = tmp_path / "levels.json", {"doorstep": "levels", "version": 1}
    no_number = changed(cubes=[{"x": 1, "y": "2"}])
    rows = [
        ([], "the file is []; it must be a dictionary"),
        ({**header, "doorstep": "map"}, 'the document is of a \'map\'; it must have "doorstep": "levels"'),
        ({**header, "version": 3}, "version is 3; this release of doorstep reads version 1"),
        (header, "levels is None; it must be a list of levels, at least one"),
        ({**header, "levels": [3]}, "levels[0].doorstep is None; it must be one of 'level', 'generated level'"),
        ({**header, "levels": [FULL.to_dict(), no_number]}, "levels[1].cubes[0].y is '2'; it must be a number of"),
        ({**FULL.to_dict(), "version": 9}, "version is 9"),
    ]
    for document, says in rows:
        path.write_text(json.dumps(document))
        with pytest.raises(doorstep.ArgumentError) as caught:
            levels.load_levels(path)
        assert f"levels.json: {says}" in str(caught.value)
    with pytest.raises(FileNotFoundError):
        Level.load(tmp_path / "none.json")


def test_only_levels_are_saved(tmp_path):
    rows = [([], "levels is "), (FULL, "levels is "), ([FULL, 3], "levels[1] is "), (None, "levels is ")]
    assert_refused(lambda wrong: levels.save_levels(tmp_path / "levels.json", wrong), rows)
    assert not list(tmp_path.iterdir())


# ---- Rewards


def test_rewards_are_read_from_an_option_and_come_back():
    rule = RewardTerms()
    assert rule.from_plain("reward", rule.from_text(" goal=2, exit=0.25")) == Rewards(goal=2, exit=0.25)
    rewards = Rewards(progress=1 / 3, idle=-1e-7, exit=5)
    assert rule.from_plain("reward", rule.from_text(rule.to_text(rule.to_plain(rewards)))) == rewards
    for reward in (rewards, None):
        assert EvaluationConfig.from_json(EvaluationConfig(reward=reward).to_json()).reward == reward
    for reward, named in (({"gaol": 2}, "reward.gaol"), ({"goal": "x"}, "reward.goal"), (3, "reward"), ("x", "reward")):
        assert_refused(EvaluationConfig.from_dict, [({"values": {"reward": reward}}, "reward")], argument=named)


# ---- Structs


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
