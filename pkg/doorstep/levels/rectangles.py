"""Cells of a grid as few rectangles: a map's walls fit a level's capacity only if they are merged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Cell: TypeAlias = "tuple[int, int]"  # row, column


class Rectangle(NamedTuple):
    """Rows and columns from the first up to, not including, the last."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int

    @property
    def area(self) -> int:
        return (self.last_row - self.first_row) * (self.last_column - self.first_column)

    @property
    def first_cell(self) -> Cell:
        return self.first_row, self.first_column

    def cells(self) -> set[Cell]:
        rows, columns = range(self.first_row, self.last_row), range(self.first_column, self.last_column)
        return {(row, column) for row in rows for column in columns}


def merge(cells: Collection[Cell]) -> Iterator[Rectangle]:
    """Rectangles that cover exactly these cells, each once; the largest that is left comes first, again and again."""
    if not cells:
        return
    left = np.zeros(np.max(list(cells), axis=0) + 1, np.bool_)
    left[tuple(zip(*cells, strict=True))] = True
    while left.any():
        largest = _largest(left)
        left[largest.first_row : largest.last_row, largest.first_column : largest.last_column] = False
        yield largest


def bounds(cells: Iterable[Cell]) -> Rectangle:
    """The smallest rectangle around cells."""
    rows, columns = zip(*cells, strict=True)
    return Rectangle(min(rows), min(columns), max(rows) + 1, max(columns) + 1)


def _largest(cells: NDArray[np.bool_]) -> Rectangle:
    """Of those that are equally large the first one from the top left: a map always has the same walls."""
    runs = _runs(cells)
    largest = Rectangle(0, 0, 0, 0)
    for first_row in range(len(runs)):
        widths = runs[first_row]  # from each column, of the rows from the first one to the last one
        for last_row in range(first_row + 1, len(runs) + 1):
            widths = np.minimum(widths, runs[last_row - 1])
            column = int(widths.argmax())
            width = int(widths[column])
            if width == 0:
                break
            if width * (last_row - first_row) > largest.area:
                largest = Rectangle(first_row, column, last_row, column + width)
    return largest


def _runs(cells: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many cells follow each other to the right, from each cell on."""
    runs = np.zeros((cells.shape[0], cells.shape[1] + 1), np.int64)
    for column in reversed(range(cells.shape[1])):
        runs[:, column] = np.where(cells[:, column], runs[:, column + 1] + 1, 0)
    return runs[:, :-1]
