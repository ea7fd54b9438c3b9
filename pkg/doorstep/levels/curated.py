"""Levels made by hand, from easy to hard, for two agents: examples, and a curriculum to begin with."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from doorstep._arguments import nearest, shown
from doorstep.levels.level import Level
from doorstep.levels.parts import GoalAgentsName
from doorstep.levels.rules import Rewards

REWARDS = Rewards(goal=1.0)
SPAWN_YAW = (-0.3, 0.3)  # radians
CELL = (1.0, 2.0)  # metres: what is 22 characters wide and 22 lines high is 22 x 44 m


class Sketch(NamedTuple):
    """The arguments of `Level.from_ascii` that differ."""

    name: str
    description: str
    text: str
    closing_doors: str = ""
    goal_agents: GoalAgentsName = "all"
    episode_length: int = 200


def curated() -> dict[str, Level]:
    """Twenty levels for two agents by their names, from easy to hard; in most of them all agents must reach the goal.

    The reference's rewards, and 1 for the goal. Each fits into 22 x 44 m and its description says what it is about.

    >>> from doorstep import levels
    >>> level = levels.curated()["let me in"]
    >>> level.description
    'One agent holds the left door for the other, who opens the right one for both.'
    >>> [door.persistent for door in level.doors]
    [False, True]
    """
    return _Curated((sketch.name, _level_of(sketch)) for sketch in SKETCHES)


class _Curated(dict[str, Level]):
    """Its error names the level that was meant."""

    def __missing__(self, name: object) -> NoReturn:
        raise KeyError(f"{shown(name)} is not a curated level; {nearest(name, self, 'they are')}")


def _level_of(sketch: Sketch) -> Level:
    return Level.from_ascii(**sketch._asdict(), cell=CELL, spawn_yaw=SPAWN_YAW, rewards=REWARDS)


SKETCHES = (
    Sketch(
        "one door",
        "A button opens the door to the goal for good.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
########AAAAAA########
#....................#
#....................#
#.........a..........#
#....................#
#....................#
#...1111......2222...#
#....................#
######################
""",
    ),
    Sketch(
        "two buttons",
        "The door opens for good once both buttons are pressed at the same time.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
########AAAAAA########
#....................#
#..a..............a..#
#....................#
#....................#
#....................#
#...1111......2222...#
#....................#
######################
""",
    ),
    Sketch(
        "far button",
        "The button is in an alcove away from the door.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
##AAAAAA##############
#....................#
#....................#
#............###.....#
#............###.....#
#............###..a..#
#............###.....#
#............#########
#............#########
#.1111..222..#########
#............#########
######################
""",
    ),
    Sketch(
        "two rooms",
        "Two doors one after the other, with a button each.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
##BBBBBB##############
#....................#
#....................#
#................b...#
#....................#
##############AAAAAA##
#....................#
#....................#
#...a................#
#....................#
#...1111......2222...#
#....................#
######################
""",
    ),
    Sketch(
        "slalom",
        "No doors: the way to the goal winds from side to side.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
################.....#
#....................#
#....................#
#.....################
#....................#
#....................#
################.....#
#....................#
#....................#
#.....################
#....................#
#....................#
#...1111......2222...#
#....................#
######################
""",
    ),
    Sketch(
        "three rooms",
        "One button, then two, then two far from each other.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
########CCCCCC########
#....................#
#.c................c.#
#....................#
#....................#
####BBBBBB############
#....................#
#..............b..b..#
#....................#
#....................#
############AAAAAA####
#....................#
#......a.............#
#....................#
#...1111......2222...#
#....................#
######################
""",
    ),
    Sketch(
        "doorkeeper",
        "The door closes when its button is released: one agent holds it, so that the other reaches the goal.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
########AAAAAA########
#....................#
#....................#
#....................#
#....a...............#
#....................#
#...1111......2222...#
#....................#
######################
""",
        closing_doors="A",
        goal_agents="any",
    ),
    Sketch(
        "let me in",
        "One agent holds the left door for the other, who opens the right one for both.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
#....................#
#.........b..........#
#....................#
###AAAAAA####BBBBBB###
#....................#
#....................#
#...............a....#
#....................#
#...1111......2222...#
#....................#
######################
""",
        closing_doors="A",
    ),
    Sketch(
        "one cube",
        "The door closes when its button is released: a cube can hold it for both.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
########AAAAAA########
#....................#
#....................#
#....a...............#
#....................#
#..............O.....#
#....................#
#....................#
#...1111......2222...#
#....................#
######################
""",
        closing_doors="A",
        episode_length=400,
    ),
    Sketch(
        "two cubes",
        "Two buttons hold the door: a cube for each.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
########AAAAAA########
#....................#
#....................#
#...a............a...#
#....................#
#....................#
#......O......O......#
#....................#
#....................#
#...1111......2222...#
#....................#
######################
""",
        closing_doors="A",
        episode_length=400,
    ),
    Sketch(
        "blocked door",
        "Three cubes stand before the door: they must be moved out of the way.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
########AAAAAA########
#....................#
#.......O..O..O......#
#....................#
#....................#
#..a..............a..#
#....................#
#....................#
#...1111......2222...#
#....................#
######################
""",
        episode_length=400,
    ),
    Sketch(
        "apart",
        "A wall keeps the agents apart: each opens the door of the other.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
##AAAAAA######BBBBBB##
#.........##.........#
#.........##.........#
#....b....##....a....#
#.........##.........#
#.........##.........#
#...111...##...222...#
#.........##.........#
######################
""",
    ),
    Sketch(
        "relay",
        "A wall keeps the agents apart: in turns, each opens the next door of the other.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
#....................#
#....d...............#
#....................#
##CCCCCC######DDDDDD##
#.........##.........#
#....b....##....c....#
#.........##.........#
##AAAAAA######BBBBBB##
#.........##.........#
#.........##....a....#
#.........##.........#
#...111...##...222...#
#.........##.........#
######################
""",
        episode_length=300,
    ),
    Sketch(
        "side chambers",
        "The buttons of the last door are in two chambers, which have doors of their own.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
########CCCCCC########
#.....#........#.....#
#.....#........#.....#
#..c..A........B..c..#
#.....A........B.....#
#.....A........B.....#
#######........#######
#....................#
#..a..............b..#
#....................#
#...1111......2222...#
#....................#
######################
""",
        episode_length=300,
    ),
    Sketch(
        "spiral",
        "The button is halfway along a spiral, the goal in its middle.",
        """
######################
#....................#
#.................a..#
#....#############...#
#....#...........#...#
#....#...........#...#
#....#..XXXXXXX..#...#
#....#..XXXXXXX..#...#
#....#...........#...#
#....#AAAA########...#
#....#...............#
#....#...............#
#....#...............#
#....#################
#....................#
#....................#
#.1111..2222.........#
#....................#
######################
""",
        episode_length=300,
    ),
    Sketch(
        "let me in twice",
        "Two rooms, in each of which one agent holds a door for the other, who opens another one for both.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
#....................#
#.........d..........#
#....................#
###CCCCCC####DDDDDD###
#....................#
#..c.................#
#....................#
#................b...#
#....................#
###AAAAAA####BBBBBB###
#....................#
#...............a....#
#....................#
#...1111......2222...#
#....................#
######################
""",
        closing_doors="AC",
        episode_length=400,
    ),
    Sketch(
        "carry",
        "The cube that holds the second door is in the first room.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
########BBBBBB########
#....................#
#....................#
#................b...#
#....................#
#....................#
########AAAAAA########
#....................#
#..a..............a..#
#....................#
#.........O..........#
#....................#
#...1111......2222...#
#....................#
######################
""",
        closing_doors="B",
        episode_length=600,
    ),
    Sketch(
        "cube in a cell",
        "The cube that holds the last door is locked up.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
##BBBBBB##############
#.........############
#.........############
#.........#..........#
#..b......A..........#
#.........A....O.....#
#.........A..........#
#.........#..........#
#.........############
#.....a...############
#.........############
#..2222...############
#.........############
#..1111...############
#.........############
######################
""",
        closing_doors="B",
        episode_length=400,
    ),
    Sketch(
        "four chambers",
        "A ring of four chambers: two of the doors need an agent in each of two of them.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
##DDDDDD##############
#.........#..........#
#.........#..........#
#...d.....C......d...#
#.........C..........#
#.........C..........#
#.........#........c.#
############BBBBBB####
#.........#..........#
#...c.....A..........#
#.........A.....b....#
#.......a.A..........#
#.........#..........#
#...111.......222....#
#.........#..........#
######################
""",
    ),
    Sketch(
        "everything",
        "Apart, then a cube to carry, then a door to hold.",
        """
######################
#XXXXXXXXXXXXXXXXXXXX#
#XXXXXXXXXXXXXXXXXXXX#
#.........e..........#
####DDDDDD##EEEEEE####
#....................#
#................d...#
#....................#
########CCCCCC########
#....................#
#....................#
#..c..........O......#
#....................#
#....................#
##AAAAAA######BBBBBB##
#.........##.........#
#....b....##....a....#
#.........##.........#
#...111...##...222...#
#.........##.........#
######################
""",
        closing_doors="CD",
        episode_length=400,
    ),
)
