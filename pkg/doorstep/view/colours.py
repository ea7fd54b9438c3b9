"""Colours of the view. Things look as they do to doorstep's cameras; agents differ from each other.

They are written as they are shown, red, green and blue from 0 to 255, and kept as viser takes those of instances and of
line ends: as amounts of light, which a browser turns into sRGB.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def _light(*shown: tuple[int, int, int]) -> NDArray[np.uint8]:
    """uint8 [colours, 3], or [3] of a single one."""
    part = np.asarray(shown if len(shown) > 1 else shown[0], np.float64) / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return np.asarray(np.rint(255 * linear), np.uint8)


CUBE = _light((191, 108, 10))
WALL = _light((130, 134, 140))
DOOR_CLOSED = _light((230, 20, 20))
DOOR_OPEN = _light((52, 210, 123))
BUTTON = _light((230, 230, 20))
BUTTON_PRESSED = _light((52, 210, 123))
EYE = _light((20, 26, 36))
FLOOR = _light((76, 87, 66))
FLOOR_ODD = _light((88, 100, 77))

AGENTS = _light(
    (88, 166, 255),
    (247, 120, 186),
    (126, 231, 135),
    (210, 168, 255),
    (255, 166, 87),
    (118, 227, 234),
    (255, 216, 181),
    (200, 209, 218),
)

CURRENT_WORLD = _light((255, 255, 255))
GRAB_RAY = _light((255, 255, 255))
HOLDING = _light((255, 80, 220))

_HIT_WALL, _HIT_CUBE, _HIT_AGENT, _HIT_DOOR = (127, 211, 255), (255, 201, 138), (255, 255, 255), (255, 120, 110)
LIDAR = _light(_HIT_WALL, _HIT_WALL, _HIT_CUBE, _HIT_WALL, _HIT_AGENT, _HIT_DOOR)
"""By the kind of entity that was hit."""
