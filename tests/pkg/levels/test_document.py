"""Levels as dictionaries, JSON and files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.pkg.damaged import damaged

import doorstep
from doorstep import levels
from doorstep.levels import Button, Cube, Door, GeneratedLevel, Goal, Level, Physics, Rewards, Room, Spawn, Wall

FULL = Level(
    walls=[Wall(1, 20, 3, 4, 5, 6), Wall(1.5, 30.25, 3, 4)],
    doors=[Door(10, 20, persistent=False)],
    buttons=[Button(0, 5, 0)],
    cubes=[Cube(7, 7, 0.25)],
    spawns=[Spawn((-3, -1), (2, 3), (-0.1, 0.1)), Spawn(1.5, 3)],
    rooms=[Room(0, 5, 0), Room(5, 9)],
    goal=Goal(0, 1, 2, 3, "any"),
    rewards=Rewards(1, 2, 3, 4, 5, 6, 7),
    physics=Physics(2, (0, 1), 3, 4, (5, 6)),
    episode_length=(7, 8),
    name="full",
    description="All fields, with \u00fc.",
)
GENERATED = GeneratedLevel(room_types=("any", "single_button", "cube_buttons"), goal=Goal(0, 1, 2, 3), name="drawn")
GENERATED = GENERATED.replace(first_room=1, cubes_near_buttons=0.5)


def random_level(generator: random.Random) -> Level:
    def number() -> float:
        return generator.uniform(-9, 9)

    return Level(
        walls=[Wall(number(), 100 + number(), generator.random() + 0.1, 1) for _ in range(generator.randrange(5))],
        cubes=[Cube(10.0 * i, 50, number() / 2) for i in range(generator.randrange(5))],
        spawns=[Spawn((10 * i, 10 * i + generator.random()), 0, number() / 2) for i in range(generator.randint(1, 8))],
        rewards=Rewards(number(), number()),
    )


@pytest.mark.parametrize("level", [FULL, Level(spawns=[Spawn(0, 3)]), GENERATED, levels.reference()])
def test_dictionaries_json_and_files_hold_everything(level: Any, tmp_path: Path) -> None:
    cls, path = type(level), tmp_path / "level.json"
    assert cls.from_dict(level.to_dict()) == level
    assert cls.from_json(level.to_json()) == level
    assert json.loads(level.to_json()) == level.to_dict()
    level.save(path)
    assert cls.load(path) == level
    assert cls.load(str(path)) == level
    assert [entry.name for entry in tmp_path.iterdir()] == ["level.json"]


@pytest.mark.parametrize("seed", range(20))
def test_numbers_survive_to_the_last_bit(seed: int) -> None:
    level = random_level(random.Random(seed))
    assert Level.from_json(level.to_json()) == level


def test_json_has_a_line_for_each_part() -> None:
    assert '\n    {"x": 0.0, "y": 5.0, "door": 0}\n' in FULL.to_json()


def test_absent_fields_have_their_defaults() -> None:
    text = '{"doorstep": "level", "version": 1, "spawns": [{"x": 0, "y": 3}], "physics": {"friction": [0, 1]}}'
    assert Level.from_json(text) == Level(spawns=[Spawn(0, 3)], physics=Physics(friction=(0, 1)))


def changed(**fields: Any) -> dict[str, Any]:
    return {**FULL.to_dict(), **fields}


@pytest.mark.parametrize(
    ("values", "says", "argument"),
    [
        (3, "values is 3; it must be a dictionary of a level", "values"),
        ({}, 'the document is without its kind; it must have "doorstep": "level"', "doorstep"),
        (GENERATED.to_dict(), 'the document is of a \'generated level\'; it must have "doorstep": "level"', "doorstep"),
        (changed(version=2), "version is 2; this release of doorstep reads version 1 .install a later", "version"),
        (changed(version="1"), "version is '1'; it must be an integer", "version"),
        (changed(wals=[]), "'wals' is not a field of Level .did you mean 'walls'", "wals"),
        (changed(zzz=[]), "'zzz' is not a field of Level .the fields are walls, doors, ", "zzz"),
        (changed(walls=3), "walls is 3; it must be a sequence of 0 to 32 walls", "walls"),
        (changed(walls=[3]), r"walls\[0\] is 3; it must be a doorstep.levels.Wall", "walls[0]"),
        (changed(cubes=[{"x": 1, "y": 2}, {"x": 1}]), r"cubes\[1\].y is absent; it must be given", "cubes[1].y"),
        (
            changed(walls=[{"x": 1, "y": 2, "size_x": 3, "sizey": 3}]),
            r"walls\[0\]: 'sizey' is not a field of Wall .did you mean 'size_y'",
            "walls[0].sizey",
        ),
        (
            changed(walls=[{"x": 1, "y": 2, "size_x": 3, "size_y": 0}]),
            r"walls\[0\].size_y is 0; it must be a number of metres, 0.01 to 1000",
            "walls[0].size_y",
        ),
        (
            changed(spawns=[{"x": [2, 1], "y": 2}]),
            r"spawns\[0\].x is \[2, 1\]; it must be a range \(low, high\) with low <= high",
            "spawns[0].x",
        ),
        (changed(physics={"friction": 3}), "physics.friction is 3; it must be a number", "physics.friction"),
        (changed(goal={"min_x": 0}), "goal.max_x is absent", "goal.max_x"),
        (changed(rewards=None), "rewards is None; it must be a doorstep.levels.Rewards", "rewards"),
        ({"doorstep": "level", "version": 1}, "spawns is absent; it must be given", "spawns"),
    ],
)
def test_what_is_no_level_is_refused_by_the_path_of_its_field(values: Any, says: str, argument: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=f"^{says}") as caught:
        Level.from_dict(values)
    assert caught.value.argument == argument


def test_numbers_that_json_cannot_hold_are_refused() -> None:
    with pytest.raises(doorstep.ArgumentError, match=r"^cubes\[0\].x is nan"):
        Level.from_json(FULL.to_json().replace('"x": 7.0', '"x": NaN'))


def test_replace_changes_fields_by_name() -> None:
    assert FULL.replace(name="other").name == "other"
    with pytest.raises(doorstep.ArgumentError, match=r"^'nam' is not a field of Level \(did you mean 'name'"):
        FULL.replace(nam="other")


@pytest.mark.parametrize("seed", range(10))
def test_damaged_documents_are_levels_or_refused(seed: int, tmp_path: Path) -> None:
    generator, path, refused = random.Random(seed), tmp_path / "levels.json", 0
    file = {"doorstep": "levels", "version": 1, "levels": [FULL.to_dict(), GENERATED.to_dict()]}
    for _ in range(100):
        path.write_text(json.dumps(damaged(generator.choice([file, FULL.to_dict(), GENERATED.to_dict()]), generator)))
        try:
            assert levels.load_levels(path)
        except doorstep.ArgumentError as error:
            refused += str(error).startswith(f"{path}: ")
    assert refused > 50


# ---- Files ----


def test_a_missing_file_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Level.load(tmp_path / "none.json")


@pytest.mark.parametrize("path", [None, 3, b"level.json"])
def test_a_path_is_a_text_or_a_path_object(path: Any) -> None:
    for call in (FULL.save, Level.load, levels.load_levels, lambda path: levels.save_levels(path, [FULL])):
        with pytest.raises(doorstep.ArgumentError, match=r"^path is .*; it must be the path of a file"):
            call(path)


def test_several_levels_of_both_kinds_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "levels.json"
    levels.save_levels(path, [FULL, GENERATED, FULL])
    assert levels.load_levels(path) == [FULL, GENERATED, FULL]
    GENERATED.save(path)
    assert levels.load_levels(path) == [GENERATED]
    assert [entry.name for entry in tmp_path.iterdir()] == ["levels.json"]


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], r"the file is \[\]; it must be a dictionary"),
        ({"doorstep": "map", "version": 1}, 'the document is of a \'map\'; it must have "doorstep": "levels"'),
        ({"doorstep": "levels", "version": 3}, "version is 3; this release of doorstep reads version 1"),
        ({"doorstep": "levels", "version": 1}, "levels is None; it must be a list of levels, at least one"),
        (
            {"doorstep": "levels", "version": 1, "levels": [3]},
            r"levels\[0\].doorstep is None; it must be one of 'level', 'generated level'",
        ),
        (
            {"doorstep": "levels", "version": 1, "levels": [FULL.to_dict(), changed(cubes=[{"x": 1, "y": "2"}])]},
            r"levels\[1\].cubes\[0\].y is '2'; it must be a number of metres",
        ),
        ({**FULL.to_dict(), "version": 9}, "version is 9"),
    ],
)
def test_a_file_without_levels_is_refused(document: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "levels.json"
    path.write_text(json.dumps(document))
    with pytest.raises(doorstep.ArgumentError, match=f"levels.json: {says}"):
        levels.load_levels(path)


@pytest.mark.parametrize("wrong", [[], FULL, [FULL, 3], "level", None])
def test_only_levels_are_saved_and_an_older_file_stays(wrong: Any, tmp_path: Path) -> None:
    path = tmp_path / "levels.json"
    path.write_text("before")
    with pytest.raises(doorstep.ArgumentError, match=r"^levels(\[1\])? is "):
        levels.save_levels(path, wrong)
    assert path.read_text() == "before"
