"""Cells of a grid as few rectangles: a map's walls fit a level's capacity only if they are merged."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple, TypeAlias

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


def merge(cells: Set[Cell]) -> list[Rectangle]:
    """Rectangles that cover exactly these cells, each once; the largest that is left comes first, again and again."""
    left, rectangles = set(cells), []
    while left:
        rectangles.append(_largest(left))
        left -= rectangles[-1].cells()
    return rectangles


def bounds(cells: Iterable[Cell]) -> Rectangle:
    """The smallest rectangle around cells."""
    rows, columns = zip(*cells, strict=True)
    return Rectangle(min(rows), min(columns), max(rows) + 1, max(columns) + 1)


def _largest(cells: set[Cell]) -> Rectangle:
    """Of those that are equally large the first in reading order, so that a map always has the same walls."""
    return max((_largest_from(cell, cells) for cell in sorted(cells)), key=lambda rectangle: rectangle.area)


def _largest_from(cell: Cell, cells: set[Cell]) -> Rectangle:
    """The largest with its upper left corner in a cell: rows are added while they narrow it."""
    row, column = cell
    best, width, last = Rectangle(row, column, row, column), len(cells), row
    while width:
        width = _run(last, column, width, cells)
        last += 1
        best = max(best, Rectangle(row, column, last, column + width), key=lambda rectangle: rectangle.area)
    return best


def _run(row: int, column: int, limit: int, cells: set[Cell]) -> int:
    """How many cells follow each other in a row, up to a limit."""
    length = 0
    while length < limit and (row, column + length) in cells:
        length += 1
    return length
