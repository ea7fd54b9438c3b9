"""Pictures of one size in rows, seen whole or through a window, and a window that glides over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from doorstep.recording.panel import Image
from doorstep.render import look

_GAP = 4  # pixels between pictures
_GAP_COLOUR = tuple(round(255 * part) for part in look.rgb(look.BORDER))

_CLOSE_SECONDS, _WAY_SECONDS, _END_SECONDS = 1.0, 6.0, 1.5  # of a glide: close at a world, under way, at its end


@dataclass(frozen=True)
class Window:
    """A part of a grid, of the grid's shape. zoom: pixels that show one pixel of the grid; 1: all of the grid."""

    left: float = 0.0
    top: float = 0.0
    zoom: float = 1.0


WHOLE = Window()


@dataclass(frozen=True)
class Grid:
    """Where pictures of one size lie, row by row; pixels."""

    count: int
    columns: int
    width: int  # of a picture
    height: int

    @staticmethod
    def of(count: int, width: int, height: int, columns: int | None = None) -> Grid:
        """A grid of so many pictures; without `columns` it is about as wide as high."""
        return Grid(count, columns or min(count, math.ceil(math.sqrt(count * height / width))), width, height)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the whole."""
        rows = math.ceil(self.count / self.columns)
        return self.columns * (self.width + _GAP) - _GAP, rows * (self.height + _GAP) - _GAP

    def draw(self, picture: Callable[[int, int, int], Image], window: Window = WHOLE) -> Image:
        """What is seen through a window, of the size of the whole.

        picture: called for those that are seen, with number, width and height; gives their images.
        """
        width, height = self.size
        seen: Image = np.full((height, width, 3), _GAP_COLOUR, np.uint8)
        for number in range(self.count):
            row, column = divmod(number, self.columns)
            left, right = _edges(column, self.width, window.left, window.zoom)
            top, bottom = _edges(row, self.height, window.top, window.zoom)
            area = seen[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
            if area.size:
                image = picture(number, right - left, bottom - top)[max(-top, 0) :, max(-left, 0) :]
                area[:] = image[: area.shape[0], : area.shape[1]]
        return seen


def _edges(number: int, length: int, begin: float, zoom: float) -> tuple[int, int]:
    """Where a row or a column begins and ends in a window."""
    first = number * (length + _GAP) - begin
    return round(first * zoom), round((first + length) * zoom)


def side_by_side(images: Sequence[Image], columns: int | None = None) -> Image:
    """Images of one size in rows; without `columns` the whole is about as wide as high."""
    height, width = images[0].shape[:2]
    return Grid.of(len(images), width, height, columns).draw(lambda number, _width, _height: images[number])


class Glide:
    """A window that begins close at the first picture of a grid and moves away until it shows the whole grid.

    Attributes:
        frames: that it takes.
    """

    def __init__(self, grid: Grid, fps: float) -> None:
        self.frames = round((_CLOSE_SECONDS + _WAY_SECONDS + _END_SECONDS) * fps)
        self._fps = fps
        self._size, self._first = np.array(grid.size), np.array((grid.width, grid.height))

    def window(self, frame: int) -> Window:
        """Of a frame; those after the last one show the whole."""
        share = min(max((frame / self._fps - _CLOSE_SECONDS) / _WAY_SECONDS, 0.0), 1.0)
        share = share * share * (3 - 2 * share)  # begins and ends slowly
        zoom = float((self._size / self._first).min()) ** (1 - share)
        middle = (self._first + share * (self._size - self._first)) / 2
        left, top = np.clip(middle - self._size / zoom / 2, 0, self._size * (1 - 1 / zoom)).tolist()
        return Window(left, top, zoom)
