"""The look of doorstep for people: the one table of colours, light and sizes.

Pictures and videos, replays, the viewer and plots take theirs from here. What agents see has its own colours.

Colours are written as they look, "#rrggbb" in sRGB; lengths are metres.
"""

from __future__ import annotations

from typing import Any

Colour = tuple[float, float, float]  # red, green, blue, 0 to 1, as displayed

# By number of the agent: Okabe and Ito's colours, which people with any kind of colour blindness tell apart.
AGENTS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#4d5663")
# By number of the door, for the door and its buttons: apart from each other and from the first agents.
DOORS = ("#a95fd3", "#f5b700", "#16b3a4", "#e377a8", "#8da0cb", "#a6761d", "#99c24d", "#7f7f7f")

GROUND = "#eff1f4"  # around a level
FLOOR = "#fbfcfd"
GRID = "#d9dde3"
BACKGROUND = "#f6f7f9"
WALL = "#e6e9ee"
CUBE = "#dcb98a"
OBJECTS = (*AGENTS, *DOORS, WALL, CUBE)  # all colours of objects
EYE = "#ffffff"
PUPIL = "#1b2430"
OPEN = "#2ea44f"  # the sill of an open door
GOAL = "#2ea44f"
TEXT = "#151a22"
MUTED = "#5b6675"
PANEL = "#ffffff"
BORDER = "#d0d7de"
HELD = "#ff50dc"  # the line from an agent to the cube that it holds

# Light: 1 shows a colour unchanged; the sun, and what comes from the sky and, thrown back, from the floor.
TO_SUN = (0.34, -0.42, 0.84)
SUN = 0.42
SUN_RADIUS = 0.06  # of its disc, as a tangent
SKY = 0.65
BOUNCE = 0.62
CORNER_REACH = 2.2

GRID_PERIOD, GRID_WIDTH = 1.0, 0.035
STRIPE_PERIOD, STRIPE_WIDTH = 0.9, 0.32
EXIT_DEPTH = 3.0  # of the goal where a level has none of its own
GOAL_OPACITY = 0.55
DISC_RADIUS, DISC_RING, DISC_OPACITY = 1.32, 0.14, 0.3
GLOW_RADIUS, GLOW_OPACITY, PRESSED_SHINE = 2.1, 0.75, 0.75
BUTTON_SIDE, BUTTON_HEIGHT, PRESSED_BUTTON_HEIGHT = 1.3, 0.12, 0.03
BEVELS = {"WALL": 0.1, "DOOR": 0.08, "CUBE": 0.18, "BUTTON": 0.05}  # by kind

# Of plots.
SERIES = AGENTS[:6]
LINE_WIDTH = 1.8  # points
FONT_SIZE = 10.0  # points


def rgb(colour: str) -> Colour:
    """The parts of a colour.

    >>> from doorstep.render import look
    >>> look.rgb("#ff0033")
    (1.0, 0.0, 0.2)
    """
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return red, green, blue


def table() -> dict[str, Any]:
    """The table by names in lower case, for pages."""
    return {name.lower(): value for name, value in globals().items() if name.isupper()}
