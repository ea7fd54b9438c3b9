"""Levels as dictionaries, JSON and files, and rewards as text of an option."""

import json
import random

import pytest
from tests.pkg.damaged import damaged
from tests.pkg.levels.test_native import LEVEL
from tests.refuses import assert_refused

import doorstep
from doorstep import levels
from doorstep.evaluation.config import EvaluationConfig
from doorstep.levels import Cube, GeneratedLevel, Goal, Level, Physics, Rewards, Spawn, Wall
from doorstep.levels.reward_terms import RewardTerms

FULL = LEVEL.replace(name="full", description="All fields, with \u00fc.")
GENERATED = GeneratedLevel(room_types=("any", "single_button", "cube_buttons"), goal=Goal(0, 1, 2, 3), name="drawn")
GENERATED = GENERATED.replace(first_room=1, cubes_near_buttons=0.5)


def random_level(generator):
    def number():
        return generator.uniform(-9, 9)

    return Level(
        walls=[Wall(number(), 100 + number(), generator.random() + 0.1, 1) for _ in range(generator.randrange(5))],
        cubes=[Cube(10.0 * i, 50, number() / 2) for i in range(generator.randrange(5))],
        spawns=[Spawn((10 * i, 10 * i + generator.random()), 0, number() / 2) for i in range(generator.randint(1, 8))],
        rewards=Rewards(number(), number()),
    )


def test_dictionaries_json_and_files_hold_everything_to_the_last_bit(tmp_path):
    path = tmp_path / "level.json"
    drawn = [random_level(random.Random(seed)) for seed in range(20)]
    for level in (FULL, Level(spawns=[Spawn(0, 3)]), GENERATED, levels.reference(), *drawn):
        cls = type(level)
        assert (cls.from_dict(level.to_dict()), cls.from_json(level.to_json())) == (level, level)
        assert json.loads(level.to_json()) == level.to_dict()
        level.save(path)
        assert cls.load(path) == cls.load(str(path)) == level
        assert levels.load_levels(path) == [level]
    levels.save_levels(path, [FULL, GENERATED, *drawn])  # several of both kinds
    assert levels.load_levels(path) == [FULL, GENERATED, *drawn]
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
        (changed(version="1"), "version is '1'; it must be an integer", "version"),
        (changed(wals=[]), "'wals' is not a field of Level (did you mean 'walls'", "wals"),
        (changed(zzz=[]), "'zzz' is not a field of Level (the fields are walls, doors, ", "zzz"),
        (changed(walls=3), "walls is 3; it must be a sequence of 0 to 32 walls", "walls"),
        (changed(walls=[3]), "walls[0] is 3; it must be a doorstep.levels.Wall", "walls[0]"),
        (changed(cubes=[{"x": 1, "y": 2}, {"x": 1}]), "cubes[1].y is absent; it must be given", "cubes[1].y"),
        (changed(cubes=[{"x": float("nan"), "y": 2}]), "cubes[0].x is nan", "cubes[0].x"),
        (changed(walls=[{**wall, "sizey": 3}]), "walls[0]: 'sizey' is not a field of Wall (did", "walls[0].sizey"),
        (changed(walls=[{**wall, "size_y": 0}]), "walls[0].size_y is 0; it must be a number", "walls[0].size_y"),
        (changed(spawns=[{"x": [2, 1], "y": 2}]), "spawns[0].x is [2, 1]; it must be a range", "spawns[0].x"),
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


def test_only_levels_are_saved_and_an_older_file_stays(tmp_path):
    path = tmp_path / "levels.json"
    path.write_text("before")
    rows = [([], "levels is "), (FULL, "levels is "), ([FULL, 3], "levels[1] is "), (None, "levels is ")]
    assert_refused(lambda wrong: levels.save_levels(path, wrong), rows)
    assert path.read_text() == "before"
    for call in (FULL.save, Level.load, levels.load_levels, lambda path: levels.save_levels(path, [FULL])):
        assert_refused(call, [(3, "path is 3; it must be the path of a file")])


# ---- Rewards


def test_rewards_are_read_from_an_option_and_come_back():
    rule = RewardTerms()
    for text in ("goal=2,cube_approach=0.25", " goal=2, cube_approach=0.25", '{"goal": 2, "cube_approach": 0.25}'):
        assert rule.from_plain("reward", rule.from_text(text)) == Rewards(goal=2, cube_approach=0.25)
    rewards = Rewards(progress=1 / 3, idle=-1e-7, exit=5)
    assert rule.from_plain("reward", rule.from_text(rule.to_text(rule.to_plain(rewards)))) == rewards
    for reward in (rewards, None):
        assert EvaluationConfig.from_json(EvaluationConfig(reward=reward).to_json()).reward == reward
    for reward, named in (({"gaol": 2}, "reward.gaol"), ({"goal": "x"}, "reward.goal"), (3, "reward"), ("x", "reward")):
        assert_refused(EvaluationConfig.from_dict, [({"values": {"reward": reward}}, "reward")], argument=named)
