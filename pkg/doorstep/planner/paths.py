"""Ways on a grid: which cells can be reached, and shortest paths.

A grid is bytes, row by row: 0 is a free cell, 1 one that can never be entered, 2 one that is entered at a price. The
cells of its border are 1, so that no neighbour of a cell that is entered is outside. Agents go to all eight neighbours
of a cell, and do not cut corners.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush

_DIAGONAL = math.sqrt(2)
_MORE = _DIAGONAL - 1  # what a diagonal step is longer than a straight one


def reachable_cells(grid: bytes, width: int, start: int) -> list[int]:
    """The cells that can be reached from one, as a bit mask for each row: bit c is column c.

    Whole rows are filled at once, by shifts of integers: thousands of cells take well below a millisecond.

    >>> from doorstep.planner.paths import reachable_cells
    >>> [f"{row:b}" for row in reachable_cells(bytes([1, 1, 1, 1, 1,
    ...                                               1, 0, 1, 0, 1,
    ...                                               1, 0, 1, 0, 1,
    ...                                               1, 1, 1, 1, 1]), 5, 6)]
    ['0', '10', '10', '0']
    """
    height = len(grid) // width
    free = [_bits(grid[row * width : (row + 1) * width]) for row in range(height)]
    found = [0] * height
    first, column = divmod(start, width)
    found[first] = _filled(1 << column, free[first] | 1 << column)
    pending = [first]
    while pending:
        row = pending.pop()
        for neighbour in (row - 1, row + 1):
            if 0 <= neighbour < height:
                seeds = found[row] & free[neighbour] & ~found[neighbour]
                if seeds:
                    found[neighbour] |= _filled(seeds, free[neighbour])
                    pending.append(neighbour)
    return found


def _bits(row: bytes) -> int:
    """A bit mask of the cells of a row that can be entered."""
    return int(row[::-1].translate(_DIGITS), 2)


_DIGITS = bytes.maketrans(bytes([0, 1, 2]), b"101")


def _filled(seeds: int, free: int) -> int:
    """The runs of free bits that hold a seed: the next 1, 2, 4, ... bits on either side follow in turn."""
    up, up_free, down, down_free, shift = seeds, free, seeds, free, 1
    while shift < free.bit_length():
        up |= up_free & up << shift
        down |= down_free & down >> shift
        up_free &= up_free << shift
        down_free &= down_free >> shift
        shift *= 2
    return up | down


def shortest_path(
    grid: bytes, width: int, start: int, goal: int, *, price: float = 0.0, greed: float = 1.0
) -> list[int]:
    """The cells of a shortest path, with start and goal; empty if there is none (A*).

    >>> from doorstep.planner.paths import shortest_path
    >>> shortest_path(bytes([1, 1, 1, 1, 1,
    ...                      1, 0, 1, 0, 1,
    ...                      1, 0, 0, 0, 1,
    ...                      1, 1, 1, 1, 1]), 5, 6, 8)
    [6, 11, 12, 13, 8]

    Args:
        grid: as in this module.
        width: cells in a row.
        start: the index of a cell that is not of the border; it counts as free.
        goal: the index of a cell.
        price: of entering a cell that is 2, in sides of a cell.
        greed: by how many times the path may be longer than the shortest one; more is found faster.
    """
    goal_row, goal_column = divmod(goal, width)
    costs, parents = {start: 0.0}, {start: start}
    done = bytearray(len(grid))
    queue = [(0.0, start)]
    while queue:
        cell = heappop(queue)[1]
        if cell == goal:
            return _traced(parents, goal)
        if done[cell]:
            continue
        done[cell] = 1
        cost = costs[cell]
        for neighbour, length in _ways(grid, width, cell):
            if done[neighbour]:
                continue
            reached = cost + length + price if grid[neighbour] == 2 else cost + length
            if neighbour not in costs or reached < costs[neighbour]:
                costs[neighbour], parents[neighbour] = reached, cell
                rows, columns = abs(neighbour // width - goal_row), abs(neighbour % width - goal_column)
                ahead = rows + _MORE * columns if rows > columns else columns + _MORE * rows
                heappush(queue, (reached + greed * ahead, neighbour))
    return []


def _ways(grid: bytes, width: int, cell: int) -> list[tuple[int, float]]:
    """The neighbours that can be entered from a cell, with the length of the way there."""
    south, north = cell - width, cell + width
    to_west, to_east, to_south, to_north = grid[cell - 1] != 1, grid[cell + 1] != 1, grid[south] != 1, grid[north] != 1
    ways = []
    if to_west:
        ways.append((cell - 1, 1.0))
        if to_south and grid[south - 1] != 1:
            ways.append((south - 1, _DIAGONAL))
        if to_north and grid[north - 1] != 1:
            ways.append((north - 1, _DIAGONAL))
    if to_east:
        ways.append((cell + 1, 1.0))
        if to_south and grid[south + 1] != 1:
            ways.append((south + 1, _DIAGONAL))
        if to_north and grid[north + 1] != 1:
            ways.append((north + 1, _DIAGONAL))
    if to_south:
        ways.append((south, 1.0))
    if to_north:
        ways.append((north, 1.0))
    return ways


def _traced(parents: dict[int, int], goal: int) -> list[int]:
    path = [goal]
    while parents[path[-1]] != path[-1]:
        path.append(parents[path[-1]])
    return path[::-1]
