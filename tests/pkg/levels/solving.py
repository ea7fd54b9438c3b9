"""Plans that solve levels, found without the simulator: a search over who stands where and which doors are open.

A plan is a list of moves: an agent goes to a button or to the goal, or carries a cube to a button, while everything
else stays. Cubes do not stand in the way of agents, who can push them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from doorstep.levels import Cube, Door, Level, Spawn, Wall
from doorstep.levels.numbers import ends_of

CELL = 0.5  # metres
MARGIN = 0.25  # metres between bodies and walls: a way is wide enough if it is wider than an agent by twice of this
AGENT_HALF, CUBE_HALF = 1.0, 1.5

Node = tuple[int, int]
Place = tuple[float, float]
Bodies = Iterable[tuple[Place, float]]


@dataclass(frozen=True)
class State:
    """What differs between moves: the open persistent doors, and where agents and cubes are."""

    opened: frozenset[int]
    agents: tuple[Place, ...]
    cubes: tuple[Place, ...]


@dataclass(frozen=True)
class Move:
    """An agent that walks, or that carries a cube, from one place to another while these doors are open."""

    agent: int
    start: Place
    end: Place
    doors: frozenset[int]
    cube: int | None = None


class Planner:
    """The free floor of a level, as a grid for each set of open doors."""

    def __init__(self, level: Level) -> None:
        self.level = level
        boxes: list[Wall | Door] = [*level.walls, *level.doors]
        self.left = min(box.x - box.size_x / 2 for box in boxes)
        self.low = min(box.y - box.size_y / 2 for box in boxes)
        columns = math.ceil((max(box.x + box.size_x / 2 for box in boxes) - self.left) / CELL)
        rows = math.ceil((max(box.y + box.size_y / 2 for box in boxes) - self.low) / CELL)
        self.x = self.left + CELL * np.arange(columns + 1)
        self.y = self.low + CELL * np.arange(rows + 1)
        self._free: dict[tuple[float, frozenset[int]], NDArray[np.bool_]] = {}
        self._components: dict[tuple[float, frozenset[int]], list[frozenset[Node]]] = {}

    def plan(self, num_agents: int) -> list[Move] | None:
        """The shortest plan by number of moves; None if there is none."""
        start = self.latched(
            State(
                frozenset(), tuple(map(_middle, self.level.spawns[:num_agents])), tuple(map(_centre, self.level.cubes))
            )
        )
        before: dict[State, tuple[State, Move] | None] = {start: None}
        queue = deque([start])
        while queue:
            state = queue.popleft()
            if self.is_solved(state):
                return _moves_to(state, before)
            for move, following in self.moves(state):
                if following not in before:
                    before[following] = (state, move)
                    queue.append(following)
        return None

    def is_solved(self, state: State) -> bool:
        goal = self.level.goal
        assert goal is not None
        inside = [goal.min_x < x < goal.max_x and goal.min_y < y < goal.max_y for x, y in state.agents]
        return all(inside) if goal.agents == "all" else any(inside)

    def moves(self, state: State) -> Iterator[tuple[Move, State]]:
        for agent, place in enumerate(state.agents):
            doors = self.open_doors(state, agent)
            for target in self.targets(agent):
                end = self.near(AGENT_HALF, doors, target)
                if end and end != place and self.is_reachable(AGENT_HALF, doors, place, end):
                    agents = (*state.agents[:agent], end, *state.agents[agent + 1 :])
                    yield Move(agent, place, end, doors), self.latched(replace(state, agents=agents))
            yield from self.carries(state, agent)

    def carries(self, state: State, agent: int) -> Iterator[tuple[Move, State]]:
        for cube, place in enumerate(state.cubes):
            doors = self.open_doors(state, agent, cube)
            if not any(self.is_reachable(AGENT_HALF, doors, state.agents[agent], side) for side in _beside(place)):
                continue
            for button in self.level.buttons:
                end = self.near(CUBE_HALF, doors, (button.x, button.y))
                if end and end != place and self.is_reachable(CUBE_HALF, doors, place, end):
                    cubes = (*state.cubes[:cube], end, *state.cubes[cube + 1 :])
                    agents = (*state.agents[:agent], self.stand(doors, end), *state.agents[agent + 1 :])
                    move = Move(agent, place, end, doors, cube)
                    yield move, self.latched(replace(state, agents=agents, cubes=cubes))

    def stand(self, doors: frozenset[int], cube: Place) -> Place:
        """Where an agent is that has brought a cube to a place."""
        return min(
            (self.near(AGENT_HALF, doors, beside) or cube for beside in _beside(cube)),
            key=lambda place: abs(math.dist(place, cube) - 2.75),
        )

    # ---- Doors ----

    def latched(self, state: State) -> State:
        pressed = self.open_now(state.agents, state.cubes)
        return replace(state, opened=state.opened | {door for door in pressed if self.level.doors[door].persistent})

    def open_doors(self, state: State, moving_agent: int, moving_cube: int | None = None) -> frozenset[int]:
        agents = [place for i, place in enumerate(state.agents) if i != moving_agent]
        cubes = [place for i, place in enumerate(state.cubes) if i != moving_cube]
        return state.opened | self.open_now(agents, cubes)

    def open_now(self, agents: Iterable[Place], cubes: Iterable[Place]) -> frozenset[int]:
        bodies = [(place, AGENT_HALF) for place in agents] + [(place, CUBE_HALF) for place in cubes]
        waiting = {
            button.door
            for button in self.level.buttons
            if not any(max(abs(x - button.x), abs(y - button.y)) < half + 0.65 - MARGIN for (x, y), half in bodies)
        }
        return frozenset(range(len(self.level.doors))) - waiting

    # ---- Floor ----

    def targets(self, agent: int) -> list[Place]:
        """The buttons, and the agent's own place in the goal."""
        return [*((button.x, button.y) for button in self.level.buttons), self.goal_place(agent)]

    def goal_place(self, agent: int) -> Place:
        """Side by side, at the end that is further from the last door, where nobody stands in the way."""
        goal = self.level.goal
        assert goal is not None
        last = max(self.level.doors, key=lambda door: door.y, default=None)
        offset = 1.5 + agent * min(3, (goal.max_x - goal.min_x) / 2)
        is_right = last is not None and goal.max_x - last.x >= last.x - goal.min_x
        return goal.max_x - offset if is_right else goal.min_x + offset, (goal.min_y + goal.max_y) / 2

    def free(self, half: float, doors: frozenset[int]) -> NDArray[np.bool_]:
        """Where the centre of a body may be: [row, column]."""
        if (half, doors) not in self._free:
            free = np.ones((len(self.y), len(self.x)), bool)
            closed = [door for i, door in enumerate(self.level.doors) if i not in doors]
            boxes: list[Wall | Door] = [*self.level.walls, *closed]
            for box in boxes:
                across = np.abs(self.x - box.x) < box.size_x / 2 + half + MARGIN
                along = np.abs(self.y - box.y) < box.size_y / 2 + half + MARGIN
                free &= ~(along[:, None] & across[None, :])
            self._free[half, doors] = free
        return self._free[half, doors]

    @cache  # noqa: B019 (a planner lives as long as a test)
    def near(self, half: float, doors: frozenset[int], place: Place) -> Place | None:
        """The free node next to a place, from which a body still covers it."""
        rows, columns = np.nonzero(self.free(half, doors))
        distance = np.maximum(np.abs(self.x[columns] - place[0]), np.abs(self.y[rows] - place[1]))
        if not len(distance) or distance.min() > half:
            return None
        best = int(np.argmin(distance))
        return float(self.x[columns[best]]), float(self.y[rows[best]])

    @cache  # noqa: B019
    def is_reachable(self, half: float, doors: frozenset[int], start: Place, end: Place) -> bool:
        places = self.near(half, doors, start), self.near(half, doors, end)
        if places[0] is None or places[1] is None:
            return False
        return self.node(places[1]) in self.component(half, doors, self.node(places[0]))

    def component(self, half: float, doors: frozenset[int], node: Node) -> frozenset[Node]:
        """All nodes that can be reached from one."""
        known = self._components.setdefault((half, doors), [])
        for component in known:
            if node in component:
                return component
        known.append(frozenset(_search(self.free(half, doors), node)))
        return known[-1]

    def path(self, half: float, doors: frozenset[int], start: Place, end: Place, others: Bodies) -> list[Place]:
        """The corners of a shortest way around other bodies, each with its half size: as near to the end as it gets."""
        free = self.free(half, doors).copy()
        for (x, y), other in others:
            across, along = np.abs(self.x - x) < half + other + MARGIN, np.abs(self.y - y) < half + other + MARGIN
            free &= ~(along[:, None] & across[None, :])
        before = _search(free, min(map(self.node_of, zip(*np.nonzero(free), strict=True)), key=self.distance_to(start)))
        nodes = [min(before, key=self.distance_to(end))]
        while (node := before[nodes[-1]]) is not None:
            nodes.append(node)
        return [self.place(node) for node in _corners(nodes[::-1])]

    def place(self, node: Node) -> Place:
        return float(self.x[node[1]]), float(self.y[node[0]])

    def distance_to(self, place: Place) -> Callable[[Node], float]:
        return lambda node: math.dist(self.place(node), place)

    def node_of(self, indices: tuple[np.int64, np.int64]) -> Node:
        return int(indices[0]), int(indices[1])

    def node(self, place: Place) -> Node:
        return round((place[1] - self.low) / CELL), round((place[0] - self.left) / CELL)


