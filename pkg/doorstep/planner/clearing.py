"""Which cube is moved, and where to, so that an agent can pass."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from doorstep.planner.cube_moves import STAND_TOLERANCE, CubeMove, moves_aside, name_of, scene_after
from doorstep.planner.geometry import Point
from doorstep.planner.scene import Body, Scene

_BESIDE = 4.0  # metres from a path to the centre of a cube


@final
@dataclass
class Clearing:
    """Clears the way of an agent to a goal.

    Attributes:
        scene: the world now.
        agent: whose way it is, and who moves the cube.
        goal: metres.
        tolerance: metres from the goal at which the way may end.
        refused: names of moves of cubes that are not tried again; those of `any_move()` are added.
    """

    scene: Scene
    agent: Body
    goal: Point
    tolerance: float
    refused: set[tuple[object, ...]]

    def cubes_near(self, path: Sequence[Point]) -> list[int]:
        """The cubes that a path leads through, then those beside it."""
        on_it = self.scene.cubes_on(path)
        beside = [
            (min(math.dist(body.at, point) for point in path), cube)
            for cube, body in enumerate(self.scene.cubes)
            if body and path and cube not in on_it
        ]
        return [*on_it, *(cube for distance, cube in sorted(beside) if distance < _BESIDE)]

    def move_that_clears(self, cubes: Sequence[int]) -> CubeMove | None:
        """A move of one of some cubes after which only the rest of those that block the way are in it."""
        blocking = self._blocking(cubes)
        others = cubes if len(blocking) == 1 else []  # moving one of these may make room as well
        for cube in dict.fromkeys([*blocking, *others]):
            rest = tuple(other for other in blocking if other != cube) if cube in blocking else ()
            for move in self._possible([cube]):
                after, end = scene_after(self.scene, move)
                if after.has_path(end, self.goal, without=rest, tolerance=self.tolerance):
                    return move
        return None

    def any_move(self, cubes: Sequence[int]) -> CubeMove | None:
        """A move of any of some cubes, where no single move clears the way; no move twice."""
        for move in self._possible(cubes):
            self.refused.add(name_of(move))
            return move
        return None

    def _possible(self, cubes: Iterable[int]) -> Iterable[CubeMove]:
        for cube in cubes:
            for move in moves_aside(self.scene, cube, self.agent, self.refused):
                if self.scene.has_path(self.agent.at, move.stand, tolerance=STAND_TOLERANCE):
                    yield move

    def _blocking(self, cubes: Sequence[int]) -> tuple[int, ...]:
        """The smallest set of cubes without which there is a way; all of them if two are not enough."""
        for count in (1, 2):
            for some in itertools.combinations(cubes, count):
                if self.scene.has_path(self.agent.at, self.goal, without=some, tolerance=self.tolerance):
                    return some
        return tuple(cubes)
