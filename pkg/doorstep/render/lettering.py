"""Writes text into pictures, in letters of strokes: smooth at any size, and without a font of the system.

A letter is given by the points of a grid of 5 x 7, and 2 rows below the line, that its strokes go through: neighbouring
points are joined.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from doorstep.render import look

Image = NDArray[np.uint8]  # [H, W, 3]

_COLUMNS, _ROWS = 5, 9
_ADVANCE = 6.4  # from letter to letter, in units of the grid
_HALF_STROKE = 0.42
_PADDING = 0.7  # around a label, in parts of its height
_PANEL_OPACITY = 0.82

# Columns from left to right, as numbers whose lowest bit is the top row.
_LETTERS = {
    " ": (0, 0, 0, 0, 0), "!": (0, 0, 95, 0, 0), "'": (0, 0, 3, 0, 0), "(": (0, 28, 34, 65, 0), ")": (0, 65, 34, 28, 0),
    "%": (35, 19, 8, 100, 98), "+": (8, 8, 62, 8, 8), ",": (0, 128, 96, 0, 0), "-": (8, 8, 8, 8, 8),
    ".": (0, 0, 64, 0, 0), "/": (64, 32, 28, 2, 1), ":": (0, 0, 36, 0, 0), "=": (20, 20, 20, 20, 20),
    "_": (64, 64, 64, 64, 64), "?": (2, 1, 81, 9, 6), "<": (0, 8, 20, 34, 0), ">": (0, 34, 20, 8, 0),
    "0": (62, 65, 73, 65, 62), "1": (0, 66, 127, 64, 0), "2": (98, 81, 73, 73, 70), "3": (34, 65, 73, 73, 54),
    "4": (24, 20, 18, 127, 16), "5": (39, 69, 69, 69, 57), "6": (60, 74, 73, 73, 48), "7": (1, 113, 9, 5, 3),
    "8": (54, 73, 73, 73, 54), "9": (6, 73, 73, 41, 30),
    "A": (124, 18, 17, 18, 124), "B": (127, 73, 73, 73, 54), "C": (62, 65, 65, 65, 34), "D": (127, 65, 65, 65, 62),
    "E": (127, 73, 73, 73, 65), "F": (127, 9, 9, 9, 1), "G": (62, 65, 73, 73, 58), "H": (127, 8, 8, 8, 127),
    "I": (0, 65, 127, 65, 0), "J": (32, 64, 65, 63, 1), "K": (127, 8, 20, 34, 65), "L": (127, 64, 64, 64, 64),
    "M": (127, 2, 12, 2, 127), "N": (127, 4, 8, 16, 127), "O": (62, 65, 65, 65, 62), "P": (127, 9, 9, 9, 6),
    "Q": (62, 65, 81, 33, 94), "R": (127, 9, 25, 41, 70), "S": (38, 73, 73, 73, 50), "T": (1, 1, 127, 1, 1),
    "U": (63, 64, 64, 64, 63), "V": (15, 48, 64, 48, 15), "W": (63, 64, 56, 64, 63), "X": (99, 20, 8, 20, 99),
    "Y": (7, 8, 112, 8, 7), "Z": (97, 81, 73, 69, 67),
    "a": (32, 84, 84, 84, 120), "b": (127, 72, 68, 68, 56), "c": (56, 68, 68, 68, 40), "d": (56, 68, 68, 72, 127),
    "e": (56, 84, 84, 84, 88), "f": (8, 126, 9, 1, 2), "g": (24, 292, 292, 292, 248), "h": (127, 8, 4, 4, 120),
    "i": (0, 68, 125, 64, 0), "j": (128, 256, 256, 253, 0), "k": (127, 16, 40, 68, 0), "l": (0, 65, 127, 64, 0),
    "m": (124, 4, 120, 4, 120), "n": (124, 8, 4, 4, 120), "o": (56, 68, 68, 68, 56), "p": (508, 36, 68, 68, 56),
    "q": (56, 68, 68, 36, 508), "r": (124, 8, 4, 4, 8), "s": (72, 84, 84, 84, 36), "t": (4, 63, 68, 64, 32),
    "u": (60, 64, 64, 32, 124), "v": (28, 32, 64, 32, 28), "w": (60, 64, 48, 64, 60), "x": (68, 40, 16, 40, 68),
    "y": (28, 288, 288, 288, 252), "z": (68, 100, 84, 76, 68),
}  # fmt: skip


def text_width(text: str, size: float) -> float:
    """Pixels that a text takes whose capitals are `size` pixels high."""
    return len(text) * _ADVANCE * size / 6


def put_label(image: Image, text: str, size: float, left: float, top: float) -> None:
    """Writes a text on a light panel whose corner is at (left, top), into an image. size: of capitals, pixels."""
    padding = _PADDING * size
    right, bottom = left + text_width(text, size) + 2 * padding, top + size + 2 * padding
    panel = image[round(top) : round(bottom), round(left) : round(right)]
    panel[:] = np.rint(panel + (np.array(look.rgb(look.PANEL)) * 255 - panel) * _PANEL_OPACITY)
    put_text(image, text, size, left + padding, top + padding)


def put_text(image: Image, text: str, size: float, left: float, top: float, colour: str = look.TEXT) -> None:
    """Writes a text into an image; letters that the font lacks are written as "?". size: of capitals, pixels."""
    scale, ink = size / 6, np.array(look.rgb(colour)) * 255
    x, y = round(left), round(top)
    for number, letter in enumerate(text):
        first = x + number * _ADVANCE * scale
        mask = _mask(letter if letter in _LETTERS else "?", scale, round(first % 1, 1))
        column, row = int(first) - 2, y - 2
        area = image[max(row, 0) : row + mask.shape[0], max(column, 0) : column + mask.shape[1]]
        cut = mask[max(-row, 0) :, max(-column, 0) :][: area.shape[0], : area.shape[1], None]
        area[:] = np.rint(area + (ink - area) * cut)


@functools.lru_cache(maxsize=512)
def _mask(letter: str, scale: float, shift: float) -> NDArray[np.float64]:
    """How much of each pixel a letter covers; it begins 2 pixels from the left and the top, and `shift` further."""
    strokes = _strokes(letter)
    height, width = round((_ROWS + 1) * scale) + 4, round(_COLUMNS * scale) + 6
    rows, columns = np.mgrid[0:height, 0:width]
    points = np.stack([columns + 0.5 - 2 - shift, rows + 0.5 - 2], axis=-1) / scale
    if not len(strokes):
        return np.zeros((height, width))
    starts, ends = strokes[:, 0], strokes[:, 1]
    along = ends - starts
    share = ((points[:, :, None] - starts) * along).sum(axis=-1) / np.maximum((along**2).sum(axis=-1), 1e-9)
    nearest = starts + share.clip(0, 1)[..., None] * along
    distance = np.linalg.norm(points[:, :, None] - nearest, axis=-1).min(axis=-1)
    covered: NDArray[np.float64] = (0.5 + (_HALF_STROKE - distance) * scale).clip(0, 1)
    return covered


@functools.cache
def _strokes(letter: str) -> NDArray[np.float64]:
    """Lines between neighbouring points, [count, 2, 2]: (x, y) in units of the grid; y is downwards. Points at the
    ends of a corner are not joined across it."""
    points = {(x, y) for x, column in enumerate(_LETTERS[letter]) for y in range(_ROWS) if column >> y & 1}
    strokes = [(point, point) for point in points]
    for x, y in points:
        strokes += [((x, y), to) for to in ((x + 1, y), (x, y + 1)) if to in points]
        for to, corners in (((x + 1, y + 1), {(x + 1, y), (x, y + 1)}), ((x - 1, y + 1), {(x - 1, y), (x, y + 1)})):
            if to in points and not corners & points:
                strokes.append(((x, y), to))
    return np.array(strokes, np.float64).reshape(-1, 2, 2) + np.array([0.5, 0.0])