def _search(free: NDArray[np.bool_], first: Node) -> dict[Node, Node | None]:
    """All nodes that can be reached, each with the one before it on a shortest way."""
    before: dict[Node, Node | None] = {first: None}
    queue = deque([first])
    while queue:
        row, column = queue.popleft()
        for node in ((row + 1, column), (row, column - 1), (row, column + 1), (row - 1, column)):
            inside = 0 <= node[0] < free.shape[0] and 0 <= node[1] < free.shape[1]
            if inside and free[node] and node not in before:
                before[node] = (row, column)
                queue.append(node)
    return before


def _corners(nodes: list[Node]) -> list[Node]:
    """The first and last of each straight part."""
    is_straight = [
        (after[0] - before[0], after[1] - before[1]) in ((2, 0), (-2, 0), (0, 2), (0, -2))
        for before, after in zip(nodes, nodes[2:], strict=False)
    ]
    inner = [node for node, straight in zip(nodes[1:-1], is_straight, strict=True) if not straight]
    return [nodes[0], *inner, nodes[-1]]


def _moves_to(state: State, before: dict[State, tuple[State, Move] | None]) -> list[Move]:
    moves = []
    while (step := before[state]) is not None:
        state, move = step
        moves.append(move)
    return moves[::-1]


def _beside(cube: Place) -> list[Place]:
    distance = CUBE_HALF + AGENT_HALF + MARGIN
    return [(cube[0] + dx * distance, cube[1] + dy * distance) for dx, dy in ((0, -1), (-1, 0), (1, 0), (0, 1))]


def _middle(spawn: Spawn) -> Place:
    (low_x, high_x), (low_y, high_y) = ends_of(spawn.x), ends_of(spawn.y)
    return (low_x + high_x) / 2, (low_y + high_y) / 2


def _centre(cube: Cube) -> Place:
    return cube.x, cube.y
