"""Maps made of characters."""

from __future__ import annotations

import random
from typing import Any

import pytest

import doorstep
from doorstep.levels import Button, Cube, Door, Goal, Level, Rewards, Room, Spawn, Wall

MAP = """
    ###########
    #XXXXXXXXX#
    ###AAAAA###
    #.........#
    #.a.....a.#
    #....O....#
    #.........#
    #.........#
    #.111...2.#
    #.........#
    ###########
"""


def test_a_map_is_a_level() -> None:
    level = Level.from_ascii(MAP, name="two", rewards=Rewards.sparse(), episode_length=50, goal_agents="any")
    assert level.doors == (Door(0, 7.5, size_x=5, size_y=1),)
    assert level.buttons == (Button(-3, 5.5, 0), Button(3, 5.5, 0))
    assert level.cubes == (Cube(0, 4.5),)
    assert level.spawns == (Spawn((-3, -1), 1.5), Spawn(3, 1.5))
    assert level.goal == Goal(-4.5, 4.5, 8, 9, "any")
    assert level.rooms == (Room(-1, 8, 0), Room(8, 10))
    assert (level.name, level.rewards, level.episode_length) == ("two", Rewards.sparse(), 50)
    assert set(level.walls) == {
        Wall(0, 9.5, 11, 1),
        Wall(0, -0.5, 11, 1),
        Wall(-5, 4.5, 1, 9),
        Wall(5, 4.5, 1, 9),
        Wall(-3.5, 7.5, 2, 1),
        Wall(3.5, 7.5, 2, 1),
    }


def test_cells_have_a_width_and_a_height_and_maps_an_origin() -> None:
    level = Level.from_ascii("##\n1.", cell=(2, 3), origin=(10, 20), height=2)
    assert level.walls == (Wall(12, 24.5, 4, 3, height=2),)
    assert level.spawns == (Spawn(11, 21.5),)
    assert Level.from_ascii("#\n.\n.\n1\n.", cell=2).walls == (Wall(0, 7, 2, 2),)


def test_letters_say_which_doors_close() -> None:
    level = Level.from_ascii("AAAA....BBBB\na..........b\n............\n.....1......", closing_doors="B")
    assert [door.persistent for door in level.doors] == [True, False]
    assert [button.door for button in level.buttons] == [0, 1]


def test_doors_are_numbered_in_the_order_of_their_letters() -> None:
    level = Level.from_ascii("HH....CC\nh......c\n........\n........\n...1....")
    assert [door.x for door in level.doors] == [3, -3]
    assert [(button.x, button.door) for button in level.buttons] == [(3.5, 0), (-3.5, 1)]


def test_indentation_and_empty_lines_around_do_not_count_but_inside_they_are_floor() -> None:
    plain = Level.from_ascii("####\n\n\n  1")
    assert Level.from_ascii("\n\n   ####\n\n\n     1   \n\n") == plain
    assert plain.spawns == (Spawn(0.5, -0.5),)


@pytest.mark.parametrize("seed", range(20))
def test_walls_cover_exactly_the_wall_cells(seed: int) -> None:
    generator = random.Random(seed)
    rows = [["#"] * 9 for _ in range(9)]
    for _ in range(12):
        rows[generator.randrange(9)][generator.randrange(9)] = "."
    text = "\n".join("".join(row) for row in rows) + "\n.........\n....1....\n........."
    cell_x, cell_y = generator.uniform(2.1, 4), generator.uniform(2.1, 4)
    level = Level.from_ascii(text, cell=(cell_x, cell_y))
    for row, line in enumerate(text.splitlines()):
        for column, character in enumerate(line):
            x, y = (column - 4) * cell_x, (12 - row - 1.5) * cell_y
            covers = [abs(x - wall.x) < wall.size_x / 2 and abs(y - wall.y) < wall.size_y / 2 for wall in level.walls]
            assert sum(covers) == (character == "#")
    area = sum(wall.size_x * wall.size_y for wall in level.walls)
    assert area == pytest.approx(text.count("#") * cell_x * cell_y)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("a.....a", "a..%..a", "line 6, column 10: '%' has no meaning; the characters are '#' wall,"),
        ("a.....a", "a.....b", "line 6, column 13: 'b' is a button of door B, which the map does not have"),
        ("AAAAA", "AA.AA", "line 4, column 10: door A has a gap here; its cells 'A' must form one rectangle"),
        ("XXXXXXXXX", "X.XXXXXXX", "line 3, column 7: the goal has a gap here"),
        (".111...2.", ".1.1...2.", "line 10, column 8: spawn 1 has a gap here"),
        (".111...2.", ".111...3.", "line 10, column 13: there is a spawn '3', but none '2'"),
        (".111...2.", "1.....2..", r"line 10, column 6: spawns\[0\] overlaps walls\[2\] \(line 3, column 5\) by 0.5 m"),
        (".111...2.", "111....2.", r"line 10, column 6: spawns\[0\] can overlap walls\[2\] \(line 3, column 5\)"),
        ("#....O....#", "#O........#", r"line 7, column 6: cubes\[0\] overlaps walls\[2\] \(line 3, column 5\) by 1 m"),
        ("a.....a", ".......", r"line 4, column 8: doors\[0\] has no button; it would never open"),
        (".111...2.", ".........", "spawns is"),
    ],
)
def test_what_is_wrong_is_shown_by_line_and_column(old: str, new: str, says: str) -> None:
    assert old in MAP
    with pytest.raises(doorstep.ArgumentError, match=f"^{says}"):
        Level.from_ascii(MAP.replace(old, new))


