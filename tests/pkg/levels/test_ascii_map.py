"""Maps made of characters, and the map of a level, which `repr()` shows."""

import random

import pytest
from tests.refuses import assert_refused, refuses

from doorstep.levels import Button, Cube, Door, Goal, Level, Rewards, Room, Spawn, Wall
from doorstep.levels.curated import CELL, curated, sketches
from doorstep.levels.numbers import ends_of

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


def test_a_map_is_a_level():
    level = Level.from_ascii(MAP, name="two", rewards=Rewards.sparse(), episode_length=50, goal_agents="any")
    assert level.doors == (Door(0, 7.5, size_x=5, size_y=1),)
    assert (level.buttons, level.cubes) == ((Button(-3, 5.5, 0), Button(3, 5.5, 0)), (Cube(0, 4.5),))
    assert level.spawns == (Spawn((-3, -1), 1.5), Spawn(3, 1.5))
    assert (level.goal, level.rooms) == (Goal(-4.5, 4.5, 8, 9, "any"), (Room(-1, 8, 0), Room(8, 10)))
    assert (level.name, level.rewards, level.episode_length) == ("two", Rewards.sparse(), 50)
    assert set(level.walls) == {
        *(Wall(0, 9.5, 11, 1), Wall(0, -0.5, 11, 1), Wall(-5, 4.5, 1, 9), Wall(5, 4.5, 1, 9)),
        *(Wall(-3.5, 7.5, 2, 1), Wall(3.5, 7.5, 2, 1)),
    }
    level = Level.from_ascii("##\n1.", cell=(2, 3), origin=(10, 20), height=2, spawn_yaw=(0, 1))
    assert level.walls == (Wall(12, 24.5, 4, 3, height=2),)
    assert level.spawns == (Spawn(11, 21.5, (0, 1)),)
    high = Level.from_ascii(MAP, height=3)
    assert {part.height for part in (*high.walls, *high.doors)} == {3}


def test_letters_number_doors_and_say_which_of_them_close():
    level = Level.from_ascii("AAAA....BBBB\na..........b\n............\n.....1......", closing_doors="B")
    assert [(door.x, door.persistent) for door in level.doors] == [(-4, True), (4, False)]
    assert [button.door for button in level.buttons] == [0, 1]
    level = Level.from_ascii("HH....CC\nh......c\n........\n........\n...1....")
    assert [door.x for door in level.doors] == [3, -3]
    assert [(button.x, button.door) for button in level.buttons] == [(3.5, 0), (-3.5, 1)]


def test_walls_cover_exactly_the_wall_cells_and_ranges_reach_from_cell_to_cell():
    for seed in range(20):
        generator = random.Random(seed)
        rows = [["#"] * 9 for _ in range(9)] + [["."] * 9 for _ in range(6)]
        for _ in range(12):
            rows[generator.randrange(9)][generator.randrange(9)] = "."
        left, right = sorted(generator.choices(range(1, 8), k=2))
        top, bottom = sorted(generator.choices(range(10, 14), k=2))
        for row in range(top, bottom + 1):
            rows[row][left : right + 1] = "1" * (right + 1 - left)
        text = "\n".join("".join(row) for row in rows)
        cell_x, cell_y = generator.uniform(2.1, 4), generator.uniform(2.1, 4)
        origin = (generator.uniform(-9, 9), generator.uniform(-9, 9))
        level = Level.from_ascii(text, cell=(cell_x, cell_y), origin=origin)
        for row, line in enumerate(rows):
            for column, character in enumerate(line):
                x, y = origin[0] + (column + 0.5) * cell_x, origin[1] + (14.5 - row) * cell_y
                covers = [abs(x - one.x) < one.size_x / 2 and abs(y - one.y) < one.size_y / 2 for one in level.walls]
                assert sum(covers) == (character == "#")
        area = sum(wall.size_x * wall.size_y for wall in level.walls)
        assert area == pytest.approx(text.count("#") * cell_x * cell_y)
        (spawn,) = level.spawns
        assert ends_of(spawn.x) == pytest.approx([origin[0] + (column + 0.5) * cell_x for column in (left, right)])
        assert ends_of(spawn.y) == pytest.approx([origin[1] + (14.5 - row) * cell_y for row in (bottom, top)])


