"""Shortest paths on a grid: A* over the eight neighbours of a cell, without cutting corners."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

_DIAGONAL = math.sqrt(2)


def shortest_path(blocked: Sequence[int], width: int, start: int, goal: int, extra: float = math.inf) -> list[int]:
    """The cells of a shortest path from start to goal, both included; empty if there is none.

    >>> from doorstep.planner.paths import shortest_path
    >>> shortest_path(bytes([0, 1, 0,
    ...                      0, 1, 0,
    ...                      0, 0, 0]), 3, 0, 2)
    [0, 3, 6, 7, 8, 5, 2]

    Args:
        blocked: cells row by row: 0 is free, 1 can never be entered, 2 only at a price.
        width: cells in a row.
        start: the index of a cell; it counts as free.
        goal: the index of a cell.
        extra: the price of entering a cell that is 2, in sides of a cell.
    """
    height = len(blocked) // width
    goal_row, goal_column = divmod(goal, width)
    costs, parents, done = {start: 0.0}, {start: start}, set()
    queue = [(0.0, start)]
    while queue:
        cell = heapq.heappop(queue)[1]
        if cell == goal:
            return _traced(parents, goal)
        if cell in done:
            continue
        done.add(cell)
        row, column = divmod(cell, width)
        cost = costs[cell]
        for neighbour, length in _neighbours(blocked, width, height, row, column, extra):
            if neighbour in done:
                continue
            reached = cost + length
            if reached < costs.get(neighbour, math.inf):
                costs[neighbour], parents[neighbour] = reached, cell
                next_row, next_column = divmod(neighbour, width)
                rows, columns = abs(next_row - goal_row), abs(next_column - goal_column)
                ahead = rows + columns - (2 - _DIAGONAL) * min(rows, columns)
                heapq.heappush(queue, (reached + ahead, neighbour))
    return []


def _neighbours(
    blocked: Sequence[int], width: int, height: int, row: int, column: int, extra: float
) -> list[tuple[int, float]]:
    """The cells that can be entered from one, with the length of the way there."""
    prices = (0.0, math.inf, extra)
    cell = row * width + column
    found = []
    left, right = column > 0, column < width - 1
    below, above = row > 0, row < height - 1
    west = prices[blocked[cell - 1]] if left else math.inf
    east = prices[blocked[cell + 1]] if right else math.inf
    south = prices[blocked[cell - width]] if below else math.inf
    north = prices[blocked[cell + width]] if above else math.inf
    if west < math.inf:
        found.append((cell - 1, 1 + west))
    if east < math.inf:
        found.append((cell + 1, 1 + east))
    for step, straight in ((-width, south), (width, north)):
        if straight < math.inf:
            found.append((cell + step, 1 + straight))
            if west < math.inf and blocked[cell + step - 1] != 1:
                found.append((cell + step - 1, _DIAGONAL + prices[blocked[cell + step - 1]]))
            if east < math.inf and blocked[cell + step + 1] != 1:
                found.append((cell + step + 1, _DIAGONAL + prices[blocked[cell + step + 1]]))
    return [(neighbour, length) for neighbour, length in found if length < math.inf]


def _traced(parents: dict[int, int], goal: int) -> list[int]:
    path = [goal]
    while parents[path[-1]] != path[-1]:
        path.append(parents[path[-1]])
    return path[::-1]