@pytest.mark.parametrize("row", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("bottom", ["#########", "#..######"], ids=["closed", "open at the bottom"])
def test_no_line_ends_before_the_wall_on_its_right(row: int, bottom: str) -> None:
    lines = ["####AA###", "#.......#", "#.a.....#", "#..1.2..#", "#.......#", bottom]
    lines[row] = lines[row][:8] if row < 5 else "##"
    says = f"^line {row + 1}, column {len(lines[row]) + 1}: the line ends here, which leaves a hole in the wall"
    with pytest.raises(doorstep.ArgumentError, match=says):
        Level.from_ascii("\n".join(lines), cell=2)
    lines[row] = lines[row].ljust(9, ".")
    Level.from_ascii("\n".join(lines), cell=2)  # open on purpose


@pytest.mark.parametrize(
    "text",
    [
        "####AA####\n#........#\n#.a......#\n#........#\n#.....####\n#..1..#\n#.....#\n#######",
        "########AA########\n\n      a\n\n   1     2\n\n##################",
        "....\n..\n....\n..1.\n....",
    ],
    ids=["outside of the rooms", "of spaces", "without walls"],
)
def test_lines_may_end_where_nothing_is_behind_them(text: str) -> None:
    width = max(map(len, text.splitlines()))
    filled = "\n".join(line.ljust(width, ".") for line in text.splitlines())
    assert Level.from_ascii(text) == Level.from_ascii(filled)


@pytest.mark.parametrize("closet", ["###\n#1#\n###", "####\n#11#\n####"])
def test_no_spawn_is_walled_in(closet: str) -> None:
    says = "^line 2, column 2: there is nothing but walls around spawn 1 .leave a way out with '.', or move the spawn.$"
    with pytest.raises(doorstep.ArgumentError, match=says):
        Level.from_ascii(closet, cell=3)
    Level.from_ascii(closet.replace("#1", ".1"), cell=3)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"text": ""}, "text is ''; it must be a map of characters"),
        ({"text": 3}, "text is 3; it must be a map"),
        ({"text": "#" * 257}, "text is a map of 257 x 1 characters; it must be at most 256 x 256"),
        ({"text": "1\n" + "# # # #\n\n" * 9}, "the walls of the map are more than 32 rectangles, the most that a"),
        ({"text": MAP, "cell": 0}, "cell is 0; it must be a number of metres, 0.01 to 1000"),
        ({"text": MAP, "cell": (1, -1)}, r"cell\[1\] is -1; it must be a number of metres, 0.01 to 1000"),
        ({"text": MAP, "cell": (1, 2, 3)}, r"cell is \(1, 2, 3\); it must be a number of metres, or two"),
        ({"text": MAP, "origin": 3}, "origin is 3; it must be None or two numbers"),
        ({"text": MAP, "closing_doors": "B"}, "closing_doors is 'B'; it must be letters of the map's doors, 'A'"),
        ({"text": MAP, "height": -1}, "height is -1; it must be a number of metres, 0.01 to 1000"),
        ({"text": MAP, "spawn_yaw": 90}, "spawn_yaw is 90; it must be a number of radians"),
        ({"text": MAP, "goal_agents": "one"}, "goal_agents is 'one'; it must be one of 'all', 'any'"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(doorstep.ArgumentError, match=f"^{says}"):
        Level.from_ascii(**arguments)