def test_what_is_wrong_is_shown_by_line_and_column():
    rows = [
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
    ]
    for old, new, says in rows:
        assert old in MAP
        refuses(f"^{says}", Level.from_ascii, MAP.replace(old, new))


def test_no_line_ends_before_the_wall_on_its_right_and_no_spawn_is_walled_in():
    for row in range(1, 6):
        lines = ["####AA###", "#.......#", "#.a.....#", "#..1.2..#", "#.......#", "#..######"]
        lines[row] = lines[row][:8] if row < 5 else "##"
        says = f"^line {row + 1}, column {len(lines[row]) + 1}: the line ends here, which leaves a hole in the wall"
        refuses(says, Level.from_ascii, "\n".join(lines), cell=2)
        lines[row] = lines[row].ljust(9, ".")
        Level.from_ascii("\n".join(lines), cell=2)  # open on purpose
    for closet in ("###\n#1#\n###", "####\n#11#\n####"):
        says = "^line 2, column 2: there is nothing but walls around spawn 1 .leave a way out with '.', or move the spa"
        refuses(says, Level.from_ascii, closet, cell=3)
        Level.from_ascii(closet.replace("#1", ".1"), cell=3)


def test_lines_may_end_where_nothing_is_behind_them_and_indentation_does_not_count():
    texts = [
        "####AA####\n#........#\n#.a......#\n#........#\n#.....####\n#..1..#\n#.....#\n#######",
        "########AA########\n\n      a\n\n   1     2\n\n##################",  # of spaces
        "....\n..\n....\n..1.\n....",
    ]
    for text in texts:
        width = max(map(len, text.splitlines()))
        filled = "\n".join(line.ljust(width, ".") for line in text.splitlines())
        assert Level.from_ascii(text) == Level.from_ascii(filled)
    plain = Level.from_ascii("####\n\n\n  1")  # empty lines inside are floor
    assert Level.from_ascii("\n\n   ####\n\n\n     1   \n\n") == plain
    assert plain.spawns == (Spawn(0.5, -0.5),)


def test_arguments_are_checked():
    rows = [
        ({"text": ""}, "text is ''; it must be a map of characters"),
        ({"text": "#" * 257}, "text is a map of 257 x 1 characters; it must be at most 256 x 256"),
        ({"cell": 0}, "cell is 0; it must be a number of metres, 0.01 to 1000"),
        ({"cell": (1, 2, 3)}, "cell is (1, 2, 3); it must be a number of metres, or two"),
        ({"origin": 3}, "origin is 3; it must be None or two numbers"),
        ({"closing_doors": "B"}, "closing_doors is 'B'; it must be letters of the map's doors, 'A'"),
        ({"spawn_yaw": 90}, "spawn_yaw is 90; it must be a number of radians"),
        ({"goal_agents": "one"}, "goal_agents is 'one'; it must be one of 'all', 'any'"),
    ]
    assert_refused(lambda **given: Level.from_ascii(**{"text": MAP, **given}), rows)
    says = "the walls of the map are more than 32 rectangles, the most that a"
    assert_refused(Level.from_ascii, [("1\n" + "# # # #\n\n" * 9, says)], argument="text")


# ---- The map of a level


def test_the_map_of_a_level_that_was_drawn_is_the_drawing():
    assert len(sketches()) == 20
    for sketch in sketches()[::3]:
        title, _, text = repr(curated()[sketch["name"]]).partition("\n")
        assert title == f"Level {sketch['name']!r}, a character is {CELL[0]:g} x {CELL[1]:g} m:"
        assert text == sketch["text"].strip()


def test_every_part_has_a_cell_however_thin_and_a_large_level_fits_a_page():
    thin = Level(
        walls=[Wall(x=0, y=7, size_x=8, size_y=0.2), Wall(x=5, y=4, size_x=0.2, size_y=4)],
        doors=[Door(x=-5, y=7, size_x=2, size_y=0.3)],
        buttons=[Button(x=-3, y=4, door=0)],
        spawns=[Spawn(x=0, y=2)],
    )
    text = repr(thin).partition("\n")[2]
    assert set("#Aa1") <= set(text)
    assert len({len(line) for line in text.splitlines()}) == 1
    title, *lines = repr(Level(walls=[Wall(x=0, y=60, size_x=310, size_y=1)], spawns=[Spawn(x=0, y=2)])).splitlines()
    assert title.endswith("a character is 4 x 8 m:")
    assert max(map(len, lines)) == 78
